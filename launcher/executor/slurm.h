/* SPDX-License-Identifier: Apache-2.0 */
/* The executor that starts workers as job arrays. */
#ifndef LAUNCHER_EXECUTOR_SLURM_H
#define LAUNCHER_EXECUTOR_SLURM_H

#include "launcher/executor/executor.h"

extern const struct executor_ops executor_slurm;

/* Array tasks for so many workers. */
long slurm_tasks (const struct experiment *e, long workers);

/* "n1,n2": the machines that are excluded, "" if there is none. */
void slurm_excluded (const struct sweep *s, char *buf, size_t size);

#endif
