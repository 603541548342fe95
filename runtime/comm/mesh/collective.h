/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a collective. */
#pragma once

#include "runtime/slurmdl_comm.h"

enum collective_kind {
    COMM_OTHER,
    COMM_ALLREDUCE,
    COMM_REDUCE,
    COMM_REDUCE_SCATTER, /* the kinds up to here have a type and an operation */
    COMM_ALLGATHER,
    COMM_BROADCAST,
    COMM_ALLTOALL,
    COMM_BARRIER,
    COMM_KINDS
};

/* The arguments are those of slurmdl_comm.h; those that a kind does not have are not set. */
struct collective {
    enum collective_kind what;
    enum slurmdl_type type;
    enum slurmdl_op op;
    long root;
    size_t n; /* elements; for a broadcast, bytes */
    const void *in;
    void *out;            /* for a broadcast, input and output */
    const size_t *counts; /* for each rank: elements of a reduce-scatter, bytes of an
                             all-gather, bytes sent to it in an all-to-all */
    const size_t *from;   /* all-to-all: bytes from each rank */
};

/* An implementation; 'self' is its state.  The arguments were checked. */
typedef int (*collective_f) (void *self, const struct collective *c, struct slurmdl_error *err);

/* Identify the collective of a message in 32 bits: 'call' counts the collectives of a communicator
 * (modulo 4096); 'root' is stored modulo 256.
 */
uint32_t tag_of (enum collective_kind what, enum slurmdl_type type, enum slurmdl_op op, long root,
                 uint32_t call);
