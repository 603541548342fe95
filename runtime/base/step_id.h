/* SPDX-License-Identifier: Apache-2.0 */
/* The Slurm step that this process is a task of. */
#pragma once

/* The text of SLURM_STEP_ID; "" outside Slurm, in a batch script and in the
 * shell of an interactive step, for which Slurm sets special numbers
 * (4294967290; since 26.05 -5 and -6).  Borrowed from the environment.
 */
const char *step_id (void);
