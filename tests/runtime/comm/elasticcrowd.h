/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that train together, and checks of their results. */
#pragma once

#include <sys/types.h>

#include "tests/runtime/comm/elasticrank.h"

struct crowd {
    const char *dir; /* where they meet */
    pid_t pids[RANKS_MAX * 2];
    bool killed[RANKS_MAX * 2];
    struct result results[RANKS_MAX * 2];
    int n;
};

void crowd_add (struct crowd *c, const char *dir, const struct job *j);
void crowd_kill (struct crowd *c, int i);

/* Wait until all have exited; fail after 60 s. */
void crowd_wait (struct crowd *c);

/* Read the result of rank i; returns false if it has not written one. */
bool crowd_read (struct crowd *c, int i);

/* Check that all ranks that were not killed reached the right weights, or
 * started after the training had ended; returns how many.  The number of
 * restarts is added to '*restarts'; if that is NULL, there must be none.
 */
long crowd_check (struct crowd *c, int64_t steps, int64_t *restarts);

/* Whether none of the last 100 commits in a trace is of this world. */
bool crowd_rests (const char *trace, long world);
