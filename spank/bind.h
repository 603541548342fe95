/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: the cores, memory and GPUs of a task. */
#pragma once

#include <slurm/spank.h>

/* Bind one task to GPUs, cores and memory. */
void bind_task (spank_t sp);
