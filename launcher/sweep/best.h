/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a trial, and which trial is the best: one rule for all views.
 *
 * The result of a point is the value of its trial or, with searcher.repeats, the mean over its
 * trials.  All points are compared at the same length: the longest one at which enough points have
 * a finite value.  Enough means at least one, and at least one in 2 * searcher.divisor of the
 * points at the next shorter length that qualified, half as many as a searcher with rungs would
 * promote.  A point with fewer repeats than another point is not compared.
 */
#pragma once

#include "launcher/sweep/sweep.h"

struct sweep_result {
    double value;     /* NaN: none */
    double deviation; /* of repeats; NaN: there are too few */
    long n;           /* number of trials in the mean */
    int64_t length;   /* 0: there is no result */
    bool compared;    /* the point or trial can be the best one */
};

/* The result of a point (trial_point()) in one metric, an index as for sweep_metric(). */
struct sweep_result point_result (const struct sweep *s, long point, size_t metric);

/* What one trial contributes to that: its value at the length of comparison, or at the longest
 * shorter one that it reached.
 */
struct sweep_result trial_result (const struct sweep *s, long trial, size_t metric);

/* The mean of the first metric at 'length', over the trials of the point that have a finite value
 * there.
 */
struct sweep_result point_result_at (const struct sweep *s, long point, int64_t length);

/* The number of the best trial; 0: no trial has a finite result.  If the best point has repeats,
 * this is the trial whose value is nearest to their mean.
 */
long sweep_best (const struct sweep *s);

/* Write "loss 0.25: trial 4 at length 9" or "acc 0.9 (mean of 3, deviation 0.01): point 2, trials 4
 * to 6", or "" if there is no best trial.  'of', unless NULL, names the experiment of the trial.
 */
void sweep_best_text (const struct sweep *s, const char *of, char *buf, size_t size);

/* Follow the best value so far, one result at a time in the order in which results arrived.  It is
 * the best value at the longest length reached by then, and ends as the best point's.
 */
struct best_walk {
    const struct sweep *sweep;
    int64_t length;
    double best; /* NaN: none yet */
    struct {
        int64_t length;
        long n;
    } * seen; /* of each point */
};
int best_walk_begin (struct best_walk *w, const struct sweep *s);

/* Add a result with a finite value.  Returns whether the result is compared; with repeats, only the
 * last one of a point is.
 */
bool best_walk_take (struct best_walk *w, long trial, int64_t length);
void best_walk_end (struct best_walk *w);

/* The length at which points are compared; 0: there is none yet. */
int64_t sweep_best_length (const struct sweep *s);

/* A sentence for the user if the repeats of every point gave the same value, which means that the
 * seed has no effect; else NULL.
 */
const char *sweep_seed_unused (const struct sweep *s);

/* List the numbers of all trials, those of the best point first and those without a value last. The
 * caller frees the list.
 */
long *sweep_order (const struct sweep *s);

/* The Pareto front of an experiment with several metrics.  A trial is on the front unless another
 * trial is better in one metric and worse in none.  Element N - 1 belongs to trial N.  The caller
 * frees the array.
 */
bool *sweep_front (const struct sweep *s);
