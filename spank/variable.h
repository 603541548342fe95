/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a task. */
#pragma once

#include <slurm/spank.h>

#include "runtime/rank/variables.h"

/* Those of the task that is in its task_init. */
struct variables variables_of (spank_t sp);

/* Copy its value; "" and -1 if it is not set, or does not fit. */
int variable_text (spank_t sp, const char *name, char *buf, int size);

/* Its value, -1 if it is not set or no number. */
long variable_number (spank_t sp, const char *name);
