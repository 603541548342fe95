/* SPDX-License-Identifier: Apache-2.0 */
/* Bayesian optimisation: the point that a Gaussian process expects most of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/gp.h"
#include "searcher/rng.h"
#include "searcher/state.h"
#include "searcher/warp.h"

/* Of more trials the best and the newest half are used. */
enum { POINTS_MAX = 150, PENDING_MAX = 100, START_MIN = 5, START_MAX = 14 };

/* Candidates: anywhere, near the best points at three distances, and these
 * with one coordinate anew; then the best of all are moved a few times.
 */
enum {
    ANYWHERE = 400,
    NEAR = 80,
    ANEW = 60,
    BEST = 6,
    KEPT = 8,
    ROUNDS = 7,
    MOVES = 12
};
enum { CANDIDATES = ANYWHERE + 3 * NEAR + ANEW, POOL = KEPT * (MOVES + 1) };

struct study {
    const struct searcher *s;
    const struct dim *dims;
    int64_t d, n;
    long *trial;   /* of each point, by number */
    double *z, *y; /* features and values */
    double *warped;
    int64_t *order; /* of the points, the best first */
    bool *category;
    struct gp *gp;
    struct rng rng;
    double incumbent;
    /* candidates: places in the unit cube, and what is expected of them */
    double *cube, *score, *feature;
};

/* ---- features ---- */

/* A place in the unit cube stands for the value there. */
static double value_at (const struct dim *d, double part)
{
    return space_at (d, part < 1 ? part : 1);
}

/* What the process sees of a value: where in its range, or which choice. */
static double feature_of (const struct dim *d, double x)
{
    double low = space_low (d), high = space_high (d);

    if (d->type == PARAM_CATEGORICAL)
        return x;
    return high > low ? (space_inner (d, x) - low) / (high - low) : 0.5;
}

static double part_of (const struct dim *d, double x)
{
    if (d->type == PARAM_CATEGORICAL)
        return (x + 0.5) / d->choices;
    return feature_of (d, x);
}

/* ---- memory ---- */

static void study_close (struct study *t)
{
    free (t->trial);
    free (t->z);
    free (t->order);
    free (t->category);
    gp_destroy (t->gp);
}

static int study_open (struct study *t, const struct searcher *s, long trial)
{
    int64_t d = s->n, most = POINTS_MAX + PENDING_MAX;
    int64_t rows = CANDIDATES > POOL ? CANDIDATES : POOL;
    double *at;

    *t = (struct study){ .s = s, .dims = searcher_dims (s), .d = d };
    t->rng = (struct rng){ s->seed, trial, rng_key ("gp"), 0 };
    t->trial = malloc ((s->created + 1) * sizeof (*t->trial));
    t->order = malloc (POINTS_MAX * sizeof (*t->order));
    t->category = malloc (d * sizeof (*t->category));
    t->z = at = malloc ((most * (d + 2) + (rows + POOL) * (d + 1) + 2 * d)
                        * sizeof (double));
    if (!t->trial || !t->order || !t->category || !at)
        return -1;
    t->y = at + most * d;
    t->warped = t->y + most;
    t->cube = t->warped + most;
    t->score = t->cube + (rows + POOL) * d;
    t->feature = t->score + rows + POOL;
    for (int64_t i = 0; i < d; i++)
        t->category[i] = t->dims[i].type == PARAM_CATEGORICAL;
    t->gp = gp_create (most, d, t->category);
    return t->gp ? 0 : -1;
}

/* ---- data ---- */

static void swap_sort (int64_t *order, int64_t n, const double *key)
{
    for (int64_t i = 1; i < n; i++) {
        int64_t v = order[i], k = i;
        for (; k > 0 && key[order[k - 1]] > key[v]; k--)
            order[k] = order[k - 1];
        order[k] = v;
    }
}

/* The value below which half of POINTS_MAX lie, INFINITY if all fit. */
static double half_limit (const struct searcher *s, long count)
{
    double best[POINTS_MAX / 2];
    int64_t n = 0;

    if (count <= POINTS_MAX)
        return INFINITY;
    for (long i = 1; i <= s->created; i++) {
        double v = *searcher_value (s, i);
        int64_t k = n < POINTS_MAX / 2 ? n : n - 1;
        if (isnan (v) || (n == POINTS_MAX / 2 && v >= best[k]))
            continue;
        for (; k > 0 && v < best[k - 1]; k--)
            best[k] = best[k - 1];
        best[k] = v;
        n += n < POINTS_MAX / 2;
    }
    return best[n - 1];
}

/* The numbers of the trials to learn from.  A bad trial is one of the worst. */
static void choose_trials (struct study *t)
{
    const struct searcher *s = t->s;
    long count = 0, seen = 0;
    double limit;

    for (long i = 1; i <= s->created; i++)
        count += !isnan (*searcher_value (s, i));
    limit = half_limit (s, count);
    for (long i = 1; i <= s->created && t->n < POINTS_MAX; i++) {
        double v = *searcher_value (s, i);
        if (isnan (v))
            continue;
        seen++;
        if (v < limit || seen > count - POINTS_MAX / 2)
            t->trial[t->n++] = i;
    }
}

static void read_data (struct study *t)
{
    double worst = -INFINITY;

    choose_trials (t);
    for (int64_t i = 0; i < t->n; i++) {
        const double *x = searcher_point (t->s, t->trial[i]);
        for (int64_t k = 0; k < t->d; k++)
            t->z[i * t->d + k] = feature_of (t->dims + k, x[k]);
        t->y[i] = *searcher_value (t->s, t->trial[i]);
        if (isfinite (t->y[i]) && t->y[i] > worst)
            worst = t->y[i];
        t->order[i] = i;
    }
    for (int64_t i = 0; i < t->n; i++)
        if (!isfinite (t->y[i]))
            t->y[i] = isfinite (worst) ? worst : 0;
    swap_sort (t->order, t->n, t->y);
}

/* Warped always: in trials of one against the other, and of both with the
 * better by leave-one-out, this was as good on BBOB and better on tables.
 */
static int fit (struct study *t)
{
    warp_values (t->y, t->n, t->warped);
    return gp_fit (t->gp, t->n, t->z, t->warped);
}

/* Trials that are being trained: as if they gave what is expected. */
static void believe_pending (struct study *t)
{
    int64_t n = 0;

    for (long i = t->s->created; i >= 1 && n < PENDING_MAX; i--) {
        const double *x = searcher_point (t->s, i);
        if (!isnan (*searcher_value (t->s, i)))
            continue;
        for (int64_t k = 0; k < t->d; k++)
            t->feature[k] = feature_of (t->dims + k, x[k]);
        gp_believe (t->gp, t->feature);
        n++;
    }
    t->incumbent = gp_best (t->gp);
}

/* ---- expected improvement ---- */

/* exp(x^2) erfc(x), x > 0 */
static double erfcx (double x)
{
    double f = 0;

    if (x < 5)
        return exp (x * x) * erfc (x);
    /* continued fraction (Abramowitz and Stegun 7.1.14) */
    for (int k = 20; k >= 1; k--)
        f = k / 2.0 / (x + f);
    return 0x1.20dd750429b6dp-1 / (x + f);
}

/* log of E[max(f - Y, 0)], Y normal, without underflow (S. Ament and others,
 * arXiv 2310.20708).
 */
static double log_improvement (double mean, double deviation, double f)
{
    const double log_sqrt_2pi = 0x1.d67f1c864beb5p-1,
                 sqrt_half = 0x1.6a09e667f3bcdp-1;
    const double sqrt_half_pi = 0x1.40d931ff62706p+0;
    double z = (f - mean) / deviation, rest;

    if (z > -1)
        return log (deviation)
               + log (z * erfc (-z * sqrt_half) / 2
                      + exp (-z * z / 2 - log_sqrt_2pi));
    rest = 1 + z * sqrt_half_pi * erfcx (-z * sqrt_half);
    return log (deviation) - z * z / 2 - log_sqrt_2pi
           + (rest > 1e-12 && z > -1e3 ? log (rest) : -2 * log (-z));
}

static double score (struct study *t, const double *cube)
{
    double mean, variance;

    for (int64_t k = 0; k < t->d; k++)
        t->feature[k] =
            feature_of (t->dims + k, value_at (t->dims + k, cube[k]));
    gp_predict (t->gp, t->feature, &mean, &variance);
    return log_improvement (mean, sqrt (variance), t->incumbent);
}

/* ---- candidates ---- */

static double fold (double u)
{
    u = fabs (u);
    u = u > 1 ? 2 - u : u;
    return u < 0 ? 0 : u < 1 ? u : 1 - 1e-9;
}

static int64_t below (struct rng *r, int64_t n)
{
    int64_t k = rng_next (r) * n;

    return k < n ? k : n - 1;
}

/* Move some coordinates, one at least; a choice is drawn anew. */
static void
move (struct study *t, const double *from, double by, double share, double *to)
{
    int64_t sure = below (&t->rng, t->d);

    for (int64_t k = 0; k < t->d; k++) {
        bool moves = rng_next (&t->rng) < share || k == sure;
        double u = from[k];
        if (moves && t->category[k])
            u = rng_next (&t->rng) < 0.5 ? u : rng_next (&t->rng);
        else if (moves)
            u += by * rng_gauss (&t->rng);
        to[k] = fold (u);
    }
}

/* One of the best points, as a place in the cube. */
static void some_best (struct study *t, double *cube)
{
    int64_t most = t->n < BEST ? t->n : BEST;
    const double *x =
        searcher_point (t->s, t->trial[t->order[below (&t->rng, most)]]);

    for (int64_t k = 0; k < t->d; k++)
        cube[k] = part_of (t->dims + k, x[k]);
}

static void make_candidates (struct study *t)
{
    static const double distance[] = { 0.15, 0.05, 0.015 };
    double share = fmax (0.3, 1.0 / t->d), *c = t->cube;

    for (int i = 0; i < ANYWHERE; i++, c += t->d)
        for (int64_t k = 0; k < t->d; k++)
            c[k] = rng_next (&t->rng);
    for (int i = 0; i < 3 * NEAR; i++, c += t->d) {
        some_best (t, c);
        move (t, c, distance[i / NEAR], share, c);
    }
    for (int i = 0; i < ANEW; i++, c += t->d) {
        some_best (t, c);
        c[below (&t->rng, t->d)] = rng_next (&t->rng);
    }
    for (int i = 0; i < CANDIDATES; i++)
        t->score[i] = score (t, t->cube + i * t->d);
}

/* Bring the best of n candidates to the front, best first. */
static void keep_best (struct study *t, int64_t n, int64_t kept)
{
    for (int64_t i = 0; i < kept && i < n; i++) {
        int64_t best = i;
        for (int64_t k = i + 1; k < n; k++)
            if (t->score[k] > t->score[best])
                best = k;
        for (int64_t k = 0; best != i && k < t->d; k++) {
            double u = t->cube[i * t->d + k];
            t->cube[i * t->d + k] = t->cube[best * t->d + k];
            t->cube[best * t->d + k] = u;
        }
        double v = t->score[i];
        t->score[i] = t->score[best];
        t->score[best] = v;
    }
}

static void improve_candidates (struct study *t)
{
    double share = fmax (0.4, 1.0 / t->d), by = 0.1;

    for (int round = 0; round < ROUNDS; round++, by *= 0.6) {
        for (int64_t i = 0; i < KEPT * MOVES; i++) {
            double *to = t->cube + (KEPT + i) * t->d;
            move (t, t->cube + i / MOVES * t->d, by, share, to);
            t->score[KEPT + i] = score (t, to);
        }
        keep_best (t, POOL, KEPT);
    }
}

/* ---- the proposal ---- */

static bool is_new (const struct study *t, const double *x)
{
    for (long i = 1; i <= t->s->created; i++)
        if (!memcmp (searcher_point (t->s, i), x, t->d * sizeof (*x)))
            return false;
    return true;
}

/* The best candidate that is not the point of a trial. */
static bool take_best (struct study *t, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < t->d; k++)
            x[k] = value_at (t->dims + k, t->cube[i * t->d + k]);
        if (is_new (t, x))
            return true;
    }
    return false;
}

static bool propose (struct study *t, double *x)
{
    read_data (t);
    if (fit (t) < 0)
        return false;
    believe_pending (t);
    make_candidates (t);
    keep_best (t, CANDIDATES, KEPT);
    improve_candidates (t);
    if (take_best (t, KEPT, x))
        return true;
    make_candidates (t);
    keep_best (t, CANDIDATES, CANDIDATES);
    return take_best (t, CANDIDATES, x);
}

static long start (const struct searcher *s)
{
    long n = s->n + 2;

    return n < START_MIN ? START_MIN : n > START_MAX ? START_MAX : n;
}

static long good_trials (const struct searcher *s)
{
    long n = 0;

    for (long i = 1; i <= s->created; i++)
        n += isfinite (*searcher_value (s, i));
    return n;
}

static void gp_point (const struct searcher *s, long trial, double *x)
{
    struct study t;

    if (s->n == 0 || trial <= start (s) || good_trials (s) < 3) {
        sobol_point (s, trial, x);
        return;
    }
    /* without a model a point of the sequence is a point, too */
    if (study_open (&t, s, trial) < 0 || !propose (&t, x))
        random_point (s, trial, x);
    study_close (&t);
}

static void gp_plan (const struct request *request, struct plan *plan)
{
    plan_flat (plan, request->config, request->config->max_trials);
}

const struct searcher_ops searcher_gp = {
    .plan = gp_plan,
    .keeps = true,
    .point = gp_point,
};
