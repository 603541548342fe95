/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives among the ranks of one node, through shared memory. */
#pragma once

#include "runtime/comm/mesh/collective.h"
#include "runtime/comm/mesh/mesh.h"

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
