/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints a policy keeps. */
#include <math.h>
#include <stdlib.h>

#include "launcher/worker/checkpoints.h"

typedef int (*order_f) (const struct gc_checkpoint *a, const struct gc_checkpoint *b, bool smaller);

static int by_trial (const struct gc_checkpoint *a, const struct gc_checkpoint *b)
{
    return a->trial < b->trial ? -1 : a->trial > b->trial;
}

/* Within a trial the latest first, in a step the one that is restored. */
static int latest_first (const struct gc_checkpoint *a, const struct gc_checkpoint *b, bool smaller)
{
    int rv = by_trial (a, b);

    (void)smaller;
    if (rv)
        return rv;
    if (a->step != b->step)
        return a->step > b->step ? -1 : 1;
    if (a->accepted != b->accepted)
        return a->accepted ? -1 : 1;
    return a->attempt > b->attempt ? -1 : a->attempt < b->attempt;
}

static int best_first (const struct gc_checkpoint *a, const struct gc_checkpoint *b, bool smaller)
{
    if (a->metric != b->metric)
        return (a->metric < b->metric) == smaller ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return by_trial (a, b);
}

static int best_of_trial_first (const struct gc_checkpoint *a, const struct gc_checkpoint *b,
                                bool smaller)
{
    int rv = by_trial (a, b);

    return rv ? rv : best_first (a, b, smaller);
}

struct keep_sorting {
    order_f order;
    bool smaller;
};

static int compare (const void *a, const void *b, void *arg)
{
    const struct keep_sorting *s = arg;

    return s->order (*(struct gc_checkpoint *const *)a, *(struct gc_checkpoint *const *)b,
                     s->smaller);
}

static void sort (struct gc_checkpoint **list, size_t n, order_f order, bool smaller)
{
    struct keep_sorting s = { order, smaller };

    qsort_r (list, n, sizeof (struct gc_checkpoint *), compare, &s);
}

/* Those that count, one a step of a trial, in the order of latest_first(). */
static size_t fill (struct gc_checkpoint **out, struct gc_checkpoint *list, size_t n)
{
    size_t all = 0;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        list[i].kept = false;
        if (!list[i].bad)
            out[all++] = &list[i];
    }
    sort (out, all, latest_first, false);
    for (size_t i = 0; i < all; i++)
        if (kept == 0 || by_trial (out[kept - 1], out[i]) || out[kept - 1]->step != out[i]->step)
            out[kept++] = out[i];
    return kept;
}

static size_t drop_unvalidated (struct gc_checkpoint **list, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite (list[i]->metric))
            list[kept++] = list[i];
    return kept;
}

/* Keep the first 'most' of the list, or of each trial in it. */
static void keep_first (struct gc_checkpoint **list, size_t n, bool of_trial, int64_t most)
{
    int64_t taken = 0;

    for (size_t i = 0; i < n; i++) {
        if (of_trial && i > 0 && by_trial (list[i - 1], list[i]))
            taken = 0;
        if (taken++ < most)
            list[i]->kept = true;
    }
}

int gc_mark (const struct gc_policy *policy, bool smaller, struct gc_checkpoint *list, size_t n)
{
    struct gc_checkpoint **order = calloc (n + 1, sizeof (*order));
    size_t m;

    if (!order)
        return -1;
    m = fill (order, list, n);
    keep_first (order, m, true, policy->trial_latest);
    m = drop_unvalidated (order, m);
    sort (order, m, best_of_trial_first, smaller);
    keep_first (order, m, true, policy->trial_best);
    sort (order, m, best_first, smaller);
    keep_first (order, m, false, policy->experiment_best);
    free (order);
    return 0;
}

bool gc_is_over (const struct sweep *s)
{
    return s->state == SWEEP_COMPLETED || s->state == SWEEP_FAILED || s->state == SWEEP_PARTIAL;
}

bool gc_keeps_nothing (const struct sweep *s)
{
    const struct gc_policy *p = &s->exp->policy;

    return gc_is_over (s) && !p->experiment_best && !p->trial_best && !p->trial_latest;
}
