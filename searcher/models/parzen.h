/* SPDX-License-Identifier: Apache-2.0 */
/* A Parzen estimator: a density made of a kernel round each of some points. */
#pragma once

#include <stdint.h>

#include "searcher/numeric/rng.h"
#include "searcher/space/space.h"

/* As Optuna's default from 5.0 on (S. Watanabe, arXiv 2304.11127, and its
 * documentation): each kernel is a product over the dimensions of truncated
 * normals, of their masses for integers, and of a peak for a choice.  A
 * normal is as wide as the larger distance to its neighbours in its
 * dimension, within limits.  The last kernel is the prior: wide, in the
 * middle.  Weights fall with age beyond the newest 25 kernels.
 */
struct parzen;

/* 'points' are pointers to n coordinates (space_inner()) each, the oldest
 * first; they are read until the estimator is destroyed.  NULL if there is no
 * memory.
 */
struct parzen *parzen_create (const struct dim *dims, int64_t n, const double *const *points,
                              int64_t count);
void parzen_destroy (struct parzen *p);

/* Draw a point; u[i] are coordinates of values. */
void parzen_sample (const struct parzen *p, struct rng *r, double *u);

/* Logarithm of the density at such a point. */
double parzen_log (const struct parzen *p, const double *u);
