/* SPDX-License-Identifier: Apache-2.0 */
/* The mathematics of Gaussian processes: factors, minima, kernels and warps. */
#pragma once

#include <stdint.h>

/* ---- factor.c: Cholesky factorisation of a covariance, and solving with it ---- */

/* A lower triangle: row i starts at l + i * stride. */
struct factor {
    double *l;
    int64_t n, stride;
};

/* Replace rows from .. n-1 of a covariance by those of its factor L; earlier
 * rows are factored already.  Returns -1 if it is not positive definite.
 */
int factor_make (const struct factor *f, int64_t from);

/* x = L^-1 b; b may be x. */
void factor_solve (const struct factor *f, const double *b, double *x);
/* x = L^-T x */
void factor_solve_back (const struct factor *f, double *x);

/* Write column i of L^-1 to row i of inv, from i on. */
void factor_invert (const struct factor *f, double *inv);

/* ((L L^T)^-1)_ij, i >= j, computed from 'inv'. */
double factor_inverse (const struct factor *f, const double *inv, int64_t i, int64_t j);

/* w_ij *= scale * (inverse_ij - a_i a_j) for all pairs i > j, in order.
 * Returns the sum of inverse_ii - a_i^2, without scale and w.
 */
double factor_weigh (const struct factor *f, const double *inv, const double *a, double scale,
                     double *w);

double factor_dot (const double *a, const double *b, int64_t n);

/* ---- minimise a smooth function within bounds, by BFGS (bfgs.c) ---- */

/* Returns the value at x[0 .. n-1] and its gradient; INFINITY where it is undefined. */
typedef double bfgs_f (void *arg, const double *x, double *gradient);

struct bfgs {
    int64_t n;
    const double *low, *high;
    bfgs_f *f;
    void *arg;
    double tolerance; /* stop when a step gains less */
    double *room;     /* bfgs_room (n) doubles, kept between calls */
};

int64_t bfgs_room (int64_t n);

/* Start with the identity as inverse Hessian, or with the one of the last call,
 * divided by 'scale'.
 */
void bfgs_reset (const struct bfgs *b);
void bfgs_scale (const struct bfgs *b, double scale);

/* Move x downhill in at most 'steps' steps (J. Nocedal and S. J. Wright,
 * Numerical Optimization, 2006, 6.1, with steps cut off at the bounds).
 */
void bfgs_minimise (const struct bfgs *b, double *x, int steps);

/* ---- Matern covariances of many pairs of points at once (matern.c) ---- */

/* r2[i] += p[i] * scale */
void matern_add (double *r2, const double *p, double scale, int64_t n);
/* r2[i] += (z[i] - u)^2 * scale, or (z[i] != u) * scale */
void matern_add_square (double *r2, const double *z, double u, double scale, int64_t n);
void matern_add_unequal (double *r2, const double *z, double u, double scale, int64_t n);

/* Replace squared distances by covariances (1 + a + a^2/3) e^-a, a = sqrt(5
 * r2); 'slope', unless NULL, receives their derivatives by r2.
 */
void matern (double *r2, double *slope, int64_t n);

/* ---- the Kumaraswamy warp: widens one part of a range and narrows another (kumaraswamy.c) ---- */

/* The distribution function of P. Kumaraswamy (Journal of Hydrology 46, 1980),
 * w = 1 - (1 - u^a)^b, maps [0, 1] to itself; a = b = 1 is the identity, and
 * negative u stay unchanged.  The bits are the same on all processors.
 *
 * For n numbers u, compute w and, unless NULL, the derivatives by log a and log
 * b.
 */
void kumaraswamy (const double *u, double a, double b, int64_t n, double *w, double *by_a,
                  double *by_b);

/* The same for one point: u[i] with a[i] and b[i]. */
void kumaraswamy_point (const double *u, const double *a, const double *b, int64_t n, double *w);

/* ---- the Yeo-Johnson transformation, which makes values look normal (warp.c) ---- */

/* Standardise the n values y[] in place, and write to warped[] their power
 * transformation of maximum likelihood (I.-K. Yeo and R. A. Johnson, Biometrika
 * 87, 2000), standardised again and limited to -6 .. 3.
 */
void warp_values (double *y, int64_t n, double *warped);
