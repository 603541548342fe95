/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a Gaussian process: for gp.c, posterior.c and their test only. */
#pragma once

#include "searcher/models/gp.h"
#include "searcher/numeric/factor.h"

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

/* Length scales and noise; with the warps. */
static inline int64_t gp_parameters (const struct gp *gp, bool warps)
{
    return (warps ? 3 * gp->d : gp->d) + 1;
}

/* Variance of the noise, as it is on the diagonal. */
double gp_diagonal (const double *theta, int64_t d);

/* Logarithm of a length scale that is to be expected. */
double gp_usual_scale (const struct gp *gp);

/* z from u, by the warps of theta, or as it is; then pairs anew. */
void gp_set_points (struct gp *gp, const double *theta);

/* Covariance of theta; its factor and alpha.  -1: not positive definite. */
int gp_set_covariance (struct gp *gp, const double *theta);
void gp_set_alpha (struct gp *gp);

/* gp_posterior() of the warps, too, only if gp->bending: a bfgs_f. */
double gp_energy (void *gp, const double *theta, double *gradient);

/* What warps would gain if the likelihood went on with the slope that it has
 * where there are none, and only their prior held them.
 */
double gp_promise (const struct gp *gp, const double *gradient);
