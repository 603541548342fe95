/* SPDX-License-Identifier: Apache-2.0 */
/* The surrogate model of a search: a Gaussian process for each objective. */
#include "searcher/models/models.h"

#include <stdlib.h>
#include <string.h>

#include "searcher/numeric/normal.h"
#include "searcher/numeric/numeric.h"
#include "searcher/objectives/pareto.h"
#include "searcher/state/state.h"

static int surrogate_allocate (struct surrogate *t)
{
    int64_t d = t->d;

    t->row = malloc (2 * POINTS_MAX * sizeof (*t->row));
    t->category = malloc (d * sizeof (*t->category));
    t->gp = calloc (t->m + 1, sizeof (struct gp *));
    t->z = malloc ((POINTS_MAX * (d + t->m + 2) + 2 * d) * sizeof (double));
    if (!t->row || !t->category || !t->gp || !t->z)
        return -1;
    t->order = t->row + POINTS_MAX;
    t->y = t->z + POINTS_MAX * d;
    t->noise = t->y + POINTS_MAX * (t->m + 1);
    t->x = t->noise + POINTS_MAX;
    t->feature = t->x + d;
    for (int64_t i = 0; i < d; i++)
        t->category[i] = searcher_dims (t->s)[i].type == PARAM_CATEGORICAL;
    for (int64_t k = 0; k < t->m; k++)
        if (!(t->gp[k] = gp_create (POINTS_MAX + PENDING_MAX, d, t->category)))
            return -1;
    return 0;
}

void surrogate_close (struct surrogate *t)
{
    for (int64_t k = 0; t->gp && k < t->m; k++)
        gp_destroy (t->gp[k]);
    gp_destroy (t->cost);
    free (t->gp);
    free (t->row);
    free (t->category);
    free (t->z);
}

/* Mark the better half of POINTS_MAX. */
static int mark_best (const struct training_set *v, bool *best)
{
    int64_t *rows = malloc (POINTS_MAX / 2 * sizeof (*rows));
    int rv = -1;

    if (rows && pareto_best (v->value, v->n, v->m, POINTS_MAX / 2, rows) == 0) {
        for (int64_t i = 0; i < POINTS_MAX / 2; i++)
            best[rows[i]] = true;
        rv = 0;
    }
    free (rows);
    return rv;
}

static int choose_training_rows (struct surrogate *t)
{
    const struct training_set *v = t->v;
    bool *best = calloc (v->n + 1, sizeof (*best));
    int rv = best ? 0 : -1;

    if (rv == 0 && v->n > POINTS_MAX)
        rv = mark_best (v, best);
    for (int64_t i = 0; rv == 0 && i < v->n && t->n < POINTS_MAX; i++)
        if (v->n <= POINTS_MAX || best[i] || i >= v->n - POINTS_MAX / 2)
            t->row[t->n++] = i;
    free (best);
    return rv;
}

/* Features of a masked point: the position of a number in its range, the index of a choice. */
static void surrogate_features (const struct surrogate *t, const double *x, double *z)
{
    const struct dim *d = searcher_dims (t->s);

    for (int64_t k = 0; k < t->d; k++)
        z[k] = isnan (x[k]) ? -1 : t->category[k] ? x[k] : space_part (d + k, x[k]);
}

/* A bad trial counts as one of the worst. */
static void read_values (struct surrogate *t, int64_t k, double *y)
{
    double worst = -INFINITY;

    for (int64_t i = 0; i < t->n; i++) {
        y[i] = t->v->value[t->row[i] * t->m + k];
        if (isfinite (y[i]) && y[i] > worst)
            worst = y[i];
    }
    for (int64_t i = 0; i < t->n; i++)
        if (!isfinite (y[i]))
            y[i] = isfinite (worst) ? worst : 0;
}

static double mean_variance (const double *y, int64_t n, double *mean)
{
    double square = 0;

    *mean = 0;
    for (int64_t i = 0; i < n; i++)
        *mean += y[i] / n;
    for (int64_t i = 0; i < n; i++)
        square += (y[i] - *mean) * (y[i] - *mean) / n;
    return square;
}

/* Convert to units of the warped values. */
static void read_noise (struct surrogate *t, const double *y)
{
    double mean, square = mean_variance (y, t->n, &mean);

    for (int64_t i = 0; i < t->n; i++)
        t->noise[i] = t->v->noise[t->row[i]] / (square + 1e-12);
}

static void sort_points (struct surrogate *t, const double *y)
{
    for (int64_t i = 0; i < t->n; i++) {
        int64_t k = i;
        for (; k > 0 && y[t->order[k - 1]] > y[i]; k--)
            t->order[k] = t->order[k - 1];
        t->order[k] = i;
    }
}

/* Values are always warped.  Compared with no warp, and with choosing by
 * leave-one-out error, this was as good on BBOB and better on tables.
 */
static int fit_values (struct surrogate *t)
{
    double *y = t->y + t->m * POINTS_MAX;

    for (int64_t k = 0; k < t->m; k++) {
        read_values (t, k, y);
        if (k == 0)
            sort_points (t, y);
        if (t->v->noise)
            read_noise (t, y);
        warp_values (y, t->n, t->y + k * POINTS_MAX);
        if (gp_fit (t->gp[k], t->n, t->z, t->y + k * POINTS_MAX, t->v->noise ? t->noise : NULL) < 0)
            return -1;
    }
    return 0;
}

/* Fit the trials whose duration is known; it is not for those of an earlier search. */
static int fit_cost (struct surrogate *t)
{
    double *y = t->y + t->m * POINTS_MAX, mean;
    int64_t n = 0, d = t->d;
    double *z = malloc ((t->n * d + 1) * sizeof (*z));

    for (int64_t i = 0; z && i < t->n; i++) {
        long trial = surrogate_trial (t, i);
        double seconds = trial > 0 ? *searcher_seconds (t->s, trial) : 0;
        if (!(seconds > 0))
            continue;
        memcpy (z + n * d, t->z + i * d, d * sizeof (*z));
        y[n++] = log (seconds);
    }
    t->cost_deviation = sqrt (mean_variance (y, n, &mean));
    for (int64_t i = 0; i < n; i++)
        y[i] = (y[i] - mean) / (t->cost_deviation + 1e-12);
    if (z && n >= 3)
        t->cost = gp_create (POINTS_MAX, d, t->category);
    if (t->cost)
        gp_keep_straight (t->cost);
    if (t->cost && gp_fit (t->cost, n, z, y, NULL) < 0) {
        gp_destroy (t->cost);
        t->cost = NULL;
    }
    free (z);
    return 0;
}

int surrogate_open (struct surrogate *t, const struct searcher *s, const struct training_set *v)
{
    *t = (struct surrogate){ .s = s, .v = v, .d = s->n, .m = v->m };
    if (surrogate_allocate (t) < 0 || choose_training_rows (t) < 0)
        return -1;
    for (int64_t i = 0; i < t->n; i++)
        surrogate_features (t, searcher_point (s, surrogate_trial (t, i)), t->z + i * t->d);
    if (fit_values (t) < 0)
        return -1;
    return s->at_seconds ? fit_cost (t) : 0;
}

void surrogate_believe (struct surrogate *t)
{
    int64_t last = t->v->npending;
    int64_t first = last > PENDING_MAX ? last - PENDING_MAX : 0;

    for (int64_t i = last - 1; i >= first; i--) {
        surrogate_features (t, searcher_point (t->s, t->v->pending[i]), t->feature);
        for (int64_t k = 0; k < t->m; k++)
            gp_believe (t->gp[k], t->feature);
    }
}

/* ---- the expected improvement of a trial at a point ---- */

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

/* log of E[max(f - Y, 0)], Y normal, without underflow (S. Ament and others, arXiv 2310.20708). */
static double log_expected_improvement (double mean, double deviation, double f)
{
    const double sqrt_half_pi = 0x1.40d931ff62706p+0;
    double z = (f - mean) / deviation, rest;

    if (z > -1)
        return log (deviation)
               + log (z * erfc (-z * M_SQRT1_2) / 2 + exp (-z * z / 2 - LOG_SQRT_2PI));
    rest = 1 + z * sqrt_half_pi * erfcx (-z * M_SQRT1_2);
    return log (deviation) - z * z / 2 - LOG_SQRT_2PI
           + (rest > 1e-12 && z > -1e3 ? log (rest) : -2 * log (-z));
}

static int open_boxes (struct improve *a)
{
    const struct surrogate *t = a->t;
    double *y = malloc ((t->n * t->m + 1) * sizeof (*y));
    double reference[OBJECTIVES_MAX];

    for (int64_t k = 0; k < t->m; k++)
        reference[k] = -INFINITY;
    for (int64_t i = 0; y && i < t->n; i++)
        for (int64_t k = 0; k < t->m; k++) {
            double v = t->y[k * POINTS_MAX + i];
            y[i * t->m + k] = v;
            reference[k] = fmax (reference[k], v + 0.1);
        }
    if (y)
        a->boxes = pareto_boxes_create (y, t->n, t->m, reference);
    free (y);
    return a->boxes ? 0 : -1;
}

/* Exponential numbers divided by their sum are uniform on the simplex. */
static void set_weights (struct improve *a, struct rng *r)
{
    double sum = 0;

    for (int64_t k = 0; k < a->t->m; k++)
        sum += a->weight[k] = -log (rng_next (r));
    for (int64_t k = 0; k < a->t->m; k++)
        a->weight[k] /= sum;
    a->best = INFINITY;
    for (int64_t i = 0; i < a->t->n; i++) {
        double v = 0;
        for (int64_t k = 0; k < a->t->m; k++)
            v += a->weight[k] * a->t->y[k * POINTS_MAX + i];
        a->best = fmin (a->best, v);
    }
}

/* The more of the budget is spent, the less the duration counts (E. H. Lee and
 * others, arXiv 2003.10870).
 */
static double thrift_of (const struct searcher *s)
{
    return 1 - s->progress;
}

int improve_open (struct improve *a, struct surrogate *t, struct rng *r)
{
    *a = (struct improve){ .t = t };
    if (t->cost)
        a->thrift = thrift_of (t->s);
    if (t->m == 1)
        a->best = gp_best (t->gp[0]);
    else if (t->m <= EHVI_MAX)
        return open_boxes (a);
    else
        set_weights (a, r);
    return 0;
}

void improve_close (struct improve *a)
{
    pareto_boxes_destroy (a->boxes);
}

static double weighted (const struct improve *a, const double *mean, const double *deviation)
{
    double sum = 0, square = 0;

    for (int64_t k = 0; k < a->t->m; k++) {
        sum += a->weight[k] * mean[k];
        square += a->weight[k] * a->weight[k] * deviation[k] * deviation[k];
    }
    return log_expected_improvement (sum, sqrt (square), a->best);
}

/* Log of the duration, up to a constant. */
static double log_cost (const struct surrogate *t)
{
    double mean, variance;

    gp_predict (t->cost, t->feature, &mean, &variance);
    return mean * t->cost_deviation;
}

double improve_log (const struct improve *a, const double *x)
{
    const struct surrogate *t = a->t;
    double mean[OBJECTIVES_MAX], deviation[OBJECTIVES_MAX], gain;

    if (!point_allowed (t->s, x))
        return -INFINITY;
    surrogate_features (t, x, t->feature);
    for (int64_t k = 0; k < t->m; k++) {
        gp_predict (t->gp[k], t->feature, &mean[k], &deviation[k]);
        deviation[k] = sqrt (deviation[k]);
    }
    if (t->m == 1)
        gain = log_expected_improvement (*mean, *deviation, a->best);
    else if (a->boxes)
        gain = pareto_log_ehvi (a->boxes, mean, deviation);
    else
        gain = weighted (a, mean, deviation);
    return a->thrift > 0 ? gain - a->thrift * log_cost (t) : gain;
}
