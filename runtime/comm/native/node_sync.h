/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share, and how they wait for each other. */
#pragma once

#include <stdatomic.h>

#include "runtime/comm/native/node.h"

/* Ranks synchronize at numbered split-phase barriers.  A barrier counts arrivals in a counter that
 * the barrier NODE_BARRIERS later reuses.  A rank arrives without waiting, and waits for the others
 * only when it needs what they did before they arrived; at most NODE_BARRIERS - 1 barriers are in
 * progress.
 *
 * Each rank has NODE_SLOTS slots of one chunk, which only it writes, and there are as many slots
 * for results.  The steps of all collectives are numbered and use the slots in turn.  A rank
 * overwrites a slot only after a barrier at which the others arrived after reading it.
 */
enum { NODE_BARRIERS = 8, NODE_SLOTS = 4 };

struct arrival_counter {
    atomic_uint arrived; /* a futex; wraps around */
    atomic_uint sleepers;
} __attribute__ ((aligned (128)));

/* Written by its rank. */
struct node_rank {
    atomic_ullong barrier;         /* one more than that at which it arrived last */
    uint64_t call[NODE_BARRIERS];  /* hash of its call */
    uint64_t value[NODE_BARRIERS]; /* a number for the others */
    uint32_t tag[NODE_BARRIERS];   /* mesh_called() */
} __attribute__ ((aligned (128)));

struct node_head {
    uint64_t nonce;
    atomic_uint broken; /* 1: 'why' is being written, 2: it is complete */
    int code;           /* errno */
    char why[256];
    struct arrival_counter counters[NODE_BARRIERS];
    struct node_rank ranks[]; /* followed by the slots */
};

struct node_group {
    struct mesh *mesh;
    struct node_head *head;
    size_t bytes;       /* of the shared memory */
    size_t chunk;       /* bytes of a slot */
    unsigned crowded;   /* number of waits without yielding, because other processes use the CPU */
    unsigned left;      /* how many of these are left */
    char *slots;        /* by rank, then by step */
    char *results;      /* by step */
    long rank, size;    /* local */
    long *world;        /* rank of each in the mesh */
    uint64_t barrier;   /* the next one */
    uint64_t step;      /* the next one */
    uint64_t call;      /* as in struct node_rank */
    uint64_t value;     /* as in struct node_rank */
    const void **parts; /* room for one pointer for each rank */
};

/* A call of a collective: parts of the tensor pass through the slots, step by step. */
struct node_work {
    struct node_group *node;
    const char *in;
    char *out;
    size_t size; /* of an element */
    enum slurmdl_type type;
    enum slurmdl_op op;
    double factor;
    struct node_layout layout; /* the part of each rank, in elements */
    const size_t *totals;      /* total of each rank's blocks, in elements */
    size_t n;                  /* elements of all ranks */
    size_t step;               /* elements of a step (for each rank) */
    size_t steps;
    uint64_t first; /* number of the first step */
    long root;      /* -1: all ranks */
};

enum node_kind {
    NODE_REDUCE,
    NODE_SCATTER,
    NODE_GATHER,
    NODE_BROADCAST,
    NODE_ALLTOALL,
    NODE_BARRIER
};

/* Half of a step with one barrier: store what the others need, or load what we need. */
typedef void (*node_step_f) (const struct node_work *w, size_t step);

/* Arrive at the next barrier without waiting.  Returns its number. */
uint64_t node_barrier_arrive (struct node_group *n);

/* Wait until all ranks have arrived at the barrier.  Wait for every barrier, in order. */
int node_barrier_wait (struct node_group *n, uint64_t barrier, struct slurmdl_error *err);

/* The value that rank 'r' passed at a barrier. */
static inline uint64_t node_barrier_value (struct node_group *n, long r, uint64_t barrier)
{
    return n->head->ranks[r].value[barrier % NODE_BARRIERS];
}

static inline char *node_slot (struct node_group *n, long r, uint64_t step)
{
    return n->slots + ((size_t)r * NODE_SLOTS + step % NODE_SLOTS) * n->chunk;
}

static inline char *node_result (struct node_group *n, uint64_t step)
{
    return n->results + step % NODE_SLOTS * n->chunk;
}
