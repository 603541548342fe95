/* SPDX-License-Identifier: Apache-2.0 */
/* The Pareto front of the trials of an experiment with several metrics. */
#include "launcher/sweep/pareto_front.h"

#include <math.h>
#include <stdlib.h>

#include "launcher/sweep/queries.h"

static double
value_of (const struct sweep *s, const struct sweep_trial *t, size_t i)
{
    double v = sweep_metrics (s) > 1 ? t->values[i] : t->best;
    bool larger =
        i ? s->exp->search.larger[i] : !s->exp->search.smaller_is_better;

    return larger ? -v : v;
}

static bool has_values (const struct sweep *s, const struct sweep_trial *t)
{
    if (sweep_metrics (s) > 1 && !t->values)
        return false;
    for (size_t i = 0; i < sweep_metrics (s); i++)
        if (!isfinite (value_of (s, t, i)))
            return false;
    return true;
}

/* Better in one metric, and worse in none. */
static bool dominates (const struct sweep *s,
                       const struct sweep_trial *a,
                       const struct sweep_trial *b)
{
    bool better = false;

    for (size_t i = 0; i < sweep_metrics (s); i++) {
        double x = value_of (s, a, i);
        double y = value_of (s, b, i);
        if (x > y)
            return false;
        better = better || x < y;
    }
    return better;
}

static bool is_dominated (const struct sweep *s, const struct sweep_trial *t)
{
    for (long k = 0; k < s->ntrials; k++)
        if (has_values (s, &s->trials[k]) && dominates (s, &s->trials[k], t))
            return true;
    return false;
}

bool *sweep_front (const struct sweep *s)
{
    bool *front = calloc ((size_t)s->ntrials + 1, sizeof (*front));

    for (long i = 0; front && i < s->ntrials; i++)
        front[i] =
            has_values (s, &s->trials[i]) && !is_dominated (s, &s->trials[i]);
    return front;
}
