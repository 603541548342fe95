/* SPDX-License-Identifier: Apache-2.0 */
/* What experiments have cost: seconds of workers and of GPUs. */
#include "launcher/report/cost.h"

#include <math.h>
#include <stdlib.h>

#include "launcher/config/trial_gpus.h"

static bool is_of (const struct report *r, size_t attempt, size_t sweep)
{
    return sweep == r->nsweeps || r->trials[r->attempts[attempt].trial].sweep == sweep;
}

static double time_of_slots (const struct report *r, size_t sweep)
{
    double *from = malloc ((r->slots.n + 1) * 2 * sizeof (*from));
    double *to = from + r->slots.n;
    double sum = 0;

    if (!from)
        return NAN;
    for (size_t k = 0; k < r->slots.n; k++) {
        from[k] = INFINITY;
        to[k] = 0;
    }
    for (size_t i = 0; i < r->nattempts; i++) {
        const struct report_attempt *a = &r->attempts[i];
        if (!is_of (r, i, sweep))
            continue;
        from[a->slot] = fmin (from[a->slot], a->begin);
        to[a->slot] = fmax (to[a->slot], a->end);
    }
    for (size_t k = 0; k < r->slots.n; k++)
        sum += fmax (0, to[k] - from[k]);
    free (from);
    return sum;
}

struct report_cost report_cost_of (const struct report *r, size_t sweep)
{
    struct report_cost c = { 0 };
    double first = INFINITY, last = 0;

    for (size_t i = 0; i < r->nattempts; i++) {
        const struct report_attempt *a = &r->attempts[i];
        const struct sweep *s = r->sweeps[r->trials[a->trial].sweep].s;
        double seconds = a->end - a->begin;
        if (!is_of (r, i, sweep))
            continue;
        first = fmin (first, a->begin);
        last = fmax (last, a->end);
        c.attempts++;
        c.busy += seconds;
        c.gpus += seconds * (double)experiment_gpus (s->exp);
        if (a->how != ATTEMPT_RESULT && a->how != ATTEMPT_RUNNING)
            c.wasted += seconds;
    }
    c.wall = fmax (0, last - first);
    c.alive = time_of_slots (r, sweep);
    return c;
}
