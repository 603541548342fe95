/* SPDX-License-Identifier: Apache-2.0 */
/* A Parzen estimator: a density with a kernel around each of some points. */
#pragma once

#include <stdint.h>

#include "searcher/numeric/rng.h"
#include "searcher/space/space.h"

/* As Optuna's default since 5.0 (S. Watanabe, arXiv 2304.11127, and Optuna's
 * documentation): each kernel is a product over the dimensions of truncated
 * normals, their masses for integers, and a peak for a choice.  The width of a
 * normal is the larger distance to its neighbours in that dimension, within
 * limits.  The last kernel is the prior: wide, in the middle.  Weights decrease
 * with age beyond the newest 25 kernels.
 */
struct parzen;

/* 'points' are pointers to n coordinates (space_inner()) each, the oldest
 * first; they must stay valid until the estimator is destroyed.  Returns NULL
 * if out of memory.
 */
struct parzen *parzen_create (const struct dim *dims, int64_t n, const double *const *points,
                              int64_t count);
void parzen_destroy (struct parzen *p);

/* Draw a point; u[i] is set to the coordinate of a value. */
void parzen_sample (const struct parzen *p, struct rng *r, double *u);

/* Log density at such a point. */
double parzen_log (const struct parzen *p, const double *u);
