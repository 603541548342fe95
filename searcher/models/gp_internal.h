/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the Gaussian process, for gp.c, posterior.c and their test. */
#pragma once

#include "searcher/models/gp.h"
#include "searcher/numeric/numeric.h"

struct gp {
    int64_t max, d, n;
    const bool *category;
    bool straight; /* has no warps at all */
    bool warped;   /* z is not u */
    bool bending;  /* theta's warps are being fitted */
    double *u, *z; /* d columns of max numbers: as given, and as warped */
    double *y, *extra;
    double *theta;       /* see gp_posterior() */
    double *low, *high;  /* bounds of theta */
    double *a, *b;       /* of each dimension's warp */
    double *by_a, *by_b; /* derivatives of z by log a and log b */
    double *point;       /* a point, warped */
    double *pair;        /* squared distance of i > j: d arrays of pairs */
    double *r2, *slope;  /* of each pair: squared distance, dK/dr2 */
    double *l;           /* Cholesky factor, lower, n x n */
    double *inv;         /* column i of its inverse in row i, from i on */
    double *alpha, *scale, *k;
    double *search; /* what the optimiser needs, with and without warps */
    double *search_warp;
};

static inline double *gp_row (double *m, const struct gp *gp, int64_t i)
{
    return m + i * gp->max;
}

static inline struct factor gp_factor (const struct gp *gp)
{
    return (struct factor){ gp->l, gp->n, gp->max };
}

/* Number of hyperparameters without, and with, the warps. */
static inline int64_t gp_parameters (const struct gp *gp, bool warps)
{
    return (warps ? 3 * gp->d : gp->d) + 1;
}

/* Noise variance, as it appears on the diagonal. */
double gp_diagonal (const double *theta, int64_t d);

/* Logarithm of the length scale that the prior expects. */
double gp_usual_scale (const struct gp *gp);

/* Set z from u, using the warps of theta if there are any, and recompute the pairs. */
void gp_set_points (struct gp *gp, const double *theta);

/* Set the covariance for theta, its factor and alpha.  Returns -1 if it is not
 * positive definite.
 */
int gp_set_covariance (struct gp *gp, const double *theta);
void gp_set_alpha (struct gp *gp);

/* A bfgs_f: gp_posterior(), over the warps only if gp->bending. */
double gp_energy (void *gp, const double *theta, double *gradient);

/* The gain to expect from warps: the likelihood continues with its slope at the
 * identity, and only the prior holds the warps back.
 */
double gp_promise (const struct gp *gp, const double *gradient);
