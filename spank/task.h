/* SPDX-License-Identifier: Apache-2.0 */
/* --dl: the environment of a task. */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* Whether the user exported a rank or a number of ranks, and so sets them up.
 */
bool task_has_ranks (spank_t sp);

/* A step of TensorFlow with parameter servers ends with one task, and the
 * others serve until then.
 */
enum task_part { TASK_BY_ITSELF, TASK_LEADS, TASK_SERVES };

/* Set the environment of one task. */
enum task_part task_environment (spank_t sp, const char *framework, const char *roles);
