/* SPDX-License-Identifier: Apache-2.0 */
/* The native back end: collectives within a node, between nodes, and both. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/comm/mesh/collective.h"
#include "runtime/comm/mesh/mesh.h"

/* ---- flat.c: all ranks of a mesh are alike, nodes do not matter ---- */

/* Run any collective, also with a single rank. */
int flat_run (struct mesh *m, const struct collective *c, struct slurmdl_error *err);

/* ---- collectives among the ranks of one node, through shared memory (node.c) ---- */

/* The ranks of a mesh on one node share memory without a name (memfd_create(2)), so that nothing
 * remains whichever process is killed.  All of it is allocated at the beginning.
 *
 * Tensors of any size pass through it in parts that fit into the cache: while one part is reduced,
 * the next one is copied.  Waiting ranks spin for a moment, if there is a CPU for each of them, and
 * then sleep.  Every wait ends when a rank of the node has ended, when the mesh is broken, and
 * after mesh_timeout().
 */
struct node_group;

/* All ranks of the node call this.  Returns NULL on failure; with errno ENOTSUP on all of them if
 * they cannot share memory.
 */
struct node_group *node_open (struct mesh *m, struct slurmdl_error *err);
void node_close (struct node_group *n); /* NULL is accepted */

/* From another thread, or after an error: end the waits of all ranks. */
void node_abort (struct node_group *n, const char *why);

/* Run any collective except reduce-scatter and all-gather; ranks are local. */
int node_run (struct node_group *n, const struct collective *c, struct slurmdl_error *err);

/* Each local rank has the same number of blocks of a tensor: block b of rank r begins at
 * starts[r * blocks + b] and has counts[r * blocks + b] elements.  In its own memory, a rank stores
 * its blocks one after another.
 */
struct node_layout {
    size_t blocks;
    const size_t *starts, *counts;
};

/* Reduce 'in', of c->type, by c->op; 'out' receives the blocks of this rank.  With one block, it
 * may be that part of 'in'.
 */
int node_reduce_scatter (struct node_group *n, const struct collective *c, void *out,
                         const struct node_layout *l, struct slurmdl_error *err);

/* Gather bytes: 'in' has the blocks of this rank, 'out' receives those of all.  With one block,
 * 'in' may be its part of 'out'.
 */
int node_allgather (struct node_group *n, const void *in, void *out, const struct node_layout *l,
                    struct slurmdl_error *err);

/* ---- collectives in two stages: inside nodes and between them (hierarchical.c) ---- */

/* If all nodes have the same number of ranks, each rank exchanges its share of a large tensor with
 * the ranks of the same local rank on the other nodes, its rail, so that all ranks have the same
 * work. Otherwise, the first rank of each node, its leader, exchanges everything.
 */
enum hierarchy_shape {
    HIERARCHY_UNKNOWN, /* before the first collective */
    HIERARCHY_FLAT,    /* no two ranks share a node, or cannot share memory */
    HIERARCHY_NODE,    /* all ranks share one node */
    HIERARCHY_RAILS,
    HIERARCHY_LEADERS
};

struct hierarchy {
    pid_t pid; /* a child of this process does not use it */
    struct mesh *mesh;
    enum hierarchy_shape shape;
    _Atomic (struct node_group *) node; /* NULL: there is no other rank on it */
    _Atomic (struct mesh *) rail;       /* our rail; for a leader, the leaders */
    long nodes, own;                    /* number of nodes, and ours */
    long local_rank, local_size;
    long *members; /* of each rail: its rank on each node, by local rank and node */
};

/* Exchanges nothing yet; the caller owns the mesh. */
struct hierarchy *hierarchy_open (struct mesh *m, struct slurmdl_error *err);
void hierarchy_close (struct hierarchy *h); /* NULL is accepted */

/* From another thread or after an error: end the waits of other ranks for us. */
void hierarchy_abort (struct hierarchy *h, const char *why);

/* Prepare for a collective; the first call determines the shape. */
int hierarchy_prepare (struct hierarchy *h, struct slurmdl_error *err);

/* Run any collective with HIERARCHY_RAILS or HIERARCHY_LEADERS; with HIERARCHY_NODE, only
 * reduce-scatter and all-gather.
 */
int hierarchy_run (struct hierarchy *h, const struct collective *c, struct slurmdl_error *err);

/* ---- the shared memory of a node, and how its ranks wait (node_sync.c) ---- */

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
