/* SPDX-License-Identifier: Apache-2.0 */
/* The acquisition function: the expected improvement of a trial at a point. */
#include "searcher/models/improve.h"

#include <stdlib.h>

#include "searcher/state/point.h"

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

/* Exponential numbers over their sum: uniform on the simplex. */
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

/* As the budget is spent, time counts less (E. H. Lee and others, arXiv
 * 2003.10870).
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

static double
weighted (const struct improve *a, const double *mean, const double *deviation)
{
    double sum = 0, square = 0;

    for (int64_t k = 0; k < a->t->m; k++) {
        sum += a->weight[k] * mean[k];
        square += a->weight[k] * a->weight[k] * deviation[k] * deviation[k];
    }
    return log_improvement (sum, sqrt (square), a->best);
}

/* Logarithm of the seconds, but for a constant. */
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
        gain = log_improvement (*mean, *deviation, a->best);
    else if (a->boxes)
        gain = pareto_log_ehvi (a->boxes, mean, deviation);
    else
        gain = weighted (a, mean, deviation);
    return a->thrift > 0 ? gain - a->thrift * log_cost (t) : gain;
}
