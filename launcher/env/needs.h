/* SPDX-License-Identifier: Apache-2.0 */
/* Make the plan of a step from its options. */
#pragma once

#include "launcher/env/plan.h"

/* 0, or -1 with errno and what is wrong, with where it was asked for.  'step'
 * is the number of the step in its job.
 */
int plan_create (struct env_plan **plan,
                 const struct ask *ask,
                 uint32_t step,
                 struct slurmdl_error *err);
