/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a method, made before there is any state. */
#pragma once

#include "searcher/state/state.h"

/* A plan of 'trials' full trainings. */
void plan_flat (struct search_plan *plan, const struct search_config *config, int64_t trials);

/* As constraint_compile(), of the request's. */
const char *plan_constraint (const struct search_request *request, struct constraint *c,
                             int *column);
