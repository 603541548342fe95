/* SPDX-License-Identifier: Apache-2.0 */
/* The results at one rung of a bracket, ranked. */
#pragma once

#include "searcher/state/state.h"

/* Smaller values are better, INFINITY is bad.  Among equal values the one that
 * was reported first is better: were it the last, trials that all give the
 * same value would all be promoted.
 */
struct results {
    struct rung *rung;
    int64_t capacity;
    double *value;
    int32_t *trial;  /* that gave it */
    int32_t *ranked; /* the first rung->top are those of the best share */
};

/* The results of a rung below the top one. */
struct results rung_results (struct searcher *s, struct bracket *b, int rung);

/* Add a result; the best 'share' of all are then apart.  Returns the one that
 * has newly come to them, which may be the new one itself, or -1.
 */
int32_t rung_add (struct results *r, long trial, double value, int64_t share);

/* Take the trial's result away, if there is one. */
void rung_remove (struct results *r, long trial);

/* Have the best 'share' apart, or all that there are. */
void rung_resize (struct results *r, int64_t share);

/* Sort the best share, the worst of it first. */
void rung_sort (struct results *r);

/* Copy results to where there is as much room, or more or less. */
void rung_move (struct results *to, const struct results *from);

/* The best result, -1 if there is none. */
int32_t rung_best (const struct results *r);
