/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: the cores, memory and GPUs of a task. */
#ifndef SPANK_BIND_H
#define SPANK_BIND_H

#include <stdbool.h>

#include <slurm/spank.h>

/* In srun: whether a default of the site may bind is told to the tasks, also
 * where their environment does not say what the user chose.
 */
void bind_prepare (void);

/* In a task: the user asked for it, or has not chosen the cores himself. */
bool bind_is_free (spank_t sp);

/* Bind one task to GPUs, cores and memory. */
void bind_task (spank_t sp);

#endif
