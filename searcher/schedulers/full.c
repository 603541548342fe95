/* SPDX-License-Identifier: Apache-2.0 */
/* Trials that are trained in full: one, those of a grid, as many as wanted. */
#include "searcher/search/state.h"

static void single_plan (const struct request *request, struct plan *plan)
{
    plan_flat (plan, request->config, 1);
}

static void full_plan (const struct request *request, struct plan *plan)
{
    plan_flat (plan, request->config, request->config->max_trials);
}

static void middle_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);

    (void)trial;
    for (int64_t i = 0; i < s->n; i++)
        x[i] = space_middle (dims + i);
}

const struct scheduler schedule_single = { .plan = single_plan, .fixed = true };
const struct scheduler schedule_full = { .plan = full_plan };
const struct sampler sample_middle = { .point = middle_point };
const struct sampler sample_random = { .point = random_point };
