/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a trial that is a step: srun's signals become a trainer's. */
#pragma once

#include "launcher/sys/settings.h"

/* s that a preempted task waits to be killed: to leave with status 0 would tell
 * Slurm that the job is complete, and it would not come back.
 */
enum { PREEMPT_WAIT = 300 };

/* dl rank: the command that srun starts for each rank. */
int cmd_rank (const struct settings *st);
