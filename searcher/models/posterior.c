/* SPDX-License-Identifier: Apache-2.0 */
/* Posterior density of a Gaussian process's hyperparameters, and its gradient. */
#include <math.h>
#include <string.h>

#include "searcher/models/gp_internal.h"
#include "searcher/numeric/numeric.h"

static const double jitter = 1e-8, usual_noise = 1e-3;

/* Variance of log a and log b around 0: 19 of 20 lie between one half and two. */
static const double warp_variance = 0.125;

static double squared_distance (const struct gp *gp, int64_t k, double u, double v)
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
                *p++ = squared_distance (gp, k, z[i], z[j]);
    }
}

/* Warp the numeric dimensions. */
static void set_warp (struct gp *gp, const double *theta)
{
    const double *log_a = theta + gp->d + 1, *log_b = log_a + gp->d;

    for (int64_t k = 0; k < gp->d; k++) {
        int64_t at = k * gp->max;
        if (gp->category[k])
            continue;
        gp->a[k] = exp (log_a[k]);
        gp->b[k] = exp (log_b[k]);
        kumaraswamy (gp->u + at, gp->a[k], gp->b[k], gp->n, gp->z + at,
                     gp->bending ? gp->by_a + at : NULL, gp->by_b + at);
    }
}

void gp_set_points (struct gp *gp, const double *theta)
{
    for (int64_t k = 0; k < gp->d; k++)
        memcpy (gp->z + k * gp->max, gp->u + k * gp->max, gp->n * sizeof (double));
    if (gp->warped || gp->bending)
        set_warp (gp, theta);
    set_pairs (gp);
}

double gp_diagonal (const double *theta, int64_t d)
{
    return exp (theta[d]) + jitter;
}

static void set_covariance (struct gp *gp, const double *theta)
{
    double noise = gp_diagonal (theta, gp->d);
    int64_t pairs = pairs_of (gp), at = 0;

    memset (gp->r2, 0, pairs * sizeof (double));
    for (int64_t k = 0; k < gp->d; k++) {
        gp->scale[k] = exp (-2 * theta[k]); /* 1/l^2 */
        matern_add (gp->r2, gp->pair + k * pairs, gp->scale[k], pairs);
    }
    matern (gp->r2, gp->slope, pairs);
    for (int64_t i = 0; i < gp->n; i++) {
        memcpy (gp_row (gp->l, gp, i), gp->r2 + at, i * sizeof (double));
        gp_row (gp->l, gp, i)[i] = 1 + noise + gp->extra[i];
        at += i;
    }
}

void gp_set_alpha (struct gp *gp)
{
    const struct factor f = gp_factor (gp);

    factor_solve (&f, gp->y, gp->alpha);
    factor_solve_back (&f, gp->alpha);
}

int gp_set_covariance (struct gp *gp, const double *theta)
{
    const struct factor f = gp_factor (gp);

    set_covariance (gp, theta);
    if (factor_make (&f, 0) < 0)
        return -1;
    gp_set_alpha (gp);
    return 0;
}

/* It grows with the distances in a unit cube of d dimensions. */
double gp_usual_scale (const struct gp *gp)
{
    return log (0.3) + 0.5 * log ((double)gp->d);
}

static double add_normal (double z, double variance, double *g)
{
    *g += z / variance;
    return z * z / variance / 2;
}

static double prior (const struct gp *gp, const double *theta, double *g)
{
    double mean = gp_usual_scale (gp), f = 0;
    int64_t d = gp->d;

    for (int64_t k = 0; k < d; k++)
        f += add_normal (theta[k] - mean, 1, g + k);
    f += add_normal (theta[d] - log (usual_noise), 4, g + d);
    for (int64_t k = d + 1; k < gp_parameters (gp, gp->bending); k++)
        f += add_normal (theta[k], warp_variance, g + k);
    return f;
}

/* dr2 = 2/l^2 (z_i - z_j)(dz_i - dz_j); summed over all pairs this is dz_i
 * times a sum over j.  The weights are -2 times the gradient by r2.
 */
static void add_warp_gradient (const struct gp *gp, int64_t k, double *g)
{
    const double *z = gp->z + k * gp->max, *w = gp->slope;
    double *sum = gp->k;

    memset (sum, 0, gp->n * sizeof (*sum));
    for (int64_t i = 0; i < gp->n; i++)
        for (int64_t j = 0; j < i; j++, w++) {
            double by = *w * (z[i] - z[j]);
            sum[i] += by;
            sum[j] -= by;
        }
    g += gp->d + 1 + k;
    g[0] -= gp->scale[k] * factor_dot (sum, gp->by_a + k * gp->max, gp->n);
    g[gp->d] -= gp->scale[k] * factor_dot (sum, gp->by_b + k * gp->max, gp->n);
}

/* d/d log l = -2 D^2/l^2 dK/dr2; the weights overwrite the slopes */
static void add_gradient (const struct gp *gp, const double *theta, double *g)
{
    const struct factor f = gp_factor (gp);
    int64_t pairs = pairs_of (gp);
    double trace = factor_weigh (&f, gp->inv, gp->alpha, -2, gp->slope);

    for (int64_t k = 0; k < gp->d; k++) {
        g[k] += factor_dot (gp->slope, gp->pair + k * pairs, pairs) * gp->scale[k];
        if (gp->bending && !gp->category[k])
            add_warp_gradient (gp, k, g);
    }
    g[gp->d] += trace / 2 * exp (theta[gp->d]);
}

double gp_energy (void *arg, const double *theta, double *g)
{
    struct gp *gp = arg;
    const struct factor l = gp_factor (gp);
    double f;

    if (gp->bending)
        gp_set_points (gp, theta);
    if (gp_set_covariance (gp, theta) < 0)
        return INFINITY;
    factor_invert (&l, gp->inv);
    memset (g, 0, gp_parameters (gp, gp->bending) * sizeof (*g));
    add_gradient (gp, theta, g);
    f = factor_dot (gp->y, gp->alpha, gp->n) / 2 + prior (gp, theta, g);
    for (int64_t i = 0; i < gp->n; i++)
        f += log (gp_row (gp->l, gp, i)[i]);
    return f;
}

double gp_posterior (struct gp *gp, const double *theta, double *gradient)
{
    double f;

    gp->bending = true;
    f = gp_energy (gp, theta, gradient);
    gp->bending = false;
    return f;
}

double gp_promise (const struct gp *gp, const double *g)
{
    double sum = 0;

    for (int64_t k = gp->d + 1; k < gp_parameters (gp, true); k++)
        sum += g[k] * g[k] * warp_variance / 2;
    return sum;
}
