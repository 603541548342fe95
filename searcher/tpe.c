/* SPDX-License-Identifier: Apache-2.0 */
/* Tree-structured Parzen estimator (Bergstra and others, NIPS 2011). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/parzen.h"
#include "searcher/state.h"

/* Optuna's: random trials first, the best tenth is good but at most 25, the
 * best of 24 candidates is taken.
 */
enum { STARTUP = 10, GOOD_MAX = 25, CANDIDATES = 24 };

/* The trials so far, as coordinates, and which of them are good. */
struct split {
    double *coordinates;   /* n of each trial */
    const double **good;   /* oldest first */
    const double **others; /* those that are being trained are here, too */
    int64_t ngood, nothers;
};

static void split_free (struct split *t)
{
    free (t->coordinates);
    free (t->good);
    free (t->others);
}

/* Trials that have ended, bad ones included. */
static int64_t ended (const struct searcher *s)
{
    int64_t n = 0;

    for (long i = 1; i <= s->created; i++)
        n += !isnan (*searcher_value (s, i));
    return n;
}

static int64_t good_ones (int64_t n)
{
    int64_t good = (n + 9) / 10;

    return good < GOOD_MAX ? good : GOOD_MAX;
}

/* Value and number of the worst of the 'want' best trials: a heap of the best
 * so far, the worst on top, would do for many more.
 */
static void
find_limit (const struct searcher *s, int64_t want, double *value, long *trial)
{
    double best[GOOD_MAX];
    long number[GOOD_MAX];
    int64_t n = 0;

    for (long i = 1; i <= s->created; i++) {
        double v = *searcher_value (s, i);
        int64_t k = n < want ? n : want - 1;
        if (isnan (v) || (n == want && v >= best[k]))
            continue;
        for (; k > 0 && v < best[k - 1]; k--) {
            best[k] = best[k - 1];
            number[k] = number[k - 1];
        }
        best[k] = v;
        number[k] = i;
        n += n < want;
    }
    *value = n ? best[n - 1] : -INFINITY;
    *trial = n ? number[n - 1] : 0;
}

static bool is_good (double v, long i, double limit, long last)
{
    return v < limit || (v == limit && i <= last);
}

static int split_trials (const struct searcher *s, struct split *t)
{
    const struct dim *dims = searcher_dims (s);
    double limit;
    long last;

    *t = (struct split){ 0 };
    t->coordinates = malloc ((s->created * s->n + 1) * sizeof (double));
    t->good = malloc ((s->created + 1) * sizeof (*t->good));
    t->others = malloc ((s->created + 1) * sizeof (*t->others));
    if (!t->coordinates || !t->good || !t->others)
        return -1;
    find_limit (s, good_ones (ended (s)), &limit, &last);
    for (long i = 1; i <= s->created; i++) {
        double *u = t->coordinates + (i - 1) * s->n;
        for (int64_t k = 0; k < s->n; k++)
            u[k] = space_inner (dims + k, searcher_point (s, i)[k]);
        if (is_good (*searcher_value (s, i), i, limit, last))
            t->good[t->ngood++] = u;
        else
            t->others[t->nothers++] = u;
    }
    return 0;
}

/* The candidate that the good points explain best against the others. */
static void best_candidate (const struct parzen *good,
                            const struct parzen *others,
                            int64_t n,
                            struct rng *r,
                            double *u)
{
    double *best = u, *next = u + n, top = -INFINITY;

    for (int i = 0; i < CANDIDATES; i++) {
        double gain;
        parzen_sample (good, r, next);
        gain = parzen_log (good, next) - parzen_log (others, next);
        if (i == 0 || gain > top) {
            top = gain;
            memcpy (best, next, n * sizeof (*best));
        }
    }
}

static int
propose (const struct searcher *s, const struct split *t, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);
    struct parzen *good = parzen_create (dims, s->n, t->good, t->ngood);
    struct parzen *others = parzen_create (dims, s->n, t->others, t->nothers);
    struct rng r = { s->seed, trial, rng_key ("tpe"), 0 };
    double *u = malloc ((2 * s->n + 1) * sizeof (*u));
    int rv = -1;

    if (good && others && u) {
        best_candidate (good, others, s->n, &r, u);
        for (int64_t i = 0; i < s->n; i++)
            x[i] = space_outer (dims + i, u[i]);
        rv = 0;
    }
    free (u);
    parzen_destroy (good);
    parzen_destroy (others);
    return rv;
}

static void tpe_point (const struct searcher *s, long trial, double *x)
{
    struct split t;

    if (ended (s) < STARTUP) {
        random_point (s, trial, x);
        return;
    }
    /* without memory for the model a random point is a point, too */
    if (split_trials (s, &t) < 0 || propose (s, &t, trial, x) < 0)
        random_point (s, trial, x);
    split_free (&t);
}

static void tpe_plan (const struct request *request, struct plan *plan)
{
    plan_flat (plan, request->config, request->config->max_trials);
}

const struct searcher_ops searcher_tpe = {
    .plan = tpe_plan,
    .keeps = true,
    .point = tpe_point,
};
