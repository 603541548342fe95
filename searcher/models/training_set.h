/* SPDX-License-Identifier: Apache-2.0 */
/* What a model may learn from. */
#ifndef SEARCHER_MODELS_TRAINING_SET_H
#define SEARCHER_MODELS_TRAINING_SET_H

#include "searcher/state/state.h"

/* Trials that have a value, the oldest first, and trials that will have one.
 * Where trials are trained rung by rung, the values are those of the highest
 * rung that enough trials came to (S. Falkner and others, BOHB, ICML 2018).
 */
struct view {
    int64_t n, npending, m; /* m: values of a trial */
    long *trial, *pending;
    double *value; /* n times m; smaller is better, INFINITY: bad */
    double *noise; /* variance of each value, NULL: not known */
    int64_t rung;  /* that the values are of */
};

/* -1 if there is no memory. */
int view_open (struct view *v, const struct searcher *s);

/* With the trials that came to lower rungs only, as bad ones: without them the
 * points that were promoted would seem to be all that were tried.
 */
int view_open_wide (struct view *v, const struct searcher *s);
void view_close (struct view *v);

/* Trials whose first value is good. */
int64_t view_good (const struct view *v);

/* Trials that have a value, bad ones included: at the rung with the most. */
int64_t view_count (const struct searcher *s);

#endif
