/* SPDX-License-Identifier: Apache-2.0 */
/* PASHA: asynchronous successive halving whose top rung rises as needed. */
#include <stdlib.h>

#include "searcher/numeric/row.h"
#include "searcher/schedulers/asha.h"
#include "searcher/schedulers/rung.h"
#include "searcher/schedulers/schedulers.h"

/* O. Bohdal and others, ICLR 2023 (arXiv 2207.06940): at first trials are
 * trained to the second rung.  The top rung rises by one when it ranks its
 * trials differently from the rung below, beyond noise: the difference at the
 * top of trials whose curves cross more than once.
 */
enum { RANKED_MAX = 60 };

/* The newest RANKED_MAX trials that reached the top rung. */
struct pasha_top {
    long trial[RANKED_MAX];
    int64_t n;
};

static void find_ranked_top (const struct searcher *s, struct pasha_top *t)
{
    t->n = 0;
    for (long i = s->created; i >= 1 && t->n < RANKED_MAX; i--)
        if (isfinite (searcher_values (s, i)[s->top]))
            t->trial[t->n++] = i;
}

/* Number of times that the order of two trials changes from rung to rung. */
static int crossings (const struct searcher *s, long a, long b)
{
    int n = 0, before = 0;

    for (int64_t r = 0; r <= s->top; r++) {
        double d = searcher_values (s, a)[r] - searcher_values (s, b)[r];
        int sign = (d > 0) - (d < 0);
        n += sign * before < 0;
        before = sign ? sign : before;
    }
    return n;
}

/* The 90th percentile of the differences between trials that cross repeatedly. */
static double crossing_noise (const struct searcher *s, const struct pasha_top *t)
{
    double differences[RANKED_MAX * (RANKED_MAX - 1) / 2];
    int64_t n = 0;

    for (int64_t i = 0; i < t->n; i++)
        for (int64_t j = 0; j < i; j++)
            if (crossings (s, t->trial[i], t->trial[j]) >= 2)
                differences[n++] = fabs (searcher_values (s, t->trial[i])[s->top]
                                         - searcher_values (s, t->trial[j])[s->top]);
    if (n == 0)
        return 0;
    qsort (differences, n, sizeof (*differences), row_ascending);
    return differences[(n - 1) * 9 / 10];
}

/* Whether the two rungs disagree about two trials by more than noise at both. */
static bool is_unclear (const struct searcher *s)
{
    struct pasha_top t;
    double least;

    find_ranked_top (s, &t);
    least = crossing_noise (s, &t);
    for (int64_t i = 0; i < t.n; i++)
        for (int64_t j = 0; j < i; j++) {
            const double *a = searcher_values (s, t.trial[i]);
            const double *b = searcher_values (s, t.trial[j]);
            double above = a[s->top] - b[s->top];
            double below = a[s->top - 1] - b[s->top - 1];
            if (above * below < 0 && fabs (above) > least && fabs (below) > least)
                return true;
        }
    return false;
}

/* Promote the share that waits at the former top rung. */
static void raise_top (struct searcher *s)
{
    int rung = s->top++;

    asha_promote_share (s, searcher_bracket (s, 0), rung);
}

/* The best trial is trained in full at the end, wherever the top rung is. */
static void finish_best (struct searcher *s)
{
    struct bracket *b = searcher_bracket (s, 0);
    int rung = b->highest < s->top ? b->highest : s->top;

    if (b->created < b->trials || b->running > 0 || b->due > 0 || rung < 0)
        return;
    while (rung < s->rungs - 1 && !asha_promote_best (s, b, rung))
        rung++;
}

static void pasha_ended (struct searcher *s, long trial, double value)
{
    int rung = searcher_trial (s, trial)->rung;

    asha_ended (s, trial, value);
    if (rung == s->top && s->top < s->rungs - 1 && is_unclear (s))
        raise_top (s);
    finish_best (s);
}

static void pasha_start (struct searcher *s, const struct search_request *request)
{
    (void)request;
    if (s->top > 1)
        s->top = 1;
}

/* The top rung rises if it was the last one and its ranking is unclear. */
static void pasha_extended (struct searcher *s, int top)
{
    struct results r = rung_results (s, searcher_bracket (s, 0), top);

    if (top < s->rungs - 1) {
        rung_resize (&r, ratio_share (s->divisor, r.rung->results));
        if (s->top == top && (top == 0 || is_unclear (s)))
            raise_top (s);
    }
    finish_best (s);
}

const struct search_scheduler schedule_pasha = {
    .check = asha_check,
    .plan = asha_plan,
    .keeps = true,
    .start = pasha_start,
    .ended = pasha_ended,
    .forget = asha_forget,
    .extended = pasha_extended,
};
