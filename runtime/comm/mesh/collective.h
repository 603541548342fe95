/* SPDX-License-Identifier: Apache-2.0 */
/* One collective, as the program has called it. */
#pragma once

#include "runtime/slurmdl_comm.h"

enum collective_kind {
    COMM_OTHER,
    COMM_ALLREDUCE,
    COMM_REDUCE,
    COMM_REDUCE_SCATTER, /* those up to here have a type and an operation */
    COMM_ALLGATHER,
    COMM_BROADCAST,
    COMM_ALLTOALL,
    COMM_BARRIER,
    COMM_KINDS
};

/* The arguments mean what those of slurmdl_comm.h mean; those that a kind does
 * not have are not set.
 */
struct collective {
    enum collective_kind what;
    enum slurmdl_type type;
    enum slurmdl_op op;
    long root;
    size_t n; /* elements; of a broadcast bytes */
    const void *in;
    void *out;            /* of a broadcast both */
    const size_t *counts; /* of each rank: elements of a reduce-scatter, bytes
                             of an all-gather, bytes to it of an all-to-all */
    const size_t *from;   /* of an all-to-all: bytes from each rank */
};

/* An implementation; 'self' is what it works on.  The arguments were checked.
 */
typedef int (*collective_f) (void *self, const struct collective *c, struct slurmdl_error *err);

/* Which collective a message belongs to, in 32 bits: 'call' counts the
 * collectives of a communicator (modulo 4096), 'root' is kept modulo 256.
 */
uint32_t tag_of (enum collective_kind what, enum slurmdl_type type, enum slurmdl_op op, long root,
                 uint32_t call);
