/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share, and how they wait for each other. */
#pragma once

#include <stdatomic.h>

#include "runtime/comm/native/node.h"

/* Ranks synchronise at numbered meetings.  A meeting has a counter, which the meeting NODE_METERS
 * later reuses.  A rank arrives at a meeting without waiting, and waits for the others only when it
 * needs what they did before they arrived; at most NODE_METERS - 1 meetings are in progress.
 *
 * Each rank has NODE_SLOTS slots of one chunk, which only it writes, and there are as many slots
 * for results.  The steps of all collectives are numbered and use the slots in turn.  A rank
 * overwrites a slot only after a meeting at which the others arrived after reading it.
 */
enum { NODE_METERS = 8, NODE_SLOTS = 4 };

struct node_meter {
    atomic_uint came; /* a futex; wraps around */
    atomic_uint sleepers;
} __attribute__ ((aligned (128)));

/* Written by its rank. */
struct node_rank {
    atomic_ullong meeting;        /* at which it arrived last */
    uint64_t call[NODE_METERS];   /* its call, as a number */
    uint64_t number[NODE_METERS]; /* a number for the others */
    uint32_t tag[NODE_METERS];    /* mesh_called() */
} __attribute__ ((aligned (128)));

struct node_head {
    uint64_t nonce;
    atomic_uint broken; /* 1: 'why' is being written, 2: it is complete */
    int code;           /* errno */
    char why[256];
    struct node_meter meters[NODE_METERS];
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
    uint64_t meeting;   /* the next one */
    uint64_t step;      /* the next one */
    uint64_t call;      /* as in struct node_rank */
    uint64_t say;       /* as 'number' in struct node_rank */
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

/* A step with one meeting: store what the others need, or load what we need. */
typedef void (*node_step_f) (const struct node_work *w, size_t step);

/* Arrive at the next meeting.  Returns its number. */
uint64_t node_come (struct node_group *n);

/* Wait until all have arrived at a meeting.  Wait for every meeting, in order. */
int node_wait (struct node_group *n, uint64_t meeting, struct slurmdl_error *err);

/* The number that rank 'r' passed at a meeting. */
static inline uint64_t node_said (struct node_group *n, long r, uint64_t meeting)
{
    return n->head->ranks[r].number[meeting % NODE_METERS];
}

static inline char *node_slot (struct node_group *n, long r, uint64_t step)
{
    return n->slots + ((size_t)r * NODE_SLOTS + step % NODE_SLOTS) * n->chunk;
}

static inline char *node_result (struct node_group *n, uint64_t step)
{
    return n->results + step % NODE_SLOTS * n->chunk;
}
