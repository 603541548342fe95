/* SPDX-License-Identifier: Apache-2.0 */
/* Fit a Gaussian process by its most probable parameters; predict. */
#include "searcher/gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/bfgs.h"
#include "searcher/factor.h"
#include "searcher/matern.h"

/* With more points than PART so many are fitted first, and then FEW steps with
 * all.
 */
enum { STEPS = 30, PART = 40, FEW = 4 };

static const double jitter = 1e-8;

struct gp {
    int64_t max, d, n;
    const bool *category;
    double *z; /* d columns of max numbers */
    double *y, *extra;
    double *theta;      /* log of the length scales, then of the noise */
    double *low, *high; /* bounds of theta */
    double *pair;       /* squared distance of i > j: d arrays of pairs */
    double *r2, *slope; /* of each pair: squared distance, dK/dr2 */
    double *l;          /* Cholesky factor, lower, n x n */
    double *inv;        /* column i of its inverse in row i, from i on */
    double *alpha, *scale, *k;
    double *search; /* what the optimiser needs */
};

static double *row (double *m, const struct gp *gp, int64_t i)
{
    return m + i * gp->max;
}

struct gp *gp_create (int64_t max, int64_t d, const bool *category)
{
    struct gp *gp = calloc (1, sizeof (*gp));
    int64_t pairs = max * (max - 1) / 2, t = d + 1;
    const int64_t sizes[] = {
        max * d, max,       max,       t,   t, t,   pairs * d,    pairs,
        pairs,   max * max, max * max, max, d, max, bfgs_room (t)
    };
    double **parts[] = { &gp->z,     &gp->y,    &gp->extra, &gp->theta,
                         &gp->low,   &gp->high, &gp->pair,  &gp->r2,
                         &gp->slope, &gp->l,    &gp->inv,   &gp->alpha,
                         &gp->scale, &gp->k,    &gp->search };
    int64_t total = 1;
    double *at;

    if (!gp)
        return NULL;
    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++)
        total += sizes[i];
    if (!(at = malloc (total * sizeof (double)))) {
        free (gp);
        return NULL;
    }
    gp->max = max;
    gp->d = d;
    gp->category = category;
    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++) {
        *parts[i] = at;
        at += sizes[i];
    }
    return gp;
}

void gp_destroy (struct gp *gp)
{
    if (gp) {
        free (gp->z);
        free (gp);
    }
}

/* ---- kernel ---- */

static double square (const struct gp *gp, int64_t k, double u, double v)
{
    if (gp->category[k])
        return u != v;
    return (u - v) * (u - v);
}

static int64_t pairs_of (const struct gp *gp)
{
    return gp->n * (gp->n - 1) / 2;
}

static void set_pairs (struct gp *gp)
{
    double *p = gp->pair;

    for (int64_t k = 0; k < gp->d; k++) {
        const double *z = gp->z + k * gp->max;
        for (int64_t i = 0; i < gp->n; i++)
            for (int64_t j = 0; j < i; j++)
                *p++ = square (gp, k, z[i], z[j]);
    }
}

/* 1/l^2 of each dimension. */
static void set_scale (struct gp *gp, const double *theta)
{
    for (int64_t k = 0; k < gp->d; k++)
        gp->scale[k] = exp (-2 * theta[k]);
}

static void set_covariance (struct gp *gp, const double *theta)
{
    double noise = exp (theta[gp->d]) + jitter;
    int64_t pairs = pairs_of (gp), at = 0;

    set_scale (gp, theta);
    memset (gp->r2, 0, pairs * sizeof (double));
    for (int64_t k = 0; k < gp->d; k++)
        matern_add (gp->r2, gp->pair + k * pairs, gp->scale[k], pairs);
    matern (gp->r2, gp->slope, pairs);
    for (int64_t i = 0; i < gp->n; i++) {
        memcpy (row (gp->l, gp, i), gp->r2 + at, i * sizeof (double));
        row (gp->l, gp, i)[i] = 1 + noise + gp->extra[i];
        at += i;
    }
}

static struct factor factor (const struct gp *gp)
{
    return (struct factor){ gp->l, gp->n, gp->max };
}

static void set_alpha (struct gp *gp)
{
    const struct factor f = factor (gp);

    factor_solve (&f, gp->y, gp->alpha);
    factor_solve_back (&f, gp->alpha);
}

/* ---- the probability of the parameters ---- */

/* In the logarithm; grows with the distances in the unit cube. */
static double usual_scale (const struct gp *gp)
{
    return log (0.3) + 0.5 * log ((double)gp->d);
}

static double prior (const struct gp *gp, const double *theta, double *g)
{
    double mean = usual_scale (gp), f = 0, z;

    for (int64_t k = 0; k < gp->d; k++) {
        z = theta[k] - mean;
        f += z * z / 2;
        g[k] += z;
    }
    z = (theta[gp->d] - log (1e-3)) / 2;
    g[gp->d] += z / 2;
    return f + z * z / 2;
}

/* d/d log l = -2 D^2/l^2 dK/dr2; the weights take the place of the slopes */
static void add_gradient (const struct gp *gp, const double *theta, double *g)
{
    const struct factor f = factor (gp);
    int64_t pairs = pairs_of (gp);
    double trace = factor_weigh (&f, gp->inv, gp->alpha, -2, gp->slope);

    for (int64_t k = 0; k < gp->d; k++)
        g[k] +=
            factor_dot (gp->slope, gp->pair + k * pairs, pairs) * gp->scale[k];
    g[gp->d] += trace / 2 * exp (theta[gp->d]);
}

/* Minus the log of the posterior, and its gradient. */
static double energy (void *arg, const double *theta, double *g)
{
    struct gp *gp = arg;
    const struct factor l = factor (gp);
    double f;

    set_covariance (gp, theta);
    if (factor_make (&l, 0) < 0)
        return INFINITY;
    set_alpha (gp);
    factor_invert (&l, gp->inv);
    memset (g, 0, (gp->d + 1) * sizeof (*g));
    add_gradient (gp, theta, g);
    f = factor_dot (gp->y, gp->alpha, gp->n) / 2 + prior (gp, theta, g);
    for (int64_t i = 0; i < gp->n; i++)
        f += log (row (gp->l, gp, i)[i]);
    return f;
}

/* ---- fit ---- */

static void set_start (struct gp *gp)
{
    double mean = usual_scale (gp);

    for (int64_t k = 0; k <= gp->d; k++) {
        gp->low[k] = k < gp->d ? log (0.03) : log (1e-6);
        gp->high[k] = k < gp->d ? log (20) : log (0.5);
        gp->theta[k] = k < gp->d ? fmin (mean, gp->high[k]) : log (1e-3);
    }
}

struct data {
    const double *z, *y, *extra;
};

static void
load (struct gp *gp, const int64_t *which, int64_t n, const struct data *data)
{
    gp->n = n;
    for (int64_t i = 0; i < n; i++) {
        int64_t from = which ? which[i] : i;
        for (int64_t k = 0; k < gp->d; k++)
            gp->z[k * gp->max + i] = data->z[from * gp->d + k];
        gp->y[i] = data->y[from];
        gp->extra[i] = data->extra ? data->extra[from] : 0;
    }
    set_pairs (gp);
}

/* Every so many-th point by value, the best and the worst included. */
static void
choose_part (const double *y, int64_t n, int64_t *part, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i;
        for (; k > 0 && y[order[k - 1]] > y[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    for (int64_t i = 0; i < PART; i++)
        part[i] = order[i * (n - 1) / (PART - 1)];
}

int gp_fit (struct gp *gp,
            int64_t n,
            const double *z,
            const double *y,
            const double *extra)
{
    const struct data data = { z, y, extra };
    const struct bfgs b = { .n = gp->d + 1,
                            .low = gp->low,
                            .high = gp->high,
                            .f = energy,
                            .arg = gp,
                            .tolerance = 1e-4,
                            .room = gp->search };
    int64_t part[PART];
    struct factor l;
    bool many = n > PART * 3 / 2;

    set_start (gp);
    bfgs_reset (&b);
    if (many) {
        /* the room of the factor holds the order of the points */
        choose_part (y, n, part, (int64_t *)gp->l);
        load (gp, part, PART, &data);
        bfgs_minimise (&b, gp->theta, STEPS);
        bfgs_scale (&b, (double)n / PART);
    }
    load (gp, NULL, n, &data);
    bfgs_minimise (&b, gp->theta, many ? FEW : STEPS);
    set_covariance (gp, gp->theta);
    l = factor (gp);
    if (factor_make (&l, 0) < 0)
        return -1;
    set_alpha (gp);
    return 0;
}

/* ---- predict ---- */

/* Covariance of a point with those that are known. */
static void covariances (const struct gp *gp, const double *z, double *k)
{
    memset (k, 0, gp->n * sizeof (*k));
    for (int64_t j = 0; j < gp->d; j++) {
        const double *zj = gp->z + j * gp->max;
        if (gp->category[j])
            matern_add_unequal (k, zj, z[j], gp->scale[j], gp->n);
        else
            matern_add_square (k, zj, z[j], gp->scale[j], gp->n);
    }
    matern (k, NULL, gp->n);
}

int gp_believe (struct gp *gp, const double *z)
{
    double *last = row (gp->l, gp, gp->n);
    struct factor l;

    if (gp->n == gp->max)
        return -1;
    covariances (gp, z, last);
    gp->y[gp->n] = factor_dot (last, gp->alpha, gp->n);
    last[gp->n] = 1 + exp (gp->theta[gp->d]) + jitter;
    gp->extra[gp->n] = 0;
    for (int64_t k = 0; k < gp->d; k++)
        gp->z[k * gp->max + gp->n] = z[k];
    gp->n++;
    l = factor (gp);
    if (factor_make (&l, gp->n - 1) < 0) {
        gp->n--;
        return -1;
    }
    set_alpha (gp);
    return 0;
}

void gp_predict (const struct gp *gp,
                 const double *z,
                 double *mean,
                 double *variance)
{
    const struct factor f = factor (gp);
    double left;

    covariances (gp, z, gp->k);
    *mean = factor_dot (gp->k, gp->alpha, gp->n);
    factor_solve (&f, gp->k, gp->k);
    left = 1 - factor_dot (gp->k, gp->k, gp->n);
    *variance = left > 1e-10 ? left : 1e-10;
}

double gp_noise (const struct gp *gp)
{
    return exp (gp->theta[gp->d]);
}

double gp_best (const struct gp *gp)
{
    double noise = exp (gp->theta[gp->d]) + jitter, best = INFINITY;

    /* K alpha = y, and the mean there is (K - noise) alpha */
    for (int64_t i = 0; i < gp->n; i++)
        best = fmin (best, gp->y[i] - (noise + gp->extra[i]) * gp->alpha[i]);
    return best;
}

/* alpha_i / (K^-1)_ii is the error without point i (Rasmussen 5.12) */
double gp_error (const struct gp *gp)
{
    const struct factor f = factor (gp);
    double sum = 0, square_sum = 0;

    factor_invert (&f, gp->inv);
    for (int64_t i = 0; i < gp->n; i++) {
        double e = gp->alpha[i] / factor_inverse (&f, gp->inv, i, i);
        sum += e * e;
        square_sum += gp->y[i] * gp->y[i];
    }
    return sum / (square_sum + 1e-12);
}
