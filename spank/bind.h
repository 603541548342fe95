/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: the cores, memory and GPUs of a task. */
#ifndef SPANK_BIND_H
#define SPANK_BIND_H

#include <slurm/spank.h>

/* Bind one task to GPUs, cores and memory. */
void bind_task (spank_t sp);

#endif
