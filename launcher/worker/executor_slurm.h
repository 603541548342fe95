/* SPDX-License-Identifier: Apache-2.0 */
/* The executor that starts workers as job arrays. */
#pragma once

#include "launcher/worker/executor.h"

extern const struct executor_ops executor_slurm;

/* Array tasks for so many workers. */
long slurm_tasks (const struct experiment *e, long workers);

/* Add the options of sbatch for an array task, which has 'larger' bytes of
 * memory, if not 0, instead of what the experiment says.
 */
struct command;
void slurm_add_resources (struct command *c, const struct experiment *e, int64_t larger);

/* "n1,n2": the machines that are excluded, "" if there is none. */
void slurm_excluded (const struct sweep *s, char *buf, size_t size);

/* Cancel the jobs of an experiment, or, with the option --state=PENDING of
 * scancel's, those that wait in the queue; NULL: all.  Returns -1 with 'err'
 * if Slurm did not do it.
 */
int executor_cancel (const struct sweep *s, const char *option, struct slurmdl_error *err);
