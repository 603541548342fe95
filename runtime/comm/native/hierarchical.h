/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in two stages: inside nodes and between them. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/comm/native/node.h"

/* Where all nodes have as many ranks, each rank exchanges with those of the
 * same local rank on the other nodes, its rail: with its share of a large
 * tensor, so that all have the same work.  Else the first rank of each node
 * does.
 */
enum hierarchy_shape {
    HIERARCHY_UNKNOWN, /* before the first collective */
    HIERARCHY_FLAT,    /* no two ranks share a node, or cannot share memory */
    HIERARCHY_NODE,    /* all share one */
    HIERARCHY_RAILS,
    HIERARCHY_LEADERS
};

struct hierarchy {
    pid_t pid; /* a child of this process has no part in it */
    struct mesh *mesh;
    enum hierarchy_shape shape;
    _Atomic (struct node_group *) node; /* NULL: we are alone on it */
    _Atomic (struct mesh *) rail;       /* our rail, or the leaders if we are one */
    long nodes, own;                    /* number of nodes, and ours */
    long local_rank, local_size;
    long *members; /* of a rail: rank on each node, by local rank and node */
};

/* Nothing is exchanged yet; the mesh stays the caller's. */
struct hierarchy *hierarchy_open (struct mesh *m, struct slurmdl_error *err);
void hierarchy_close (struct hierarchy *h); /* NULL is accepted */

/* From another thread or after an error: nobody waits for us any more. */
void hierarchy_abort (struct hierarchy *h, const char *why);

/* Whether a collective can begin.  The first one finds out the shape. */
int hierarchy_prepare (struct hierarchy *h, struct slurmdl_error *err);

/* Any collective of HIERARCHY_RAILS and HIERARCHY_LEADERS; of HIERARCHY_NODE a
 * reduce-scatter and an all-gather.
 */
int hierarchy_run (struct hierarchy *h, const struct collective *c, struct slurmdl_error *err);
