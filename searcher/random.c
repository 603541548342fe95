/* SPDX-License-Identifier: Apache-2.0 */
/* Trials at random points. */
#include "searcher/state.h"

static void random_plan (const struct request *request, struct plan *plan)
{
    plan_flat (plan, request->config, request->config->max_trials);
}

void random_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);

    for (int64_t i = 0; i < s->n; i++)
        x[i] = space_sample (dims + i, s->seed, trial);
}

const struct searcher_ops searcher_random = {
    .plan = random_plan,
    .point = random_point,
};
