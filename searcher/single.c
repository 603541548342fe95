/* SPDX-License-Identifier: Apache-2.0 */
/* One trial, in the middle of the space. */
#include "searcher/state.h"

static void single_plan (const struct request *request, struct plan *plan)
{
    plan_flat (plan, request->config, 1);
}

static void single_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);

    (void)trial;
    for (int64_t i = 0; i < s->n; i++)
        x[i] = space_middle (dims + i);
}

const struct searcher_ops searcher_single = {
    .plan = single_plan,
    .point = single_point,
};
