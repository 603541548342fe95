/* SPDX-License-Identifier: Apache-2.0 */
/* --dl: the environment of a task. */
#pragma once

#include <slurm/spank.h>

/* Set the environment of one task. */
void task_environment (spank_t sp, const char *framework, const char *roles);
