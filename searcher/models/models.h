/* SPDX-License-Identifier: Apache-2.0 */
/* The models of a search, and the trials from which they learn. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "searcher/models/gp.h"
#include "searcher/numeric/rng.h"
#include "searcher/objectives/pareto.h"
#include "searcher/space/space.h"
#include "searcher/state/state.h"

/* ---- the training set of a model: trials and their values (training_set.c) ---- */

/* Trials that have a value, the oldest first, and running trials.  If trials
 * are trained rung by rung, the values are those at the highest rung that
 * enough trials have reached (S. Falkner and others, BOHB, ICML 2018).
 */
struct training_set {
    int64_t n, npending, m; /* m: values of a trial */
    long *trial, *pending;
    double *value; /* n times m; smaller is better, INFINITY: bad */
    double *noise; /* variance of each value, NULL: not known */
    int64_t rung;  /* at which the values were observed */
};

/* Returns -1 if out of memory. */
int training_set_open (struct training_set *v, const struct searcher *s);

/* Include trials that reached only lower rungs, as bad ones: without them, the
 * promoted points would look like all that was tried.
 */
int training_set_open_wide (struct training_set *v, const struct searcher *s);
void training_set_close (struct training_set *v);

/* Number of trials whose first value is good. */
int64_t training_set_good (const struct training_set *v);

/* Number of trials with a value, bad ones included, at the rung with the most. */
int64_t training_set_count (const struct searcher *s);

/* ---- a Parzen estimator: a density with a kernel around each of some points (parzen.c) ---- */

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

/* ---- CMA-ES with margin: a normal distribution that moves to the best points (cmaes.c) ---- */

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

/* ---- what a trial at a point is expected to gain (surrogate.c) ---- */

/* If there are more trials, the best half and the newest half of POINTS_MAX are used. */
enum { POINTS_MAX = 150, PENDING_MAX = 100 };

struct surrogate {
    const struct searcher *s;
    const struct training_set *v;
    int64_t d, m, n;     /* dimensions, objectives, points */
    int64_t *row;        /* of the training set, of each point */
    int64_t *order;      /* of the points, the best first (first objective) */
    double *z;           /* features: n times d */
    double *y;           /* warped values: m arrays of POINTS_MAX */
    double *noise;       /* variance of each value beyond the common noise */
    double *x, *feature; /* room for a point and its features */
    bool *category;
    struct gp **gp;  /* one an objective */
    struct gp *cost; /* of the logarithm of the seconds, or NULL */
    double cost_deviation;
};

/* Fit the models; the training set must outlive them.  Returns -1 if out of
 * memory or if the points are degenerate.  Call surrogate_close() in any case.
 */
int surrogate_open (struct surrogate *t, const struct searcher *s, const struct training_set *v);
void surrogate_close (struct surrogate *t);

/* Treat running trials as if they had returned the expected value. */
void surrogate_believe (struct surrogate *t);

/* Trial number of point i. */
static inline long surrogate_trial (const struct surrogate *t, int64_t i)
{
    return t->v->trial[t->row[i]];
}

/* ---- the expected improvement of a trial at a point ---- */

/* One objective: log of the expected improvement over the best expected value.
 * Up to EHVI_MAX objectives: log of the expected gain in hypervolume.  More:
 * the former, for a sum of the objectives with random weights (ParEGO).
 */
enum { EHVI_MAX = 3 };

struct improve {
    struct surrogate *t;
    double best;
    struct pareto_boxes *boxes; /* NULL: one objective */
    double weight[OBJECTIVES_MAX];
    double thrift; /* weight of the log of the seconds, 0 .. 1 */
};

/* 'r' provides the weights.  Returns -1 if out of memory.  Call improve_close() in any case. */
int improve_open (struct improve *a, struct surrogate *t, struct rng *r);
void improve_close (struct improve *a);

/* Evaluate at a masked point; -INFINITY if it is not allowed. */
double improve_log (const struct improve *a, const double *x);

/* ---- what short trainings tell about long ones (fidelity_transfer.c) ---- */

/* As training_set_open(), for trials that are trained rung by rung: each value
 * is extrapolated to the highest rung that a few trials have reached, by a
 * straight line from each rung to the next, fitted to the trials that have
 * reached both.  The variance that the lines do not explain becomes the
 * variance of the value, so that a model almost ignores early values that
 * predict little.
 *
 * If there are too many trials, the ones trained longest are used, the best of
 * them first, and an even share of the others.
 */
int transfer_open (struct training_set *v, const struct searcher *s);
