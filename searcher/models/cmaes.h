/* SPDX-License-Identifier: Apache-2.0 */
/* CMA-ES with margin: a normal distribution that moves to the best points. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "searcher/numeric/rng.h"

/* The covariance matrix adaptation evolution strategy with negative weights
 * (N. Hansen, The CMA Evolution Strategy: A Tutorial, arXiv 1604.00772).  Some
 * or all dimensions can be discrete, "with margin": a cell next to the mean's
 * is always drawn at times (R. Hamano and others, CMA-ES with Margin, GECCO
 * 2022, arXiv 2205.13482).
 *
 * A point is d numbers in [0, 1].  A dimension with steps[i] > 0 is discrete:
 * that many cells of equal width, and all of a cell is one value.  With
 * steps[i] = 0 it is continuous.
 *
 * The state is one flat block without pointers, of cmaes_size() bytes, which
 * is a multiple of 8, aligned as a double is.  The same calls make the same
 * bytes.
 */

/* 'population' is the number of points of a generation, 2 or more; 0 stands
 * for 4 + floor (3 ln d).  It should be at least half of the number of points
 * that are evaluated at once: with less, old points narrow the distribution
 * too early.
 */
size_t cmaes_size (int64_t d, int64_t population);

/* Begin with mean[0 .. d-1] and the standard deviation 'sigma' > 0 in each
 * dimension; 0.3 covers the cube.
 */
void cmaes_start (void *state, int64_t d, const int64_t *steps, const double *mean, double sigma,
                  int64_t population);

/* Begin with what n >= 1 earlier points say, best first, d numbers each: mean
 * and covariance of the best tenth (at least one), to which a standard
 * deviation of 0.1 in each dimension is added (M. Nomura and others, Warm
 * Starting CMA-ES for Hyperparameter Optimization, AAAI 2021, arXiv
 * 2012.06932).
 */
void cmaes_warm_start (void *state, int64_t d, const int64_t *steps, const double *points,
                       int64_t n, int64_t population);

/* Draw a point.  A discrete dimension is in the middle of its cell.  While a
 * continuous one is outside, the point is drawn again, up to 100 times, and
 * the last one is moved to the border.
 */
void cmaes_ask (const void *state, struct rng *r, double *u);

/* Observe the value of a point of the cube, smaller is better; INFINITY and NAN
 * are bad.  Only the order of the values matters; of equal ones the first
 * observed is better.
 *
 * With the last of 'population' values the distribution changes.  The points
 * need not have been drawn from it: any may be observed at any time.
 */
void cmaes_observe (void *state, const double *u, double value);

/* Is a new start due?  The distribution is so narrow, wide or flat that nothing
 * more will be found, or the best value of a generation has been the same for
 * 10 + 30 d / population generations (TolX, TolXUp, ConditionCov,
 * NoEffectCoord and EqualFunValues in B.3 of the tutorial).  Going on is
 * harmless.
 */
bool cmaes_should_stop (const void *state);
