/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in two stages: inside nodes and between them. */
#ifndef RUNTIME_COMM_HIERARCHICAL_HIERARCHICAL_H
#define RUNTIME_COMM_HIERARCHICAL_HIERARCHICAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/comm/node/node.h"

/* Where all nodes have as many ranks, each rank talks to those of the same
 * local rank on the other nodes, its rail: with its share of a large tensor,
 * so that all have the same work.  Else the first rank of each node does.
 */
enum hier_shape {
    HIER_UNKNOWN, /* before the first collective */
    HIER_FLAT,    /* no two ranks share a node, or cannot share memory */
    HIER_NODE,    /* all share one */
    HIER_RAILS,
    HIER_LEADERS
};

struct hier {
    pid_t pid; /* a child of this process has no part in it */
    struct mesh *mesh;
    enum hier_shape shape;
    _Atomic (struct node *) node; /* NULL: we are alone on it */
    _Atomic (struct mesh *) rail; /* our rail, or the leaders if we are one */
    long nodes, own;              /* number of nodes, and ours */
    long local_rank, local_size;
    long *members; /* of a rail: rank on each node, by local rank and node */
};

/* Nothing is exchanged yet; the mesh stays the caller's. */
struct hier *hier_open (struct mesh *m, struct slurmdl_error *err);
void hier_close (struct hier *h); /* NULL is accepted */

/* From another thread or after an error: nobody waits for us any more. */
void hier_abort (struct hier *h, const char *why);

/* Whether a collective can begin.  The first one finds out the shape. */
int hier_prepare (struct hier *h, struct slurmdl_error *err);

/* Any collective of HIER_RAILS and HIER_LEADERS; of HIER_NODE a reduce-scatter
 * and an all-gather.
 */
int hier_run (struct hier *h,
              const struct collective *c,
              struct slurmdl_error *err);

#endif
