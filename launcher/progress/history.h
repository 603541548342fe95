/* SPDX-License-Identifier: Apache-2.0 */
/* Results in their order, and since when each trial is as it is. */
#pragma once

#include "launcher/sweep/sweep.h"

struct history_result {
    long trial, attempt;
    int64_t length;
    double value; /* of the first metric */
    double time;  /* s since the epoch, on its worker's clock */
};

struct history {
    struct log *log;
    struct history_result *results;
    size_t n, capacity;
    double *since; /* of trial N at N - 1: the time of its last event */
    size_t nsince, room;
    int64_t limit; /* numbers of trials above are ignored */
};

/* Read what is new in the log of 's', which was read just before.  {0} is a
 * history that was never read.  Returns -1 with 'err'.
 */
int history_sync (struct history *h, const struct sweep *s, struct slurmdl_error *err);
void history_free (struct history *h);

/* Seconds since a trial is as it is; NaN: not known. */
double history_age (const struct history *h, long trial);

/* A length at which trials are compared. */
struct history_rung {
    int64_t length;
    long results;
    long best; /* trial; 0: none has a finite value */
    double value;
};

/* The lengths of accepted results in order, 'max' at most, the longest ones.
 * Returns how many.
 */
int history_rungs (const struct history *h, const struct sweep *s, struct history_rung *list,
                   int max);

/* The best value after each accepted result that counts (best_walk_take()); the
 * caller frees the list.  Returns how many, -1: out of memory.
 */
long history_best (const struct history *h, const struct sweep *s, double **list);
