/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of elastic training whose result can be checked to the bit. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

enum { RANKS_MAX = 8 };

struct job {
    int64_t steps;     /* at most */
    const char *until; /* a file: there is enough when it is there */
    long start, min, max;
    double settle, timeout;
    long pause_us;     /* of a step */
    int64_t die_at;    /* step in whose commit it kills itself; 0: never */
    long die_us;       /* so long after it has begun */
    int64_t freeze_at; /* step before which it stops itself */
    const char *unit;
    bool loud;
    const char *trace; /* a file: a line "WORLD STEP RANKS" of each commit */
};

struct result {
    int rv, error; /* 0: trained to the end; error: errno of form() */
    int64_t step, generation, size, lost;
    int64_t worlds;    /* formed */
    int64_t committed; /* the last step of which a commit was whole */
    bool enough;       /* there was that file */
    int64_t restarts;  /* times that commits were lost */
    uint64_t weights;
    double longest; /* s to form a world, but the first */
    char text[256];
};

/* Train to the end; 'r' says what became of it.  -1: form() failed, or what was
 * committed does not fit; -2: it was restored wrongly.
 */
int rank_train (struct slurmdl_elastic *e, const struct job *j, struct result *r,
                struct slurmdl_error *err);

/* The weights after so many steps of one process. */
uint64_t serial (int64_t steps);

uint64_t mix (uint64_t x);

/* elastic.t rank STEPS PAUSE_US [FILE [TRACE]]: a rank for elasticrun.t, where
 * dl elastic says the rest; its exit status.
 */
int rank_main (char **args);
