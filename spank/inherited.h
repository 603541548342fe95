/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin set in an outer step: jobs from there are not to have it. */
#pragma once

/* In srun, sbatch or salloc: take it out of this process's environment. */
void inherited_clear (void);

/* In sbatch and salloc, before their options are read: those of the job from
 * whose script they are called are not theirs.
 */
void inherited_options_clear (void);
