/* SPDX-License-Identifier: Apache-2.0 */
/* A Gaussian process of what a search has seen. */
#ifndef SEARCHER_MODELS_SURROGATE_H
#define SEARCHER_MODELS_SURROGATE_H

#include "searcher/models/gp.h"
#include "searcher/models/training_set.h"
#include "searcher/numeric/rng.h"

/* Of more trials the best and the newest half are used. */
enum { POINTS_MAX = 150, PENDING_MAX = 100 };

struct study {
    const struct searcher *s;
    const struct view *v;
    int64_t d, m, n;     /* dimensions, objectives, points */
    int64_t *row;        /* of the view, of each point */
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

/* Fit; the view must outlive it.  -1: no memory, or the points are degenerate.
 * study_close() is due in any case.
 */
int study_open (struct study *t,
                const struct searcher *s,
                const struct view *v);
void study_close (struct study *t);

/* As if the trials that are being trained gave what is expected. */
void study_believe (struct study *t);

/* Features of a masked point: where in its range a number is, which choice. */
void study_features (const struct study *t, const double *x, double *z);

/* Number of the trial of point i. */
static inline long study_trial (const struct study *t, int64_t i)
{
    return t->v->trial[t->row[i]];
}

#endif
