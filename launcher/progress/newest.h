/* SPDX-License-Identifier: Apache-2.0 */
/* The newest value of a trial at work, read again only if its file changed. */
#pragma once

#include "launcher/sweep/metrics.h"

struct picture_trial {
    uint64_t files; /* what the metrics files were like; 0: never seen */
    bool known;
    struct metric_progress newest;
};

/* Have room for so many trials.  Returns -1 if out of memory. */
int newest_room (struct picture_trial **list, long *n, long wanted);

/* false: it has logged nothing. */
bool newest_value (const struct sweep *s, struct picture_trial *t, long number,
                   struct metric_progress *m);
