/* SPDX-License-Identifier: Apache-2.0 */
/* Decide which checkpoints an attempt keeps while it runs. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* It keeps the two newest, or DL_KEEP_LATEST if that is more, and the DL_KEEP_BEST best by the
 * value of the metric DL_METRIC at their steps (DL_LARGER_IS_BETTER=1: larger is better).  `dl run`
 * sets these variables from checkpoint_policy, and applies its rules to the rest when the
 * experiment ends.
 */

/* How often a metric may be logged between its step and the save. */
enum { RECENT = 256 };

struct score {
    int64_t step;
    double value; /* NaN: none */
};

struct retention {
    char *metric; /* NULL: keep the latest only */
    bool larger;
    long best, latest;
    pthread_mutex_t lock; /* protects the members below */
    struct score recent[RECENT];
    size_t nrecent;
    struct score *saved;
    size_t nsaved;
};

void retain_open (struct retention *r);
void retain_close (struct retention *r);

/* Record a logged metric; any thread may call this. */
void retain_score (struct retention *r, const char *name, int64_t step, double value);

/* Record a new checkpoint of 'step' in 'folder', and remove those that need not stay. */
void retain_saved (struct retention *r, const char *folder, int64_t step);
