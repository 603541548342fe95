/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in two stages: inside nodes and between them. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/comm/native/node.h"

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
