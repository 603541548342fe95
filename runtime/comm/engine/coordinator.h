/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides which tensors are reduced, and which together. */
#pragma once

#include "runtime/comm/engine/tensor.h"

/* What ranks tell rank 0 through their parents ... */
enum up {
    UP_READY = 1, /* ids for which all ranks below are ready */
    UP_REQUEST,   /* rank, tensor */
    UP_JOIN,      /* rank */
    UP_LEAVE,     /* rank: it closes the communicator */
    UP_STALL,     /* rank, age in seconds, how many, up to 4 names */
    UP_HERE,      /* rank, name, whether it has been submitted there */
    UP_FAIL,      /* errno, text: the communicator is broken */
};

/* ... and what rank 0 tells all of them, in the same order. */
enum down {
    DOWN_ASSIGN = 1, /* id, tensor, its counts if it is an all-gather */
    DOWN_DROP,       /* id that is no longer valid: describe the tensor again */
    DOWN_BATCH,      /* ids: reduce these now, in ascending order */
    DOWN_ERROR,      /* name, errno, text */
    DOWN_JOINED,     /* the last rank: all have joined */
    DOWN_WHO,        /* name: who has not submitted it? */
    DOWN_TROUBLE,    /* text */
    DOWN_LEFT,       /* rank: it has closed the communicator */
    DOWN_FAIL,       /* errno, text */
    DOWN_HERE,       /* the parent has begun */
};

/* It does no I/O: the caller passes what came up, and it writes what goes down. */
struct coordinator;

typedef const char *(*host_f) (const void *arg, long rank);

struct coordinator *coordinator_create (long size, host_f host, const void *arg,
                                        struct packet *down);
void coordinator_destroy (struct coordinator *c); /* NULL is accepted */

/* These fail only if out of memory; the first one takes ownership of 't'. */
int coordinator_request (struct coordinator *c, long rank, struct tensor *t);
int coordinator_ready (struct coordinator *c, uint32_t id);
int coordinator_join (struct coordinator *c, long rank);
void coordinator_leave (struct coordinator *c, long rank);

/* Put tensors that are ready into at most 'room' batches, each of at most 'fusion' bytes or of one
 * larger tensor.  Returns the number of batches.
 */
size_t coordinator_emit (struct coordinator *c, size_t fusion, size_t room);

/* Whether tensors are ready but not in a batch. */
bool coordinator_waits (const struct coordinator *c);
