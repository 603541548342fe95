/* SPDX-License-Identifier: Apache-2.0 */
/* The acquisition function: the expected improvement of a trial at a point. */
#pragma once

#include "searcher/models/surrogate.h"
#include "searcher/objectives/pareto.h"

/* One objective: log of the expected improvement on the best expected value.
 * Up to EHVI_MAX: log of the expected gain of hypervolume.  More: the first
 * for a sum of the objectives with random weights (ParEGO).
 */
enum { EHVI_MAX = 3 };

struct improve {
    struct surrogate *t;
    double best;
    struct pareto_boxes *boxes; /* NULL: one objective */
    double weight[OBJECTIVES_MAX];
    double thrift; /* weight of the log of the seconds, 0 .. 1 */
};

/* 'r' gives the weights.  -1: no memory.  improve_close() is due in any case.
 */
int improve_open (struct improve *a, struct surrogate *t, struct rng *r);
void improve_close (struct improve *a);

/* Of a masked point; -INFINITY if it is not allowed. */
double improve_log (const struct improve *a, const double *x);
