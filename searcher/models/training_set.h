/* SPDX-License-Identifier: Apache-2.0 */
/* The training set of a model: trials and their values. */
#pragma once

#include "searcher/state/state.h"

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
