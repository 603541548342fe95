/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian process regression. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Matern-5/2 kernel with a length scale for each dimension (C. E. Rasmussen and
 * C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, 4.2 and
 * 5.4.1), unit variance, and noise.  A dimension is a number in [0, 1], or a
 * category: two different categories have the distance 1.  The value -1 stands
 * for an inactive parameter.
 */
struct gp;

/* Allocate room for 'max' points of 'd' dimensions; category[i] tells whether
 * dimension i is a category.  Returns NULL if out of memory.
 */
struct gp *gp_create (int64_t max, int64_t d, const bool *category);
void gp_destroy (struct gp *gp);

/* Turn warps off in gp_fit(), which makes it faster. */
void gp_keep_straight (struct gp *gp);

/* Fit n points (z[i * d ...]) with values y of mean 0 and variance 1; value i
 * has the variance extra[i] (NULL: 0) in addition to the noise.  Finds the most
 * probable length scales and noise under a prior that suits any d (C. Hvarfner
 * and others, arXiv 2402.02229).  Of many points a part is fitted first.
 *
 * Numeric dimensions are warped, each by its own curve (numeric.h; J. Snoek
 * and others, arXiv 1402.0929), if that is clearly more probable: functions
 * often change more in one part of a range than in another.  Points are always
 * passed unwarped.
 *
 * Returns 0, or -1 if the points are degenerate.
 */
int gp_fit (struct gp *gp, int64_t n, const double *z, const double *y, const double *extra);

/* Add a point with the value that is expected there. */
int gp_believe (struct gp *gp, const double *z);

/* Compute the mean and the variance (may be NULL) at a point. */
void gp_predict (const struct gp *gp, const double *z, double *mean, double *variance);

/* Minus the log posterior density of hyperparameters, up to a constant, given
 * the points of the last fit, and its gradient. theta: d logs of length scales,
 * the log of the noise variance, d logs of the warps' a, d logs of b.  Call
 * gp_fit() again before the next prediction.
 */
double gp_posterior (struct gp *gp, const double *theta, double *gradient);

/* Smallest expected value at the known points. */
double gp_best (const struct gp *gp);

/* Mean squared error of predicting each value from all others (leave one out),
 * relative to the variance of the values: 0 is perfect, 1 is as good as
 * predicting the mean.
 */
double gp_error (const struct gp *gp);
