/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a step and the worker that watches them tell each other. */
#pragma once

#include <stdint.h>

#include "runtime/comm/net/handshake.h"

enum { HEAL_VERSION = 1, HEAL_MOST = 256, HEAL_HOST = 64 };

/* The variable that names the notice (runtime/comm/net/notice.h) of the
 * worker: "PORT KEY HOST[,HOST...]".
 */
#define HEAL_VARIABLE "DL_RANKS"

/* The body of the handshake. */
struct heal_hello {
    int64_t rank;
    int64_t step; /* SLURM_STEP_ID; -1: not known */
    char host[HEAL_HOST];
};

enum heal_message {
    /* of a rank */
    HEAL_BEAT,   /* struct heal_beat, once a second */
    HEAL_OVER,   /* int64_t: its program has ended, with this status of waitpid() */
    HEAL_DUMPED, /* its stacks are written */
    /* of the worker */
    HEAL_PING, /* nothing: the kernel of a host that is gone does not acknowledge it */
    HEAL_DUMP, /* "NUMBER FOLDER": write the stacks there (launcher/debug/dump_folder.h) */
    HEAL_END,  /* kill the program, and end */
};

struct heal_beat {
    double quiet;  /* s since the last sign of progress (launcher/debug/rank_progress.h) */
    double cores;  /* used since the last beat */
    double sleeps; /* s that a main thread still sleeps at most; 0: none does */
    int64_t state; /* of the training process, as 'T' (proc(5)); 0: none seen */
};

/* Seconds until the kernel gives up a host that acknowledges nothing. */
enum { HEAL_SILENCE = 10 };

/* The same handshake for both sides. */
static inline struct handshake heal_handshake (void)
{
    return (
        struct handshake){ .service = HANDSHAKE_RANKS, .version = HEAL_VERSION, .confirms = true };
}
