/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the variance of a value each parameter explains. */
#pragma once

#include "searcher/searcher.h"

/* Fits the Gaussian process of the search to the trials and decomposes its mean
 * over the space (functional ANOVA: F. Hutter and others, ICML 2014; I. M.
 * Sobol, 2001).  Values are first warped to look normal, so that one diverged
 * trial does not dominate the variance.
 */
enum { MARGINAL_POINTS = 20, SURFACE_POINTS = 12, SURFACES_MAX = 6 };

/* Expected value as a function of one parameter, averaged over all others. */
struct marginal {
    double share; /* of the variance, 0 to 1 */
    int n;        /* points */
    double x[MARGINAL_POINTS], mean[MARGINAL_POINTS];
};

/* The same for two parameters: mean[j * na + i] is at point i of a and point j of b. */
struct surface {
    long a, b;    /* parameters */
    double share; /* of the variance, that only both together explain */
    int na, nb;
    double xa[SURFACE_POINTS], xb[SURFACE_POINTS];
    double mean[SURFACE_POINTS * SURFACE_POINTS];
};

struct importance {
    long n; /* parameters */
    struct marginal *marginals;
    struct surface surfaces[SURFACES_MAX];
    int nsurfaces;
};

/* Fit to the finite ones of 'n' values y[] at points x[], over the space of
 * 's'.  IMPORTANCE_NONE: the values are too few, or equal; IMPORTANCE_FAILED: out
 * of memory.  Call importance_free() in any case.
 */
enum importance_result { IMPORTANCE_FAILED = -1, IMPORTANCE_FITTED, IMPORTANCE_NONE };
enum importance_result importance_fit (struct importance *m, const struct searcher *s,
                                       const double *const *x, const double *y, long n);
void importance_free (struct importance *m);
