/* SPDX-License-Identifier: Apache-2.0 */
/* The surrogate model of a search: a Gaussian process for each objective, and
 * what a trial at a point is expected to gain.
 */
#pragma once

#include "searcher/models/gp.h"
#include "searcher/models/training_set.h"
#include "searcher/numeric/rng.h"
#include "searcher/objectives/pareto.h"

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
