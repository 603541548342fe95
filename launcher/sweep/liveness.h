/* SPDX-License-Identifier: Apache-2.0 */
/* The claims and signs of life that a worker remembers of others. */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "launcher/sweep/peer.h"

enum { PEER_FILE_MAX = 64 << 10, COUNTER_SIZE = 21 };

/* In the place of the counter of a worker that has ended. */
#define PEER_GONE "gone                \n"

/* What this process remembers of a claim that is not its own ... */
struct claim {
    long trial;
    long attempt;
    char nonce[33];
};

/* ... and of another worker. */
struct other {
    char nonce[33];
    char counter[COUNTER_SIZE + 1];
    double since; /* the counter has not changed */
    double looked;
    bool dead;
    bool before; /* at the slot of this process */
};

struct peer_membership {
    struct peer_self self;
    char *dir;
    int fd;
    off_t offset; /* of the counter */
    unsigned long long count;
    char host[65];
    char boot[40];
    char pidns[40];
    struct claim *claims;
    size_t nclaims;
    struct other *others;
    size_t nothers;
    size_t alive; /* of them */
};

/* Whether a text is the name of a worker's file. */
bool peer_is_nonce (const char *text);

/* Fill in who this process is. */
void peer_describe (struct peer_membership *p, const char *slot);
