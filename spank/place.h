/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a task in its step. */
#pragma once

#include <slurm/spank.h>

#include "runtime/rank/task.h"

/* Find all that t->facts holds.  'roles' may be NULL.  Returns 0, or -1 with
 * the reason in t->why.
 */
int task_place (spank_t sp, struct task *t, const char *roles, bool of_tasks);
