/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a method, made before there is a state. */
#pragma once

#include "searcher/state/state.h"

/* Plan 'trials' full trainings. */
void plan_flat (struct search_plan *plan, const struct search_config *config, int64_t trials);

/* As constraint_compile(), for the request's constraint. */
const char *plan_constraint (const struct search_request *request, struct constraint *c,
                             int *column);
