/* SPDX-License-Identifier: Apache-2.0 */
/* The Pareto front of the trials of an experiment with several metrics. */
#include "launcher/sweep/pareto_front.h"

#include <math.h>
#include <stdlib.h>

#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"

/* The values of a trial's point, smaller ones better; a NaN: it is not
 * compared.
 */
static void fill (const struct sweep *s, long trial, double *v)
{
    for (size_t i = 0; i < sweep_metrics (s); i++) {
        struct sweep_result r = point_result (s, trial_point (s, trial), i);
        bool larger = i ? s->exp->search.larger[i] : !s->exp->search.smaller_is_better;
        v[i] = !r.compared ? NAN : larger ? -r.value : r.value;
    }
}

static bool is_known (const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite (v[i]))
            return false;
    return true;
}

/* Better in one metric, and worse in none. */
static bool dominates (const double *a, const double *b, size_t n)
{
    bool better = false;

    for (size_t i = 0; i < n; i++) {
        if (!(a[i] <= b[i]))
            return false;
        better = better || a[i] < b[i];
    }
    return better;
}

bool *sweep_front (const struct sweep *s)
{
    bool *front = calloc ((size_t)s->ntrials + 1, sizeof (*front));
    size_t n = sweep_metrics (s);
    double *v = calloc ((size_t)s->ntrials * n + 1, sizeof (*v));

    for (long i = 0; v && i < s->ntrials; i++)
        fill (s, i + 1, v + (size_t)i * n);
    for (long i = 0; front && v && i < s->ntrials; i++) {
        const double *own = v + (size_t)i * n;
        front[i] = is_known (own, n);
        for (long k = 0; front[i] && k < s->ntrials; k++)
            front[i] = !is_known (v + (size_t)k * n, n) || !dominates (v + (size_t)k * n, own, n);
    }
    free (v);
    return front;
}
