/* SPDX-License-Identifier: Apache-2.0 */
/* A trial for each point of a grid. */
#include <string.h>

#include "searcher/state.h"

static const char *grid_check (const struct request *request, int *param)
{
    int64_t trials = 1;

    for (size_t i = 0; i < request->n; i++) {
        int64_t points = space_points (request->params + i);
        *param = i;
        if (points == 0)
            return "count is missing: a grid needs it for float and log";
        if (points > TRIALS_MAX / trials)
            return "the grid has more than 10000000 points";
        trials *= points;
    }
    *param = -1;
    return NULL;
}

static void grid_plan (const struct request *request, struct plan *plan)
{
    int64_t trials = 1;

    for (size_t i = 0; i < request->n; i++)
        trials *= space_points (request->params + i);
    plan_flat (plan, request->config, trials);
}

/* The last name varies fastest. */
static void grid_prepare (const struct request *request, struct dim *dims)
{
    const struct param *params = request->params;
    size_t n = request->n;

    for (size_t i = 0; i < n; i++) {
        dims[i].stride = 1;
        for (size_t j = 0; j < n; j++)
            if (strcmp (params[j].name, params[i].name) > 0)
                dims[i].stride *= dims[j].points;
    }
}

static void grid_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *d = searcher_dims (s);

    for (int64_t i = 0; i < s->n; i++)
        x[i] = space_grid (d + i, (trial - 1) / d[i].stride % d[i].points);
}

const struct searcher_ops searcher_grid = {
    .check = grid_check,
    .plan = grid_plan,
    .prepare = grid_prepare,
    .point = grid_point,
};
