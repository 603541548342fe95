/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factorisation of a covariance, and solving with it. */
#pragma once

#include <stdint.h>

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
