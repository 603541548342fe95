/* SPDX-License-Identifier: Apache-2.0 */
/* Find a rank that the others wait for, from how each spends its time.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/heal/judge.h"

struct slow_ranks;

/* For 'n' ranks. */
struct slow_ranks *slow_create (size_t n);
void slow_destroy (struct slow_ranks *s);

enum slow_news {
    SLOW_NOTHING,
    SLOW_FOUND, /* a rank is slow for a known cause, and the others wait for it */
    SLOW_OVER,  /* a slow rank keeps up again */
};

/* Compare the ranks, and describe what is new in 'why'.  The caller calls this all the time, and
 * 'now' is always of the same clock.  Each event is returned once,
 * but a slow rank is named again if the cause changes.  A rank that only has more work,
 * such as rank 0 while it evaluates, is not named.
 */
enum slow_news slow_judge (struct slow_ranks *s, const struct heal_seen *ranks, size_t n,
                           double now, char *why, size_t size);
