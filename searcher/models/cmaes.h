/* SPDX-License-Identifier: Apache-2.0 */
/* CMA-ES with margin: a normal distribution that moves to the best points. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "searcher/numeric/rng.h"

/* The covariance matrix adaptation evolution strategy with negative weights (N.
 * Hansen, The CMA Evolution Strategy: A Tutorial, arXiv 1604.00772).
 * Dimensions can be discrete, "with margin": the cells next to the mean's keep
 * a minimum probability (R. Hamano and others, CMA-ES with Margin, GECCO 2022,
 * arXiv 2205.13482).
 *
 * A point is d numbers in [0, 1].  A dimension with steps[i] > 0 is discrete:
 * it has that many cells of equal width, and all points of a cell mean the same
 * value.  A dimension with steps[i] = 0 is continuous.
 *
 * The state is one flat block without pointers, of cmaes_size() bytes, a
 * multiple of 8, aligned as a double.  Equal sequences of calls produce equal
 * bytes.
 */

/* 'population' is the number of points in a generation, 2 or more; 0 selects 4
 * + floor (3 ln d).  Use at least half the number of points that are evaluated
 * at once: with a smaller population, old points narrow the distribution too
 * early.
 */
size_t cmaes_size (int64_t d, int64_t population);

/* Start with mean[0 .. d-1] and the standard deviation 'sigma' > 0 in each
 * dimension; 0.3 covers the cube.
 */
void cmaes_start (void *state, int64_t d, const int64_t *steps, const double *mean, double sigma,
                  int64_t population);

/* Start from n >= 1 earlier points, best first, d numbers each.  Mean and
 * covariance are those of the best tenth (at least one point); a standard
 * deviation of 0.1 is added in each dimension (M. Nomura and others, Warm
 * Starting CMA-ES for Hyperparameter Optimization, AAAI 2021, arXiv
 * 2012.06932).
 */
void cmaes_warm_start (void *state, int64_t d, const int64_t *steps, const double *points,
                       int64_t n, int64_t population);

/* Draw a point.  A discrete dimension is set to the middle of its cell.  If a
 * continuous dimension is outside, the whole point is drawn again, up to 100
 * times; the last one is moved to the border.
 */
void cmaes_ask (const void *state, struct rng *r, double *u);

/* Observe the value of a point of the cube.  Smaller is better; INFINITY and
 * NAN are bad.  Only the order of the values matters; among equal values the
 * first one observed is better.
 *
 * The distribution changes with the last of 'population' values.  Any point may
 * be observed at any time: it need not have been drawn from the distribution.
 */
void cmaes_observe (void *state, const double *u, double value);

/* Returns whether to start again: the distribution is so narrow, wide or flat
 * that nothing more will be found, or the best value of a generation has not
 * changed for 10 + 30 d / population generations (TolX, TolXUp, ConditionCov,
 * NoEffectCoord and EqualFunValues in B.3 of the tutorial).  Continuing does no
 * harm.
 */
bool cmaes_should_stop (const void *state);
