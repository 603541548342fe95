/* SPDX-License-Identifier: Apache-2.0 */
/* The Slurm step that this process is a task of. */
#pragma once

/* Its number, as the text of SLURM_STEP_ID; "" outside Slurm, in a batch script
 * and in the shell of an interactive step, where Slurm sets numbers that are
 * none of a step (4294967290; from 26.05 on -5 and -6).  Borrowed from the
 * environment.
 */
const char *step_id (void);
