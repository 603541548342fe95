/* SPDX-License-Identifier: Apache-2.0 */
/* Which of its checkpoints an attempt keeps while it runs. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The two newest, or DL_KEEP_LATEST if that is more, and the DL_KEEP_BEST
 * best by the metric DL_METRIC (DL_LARGER_IS_BETTER=1 where that is so) at
 * their steps.  `dl run` sets them from checkpoint_policy; what remains is
 * collected by its rules when the experiment ends.
 */

/* A metric may be logged so many times between its step and the save. */
enum { RECENT = 256 };

struct score {
    int64_t step;
    double value; /* NaN: none */
};

struct retention {
    char *metric; /* NULL: keep the latest only */
    bool larger;
    long best, latest;
    pthread_mutex_t lock; /* of the next two */
    struct score recent[RECENT];
    size_t nrecent;
    struct score *saved;
    size_t nsaved;
};

void retain_open (struct retention *r);
void retain_close (struct retention *r);

/* A metric was logged; any thread. */
void retain_score (struct retention *r, const char *name, int64_t step, double value);

/* A checkpoint of 'step' is in 'folder': remove what need not stay. */
void retain_saved (struct retention *r, const char *folder, int64_t step);
