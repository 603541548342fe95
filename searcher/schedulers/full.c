/* SPDX-License-Identifier: Apache-2.0 */
/* Full trainings: one trial, or as many as wanted. */
#include "searcher/schedulers/schedulers.h"
#include "searcher/state/state.h"

static void single_plan (const struct search_request *request, struct search_plan *plan)
{
    plan_flat (plan, request->config, 1);
}

static void full_plan (const struct search_request *request, struct search_plan *plan)
{
    plan_flat (plan, request->config, request->config->max_trials);
}

const struct search_scheduler schedule_single = { .plan = single_plan, .fixed = true };
const struct search_scheduler schedule_full = { .plan = full_plan };
