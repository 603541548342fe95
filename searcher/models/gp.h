/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussian process regression. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Matern-5/2 kernel with a length scale for each dimension (C. E. Rasmussen
 * and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, 4.2
 * and 5.4.1), unit variance, and noise.  A dimension is a number in [0, 1], or
 * a category, whose distance to another is 1; what is not there is -1.
 */
struct gp;

/* Room for 'max' points of 'd' dimensions; category[i]: dimension i is one.
 * NULL if there is no memory.
 */
struct gp *gp_create (int64_t max, int64_t d, const bool *category);
void gp_destroy (struct gp *gp);

/* Let gp_fit() warp nothing, which takes less time. */
void gp_keep_straight (struct gp *gp);

/* Take n points (z[i * d ...]) and their values y, of mean 0 and variance 1,
 * of which value i has the variance extra[i] (NULL: 0) beyond the noise, and
 * fit the length scales and the noise: the most probable ones under a prior
 * that holds for any d (C. Hvarfner and others, arXiv 2402.02229).  Of many
 * points a part is fitted first.
 *
 * Numbers are warped, each dimension by its own curve (kumaraswamy.h; J. Snoek
 * and others, arXiv 1402.0929), where that is clearly more probable: functions
 * change more in one part of a range than in another.  The points are those
 * before the warp, everywhere here.
 *
 * Returns 0, or -1 if the points are degenerate.
 */
int gp_fit (struct gp *gp, int64_t n, const double *z, const double *y, const double *extra);

/* Add a point with the value that is expected there. */
int gp_believe (struct gp *gp, const double *z);

/* Mean and variance (NULL: not wanted) at a point. */
void gp_predict (const struct gp *gp, const double *z, double *mean, double *variance);

/* Minus the logarithm, but for a constant, of how probable parameters are given
 * what it was fitted to last, and the gradient: d logarithms of length scales,
 * that of the noise's variance, d logarithms of the curves' a, and d of b.  It
 * must be fitted anew before it predicts.
 */
double gp_posterior (struct gp *gp, const double *theta, double *gradient);

/* Smallest expected value at the points that it knows. */
double gp_best (const struct gp *gp);

/* Mean of the squared errors of predicting each value from all others, in
 * units of the values' variance: 0 is perfect, 1 as good as the mean.
 */
double gp_error (const struct gp *gp);
