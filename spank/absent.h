/* SPDX-License-Identifier: Apache-2.0 */
/* A job with options of the plugin, whose steps are started without it. */
#pragma once

/* In sbatch and salloc: have a line printed by each srun of the job that does
 * not load the plugin.
 */
void absent_tell (void);

/* In srun, sbatch and salloc, before they read their environment: this one
 * loads it.
 */
void absent_forget (void);
