/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a trial, and which trial is the best: one rule for all views.
 *
 * The result of a point is the value of its trial; with searcher.repeats, the
 * mean over its trials.  Points are compared at one length, the longest that
 * enough of them reached with a finite value: one at least, and half as many as
 * a searcher with rungs promotes, of those that reached the next shorter such
 * length one in 2 * searcher.divisor.  A point that has fewer repeats than
 * another one is not compared.
 */
#pragma once

#include "launcher/sweep/sweep.h"

struct sweep_result {
    double value;     /* NaN: none */
    double deviation; /* of repeats; NaN: there are too few */
    long n;           /* trials whose mean it is */
    int64_t length;   /* 0: there is no result */
    bool compared;    /* it can be the best one */
};

/* The result of a point (trial_point()); for 'metric' see sweep_metric(). */
struct sweep_result point_result (const struct sweep *s, long point, size_t metric);

/* What one trial contributes to it: its value at the same length. */
struct sweep_result trial_result (const struct sweep *s, long trial, size_t metric);

/* What the trials of a point that have one gave at 'length'. */
struct sweep_result point_result_at (const struct sweep *s, long point, int64_t length);

/* The best trial, 0: none has a finite result.  Of the repeats of the best
 * point it is the one whose value is nearest to the mean.
 */
long sweep_best (const struct sweep *s);

/* "loss 0.25: trial 4 at length 9", "acc 0.9 (mean of 3, deviation 0.01): point
 * 2, trials 4 to 6"; "": none.  'of' (or NULL): of which experiment the trial
 * is.
 */
void sweep_best_text (const struct sweep *s, const char *of, char *buf, size_t size);

/* The best so far, result by result in the order in which they came: the best
 * at the longest length that was reached until then.  At the end it is the best
 * trial's.
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

/* Take a result of a finite value; returns whether it was one to compare: with
 * repeats the last of a point.
 */
bool best_walk_take (struct best_walk *w, long trial, int64_t length);
void best_walk_end (struct best_walk *w);

/* The length at which results are compared, 0: there is none. */
int64_t sweep_best_length (const struct sweep *s);

/* A sentence if the seed makes no difference to any point, else NULL. */
const char *sweep_seed_unused (const struct sweep *s);

/* Numbers of all trials: those of the best point first, those without a value
 * last.  The caller frees them.
 */
long *sweep_order (const struct sweep *s);

/* The Pareto front of an experiment with several metrics: which trials no other one beats in one
 * metric without being beaten in another.  Trial N is at N - 1.  The caller frees it; NULL if out
 * of memory.
 */
bool *sweep_front (const struct sweep *s);
