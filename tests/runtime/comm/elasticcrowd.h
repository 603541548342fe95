/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that train together, for tests of what becomes of them. */
#pragma once

#include <sys/types.h>

#include "tests/runtime/comm/elasticrank.h"

struct crowd {
    const char *dir; /* in which they meet */
    pid_t pids[RANKS_MAX * 2];
    bool killed[RANKS_MAX * 2];
    struct result results[RANKS_MAX * 2];
    int n;
};

void crowd_add (struct crowd *c, const char *dir, const struct job *j);
void crowd_kill (struct crowd *c, int i);

/* Wait until all have ended; after 60 s that is a failure. */
void crowd_wait (struct crowd *c);

/* What one that has ended has said of itself. */
bool crowd_read (struct crowd *c, int i);

/* All that were not killed have trained to the end, to the right weights, or
 * have come too late.  Returns how many; '*restarts', if not NULL, is counted
 * up by how often commits were lost, else none may be.
 */
long crowd_check (struct crowd *c, int64_t steps, int64_t *restarts);

/* Whether no commit of that world is among the last 100 of a trace. */
bool crowd_rests (const char *trace, long world);
