/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of elastic training whose result can be checked bit by bit. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

enum { RANKS_MAX = 8 };

struct job {
    int64_t steps;     /* at most */
    const char *until; /* training ends when this file exists */
    long start, min, max;
    double settle, timeout;
    long pause_us;     /* after each step */
    int64_t die_at;    /* step in whose commit it kills itself; 0: never */
    long die_us;       /* how long after the commit has started */
    int64_t freeze_at; /* step before which it stops itself with SIGSTOP */
    const char *unit;
    bool loud;
    const char *trace; /* file that gets a line "WORLD STEP RANKS" for each commit */
};

struct result {
    int rv, error; /* rv 0: training finished; error: errno of form() */
    int64_t step, generation, size, lost;
    int64_t worlds;    /* how many it has formed */
    int64_t committed; /* step of the last complete commit */
    bool enough;       /* the file 'until' existed */
    int64_t restarts;  /* how often all commits were lost */
    uint64_t weights;
    double longest; /* most seconds to form a world, without the first */
    char text[256];
};

/* Train to the end, and describe the outcome in 'r'.  Returns -1 if form() fails
 * or the committed state does not fit; -2 if the restored state is wrong.
 */
int rank_train (struct slurmdl_elastic *e, const struct job *j, struct result *r,
                struct slurmdl_error *err);

/* The weights after so many steps of a single process. */
uint64_t serial (int64_t steps);

uint64_t mix (uint64_t x);

/* elastic.t rank STEPS PAUSE_US [FILE [TRACE]]: run a rank for elasticrun.t, with
 * the options that dl elastic sets; returns the exit status.
 */
int rank_main (char **args);
