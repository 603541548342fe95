/* SPDX-License-Identifier: Apache-2.0 */
/* What a report is of: the trials and attempts of several experiments. */
#include "launcher/report/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"

const char *const attempt_ends[ATTEMPT_ENDS] = {
    "result", "failed", "rejected", "parked", "lost", "running",
};

enum trial_phase report_phase (const struct report *r, long trial)
{
    const struct report_trial *t = &r->trials[trial];

    return trial_phase_of (r->sweeps[t->sweep].s, t->of);
}

struct sweep_result report_result (const struct report *r, long trial, size_t metric)
{
    const struct report_sweep *of = &r->sweeps[r->trials[trial].sweep];
    const char *name = sweep_metric (r->sweeps[0].s, metric);
    long number = r->trials[trial].number;

    for (size_t i = 0; i < sweep_metrics (of->s); i++)
        if (!strcmp (sweep_metric (of->s, i), name))
            return point_result (of->s, trial_point (of->s, number), i);
    return (struct sweep_result){ .value = NAN, .deviation = NAN };
}

double report_value (const struct report *r, long trial, size_t metric)
{
    return report_result (r, trial, metric).value;
}

bool report_better (const struct report *r, double a, double b)
{
    return sweep_better (r->sweeps[0].s, a, b);
}

struct order_entry {
    double value;
    long trial;
    bool compared;
};

static int by_order (const void *a, const void *b)
{
    const struct order_entry *x = a, *y = b;

    if (x->compared != y->compared)
        return x->compared ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

long report_order (const struct report *r, long **list)
{
    struct order_entry *sorted = malloc (((size_t)r->n + 1) * sizeof (*sorted));
    bool smaller = r->sweeps[0].s->exp->search.smaller_is_better;
    long n = 0;

    *list = malloc (((size_t)r->n + 1) * sizeof (**list));
    if (!sorted || !*list) {
        free (sorted);
        free (*list);
        *list = NULL;
        return -1;
    }
    for (long i = 0; i < r->n; i++) {
        struct sweep_result of = report_result (r, i, 0);
        if (isfinite (of.value))
            sorted[n++] = (struct order_entry){ smaller ? of.value : -of.value, i, of.compared };
    }
    qsort (sorted, (size_t)n, sizeof (*sorted), by_order);
    for (long i = 0; i < n; i++)
        (*list)[i] = sorted[i].trial;
    free (sorted);
    return n;
}

void report_free (struct report *r)
{
    free (r->sweeps);
    free (r->trials);
    free (r->attempts);
    free (r->results);
    free (r->lengths);
    free (r->requests);
    words_free (&r->slots);
    words_free (&r->causes);
    *r = (struct report){ 0 };
}
