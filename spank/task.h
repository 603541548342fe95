/* SPDX-License-Identifier: Apache-2.0 */
/* --dl: the environment of a task. */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* Whether the user exported a rank or a number of ranks, and so sets them up.
 */
bool task_has_ranks (spank_t sp);

/* Set the environment of one task. */
void task_environment (spank_t sp, const char *framework, const char *roles);
