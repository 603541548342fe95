/* SPDX-License-Identifier: Apache-2.0 */
/* The results at one rung of a bracket, ranked. */
#pragma once

#include "searcher/state/state.h"

/* Smaller values are better, INFINITY is bad.  Among equal values the first
 * reported is better: the other way round, trials that all return the same
 * value would all be promoted.
 */
struct results {
    struct rung *rung;
    int64_t capacity;
    double *value;
    int32_t *trial;  /* that gave it */
    int32_t *ranked; /* the first rung->top are the best share */
};

/* The results of a rung below the top one. */
struct results rung_results (struct searcher *s, struct bracket *b, int rung);

/* Add a result, and separate the best 'share' of all.  Returns the result that
 * has entered that share, possibly the new one, or -1.
 */
int32_t rung_add (struct results *r, long trial, double value, int64_t share);

/* Remove the trial's result, if there is one. */
void rung_remove (struct results *r, long trial);

/* Separate the best 'share' results, or all if there are fewer. */
void rung_resize (struct results *r, int64_t share);

/* Sort the best share, the worst first. */
void rung_sort (struct results *r);

/* Copy results to other room, of any sufficient size. */
void rung_move (struct results *to, const struct results *from);

/* The best result, -1 if there is none. */
int32_t rung_best (const struct results *r);
