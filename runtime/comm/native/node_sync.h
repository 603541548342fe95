/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a node share, and how they wait for each other. */
#pragma once

#include <stdatomic.h>

#include "runtime/comm/native/node.h"

/* Meetings are counted; each has a counter, which is used again by the one
 * NODE_METERS later.  A rank comes to a meeting without waiting, and waits for
 * the others when it needs what they did before they came: at most
 * NODE_METERS - 1 meetings are under way.
 *
 * Each rank has NODE_SLOTS slots of a chunk each, which it alone writes, and
 * there are as many for results.  Steps of all collectives are counted, and
 * use them in turn.  A rank writes a slot only after it has waited for
 * a meeting to which the others came when they had read it.
 */
enum { NODE_METERS = 8, NODE_SLOTS = 4 };

struct node_meter {
    atomic_uint came; /* a futex; wraps around */
    atomic_uint sleepers;
} __attribute__ ((aligned (128)));

/* Written by its rank. */
struct node_rank {
    atomic_ullong meeting;        /* to which it came last */
    uint64_t call[NODE_METERS];   /* what it does there, as a number */
    uint64_t number[NODE_METERS]; /* what it says there */
    uint32_t tag[NODE_METERS];    /* mesh_called() */
} __attribute__ ((aligned (128)));

struct node_head {
    uint64_t nonce;
    atomic_uint broken; /* 1: 'why' is being written, 2: it is there */
    int code;           /* errno */
    char why[256];
    struct node_meter meters[NODE_METERS];
    struct node_rank ranks[]; /* and then the slots */
};

struct node_group {
    struct mesh *mesh;
    struct node_head *head;
    size_t bytes;       /* of the shared memory */
    size_t chunk;       /* bytes of a slot */
    unsigned crowded;   /* waits for which others have the CPU, it seems */
    unsigned left;      /* of those */
    char *slots;        /* by rank, then by step */
    char *results;      /* by step */
    long rank, size;    /* local */
    long *world;        /* the mesh's rank of each */
    uint64_t meeting;   /* the next one */
    uint64_t step;      /* the next one */
    uint64_t call;      /* as in struct node_rank */
    uint64_t say;       /* likewise */
    const void **parts; /* room for one of each rank */
};

/* One call of a collective: parts of the tensor go through the slots, step by
 * step. */
struct node_work {
    struct node_group *node;
    const char *in;
    char *out;
    size_t size; /* of an element */
    enum slurmdl_type type;
    enum slurmdl_op op;
    double factor;
    struct node_layout layout; /* which part is whose, in elements */
    const size_t *totals;      /* elements of each rank's blocks */
    size_t n;                  /* of all */
    size_t step;               /* elements of a step (of each rank) */
    size_t steps;
    uint64_t first; /* number of the first step */
    long root;      /* -1: each */
};

enum node_kind {
    NODE_REDUCE,
    NODE_SCATTER,
    NODE_GATHER,
    NODE_BROADCAST,
    NODE_ALLTOALL,
    NODE_BARRIER
};

/* Steps of one meeting each: put what the others need, take what we need. */
typedef void (*node_step_f) (const struct node_work *w, size_t step);

/* Come to the next meeting, whose number is returned. */
uint64_t node_come (struct node_group *n);

/* Until all have come there; every meeting is waited for, in order. */
int node_wait (struct node_group *n, uint64_t meeting, struct slurmdl_error *err);

/* What rank 'r' said there. */
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
