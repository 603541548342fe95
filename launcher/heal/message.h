/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between the ranks of a step and the worker that watches them. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/heal/heal.h"
#include "runtime/comm/net/handshake.h"

enum { HEAL_VERSION = 1, HEAL_MOST = 2048, HEAL_HOST = 64 };

/* This environment variable names the worker's notice (runtime/comm/net/notice.h), whose text is
 * "PORT KEY HOST[,HOST...]".
 */
#define HEAL_VARIABLE "DL_RANKS"

/* The body of the handshake. */
struct heal_hello {
    int64_t rank;
    int64_t step; /* SLURM_STEP_ID; -1 if unknown */
    char host[HEAL_HOST];
};

enum heal_message {
    /* from a rank */
    HEAL_BEAT,    /* a heartbeat, once a second: struct heal_beat */
    HEAL_OVER,    /* its program has exited: int64_t, the status of waitpid() */
    HEAL_DUMPED,  /* it has written its stacks: no body */
    HEAL_NETWORK, /* what the network of its host did: struct heal_network */
    /* from the worker */
    HEAL_PING, /* find out whether the host's kernel still acknowledges packets: no body */
    HEAL_DUMP, /* write the stacks (launcher/debug/debug.h): "NUMBER FOLDER" */
    HEAL_END,  /* kill the program and exit: no body */
};

struct heal_beat {
    double quiet;  /* seconds since the last sign of progress (launcher/debug/debug.h) */
    double cores;  /* average number of CPU cores used since the last beat */
    double sleeps; /* seconds until the first sleeping main thread wakes up; 0 if none sleeps */
    int64_t state; /* of the training process, such as 'T' (proc(5)); 0 if unknown */
    double active, ready,
        throttled; /* shares of the time since the last beat, as in struct heal_work */
    struct heal_gpu gpu;
};

/* The kernel closes a connection if the host acknowledges nothing for this many seconds. */
enum { HEAL_SILENCE = 10 };

/* Whether the errno of a connection means that the other host is unreachable. */
static inline bool heal_is_silence (int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH
           || error == EHOSTDOWN;
}

/* The handshake, the same for both sides. */
static inline struct handshake heal_handshake (void)
{
    return (
        struct handshake){ .service = HANDSHAKE_RANKS, .version = HEAL_VERSION, .confirms = true };
}
