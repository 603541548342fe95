/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives among the ranks of one node, through shared memory. */
#pragma once

#include "runtime/comm/mesh/collective.h"
#include "runtime/comm/mesh/mesh.h"

/* The ranks of our node in a mesh share a piece of memory that has no name
 * (memfd_create(2)): nothing is left of it whatever is killed. All of it
 * is there from the beginning.
 *
 * Tensors of any size go through it in parts that stay in the cache.  While
 * one part is reduced, the next one is copied.  Ranks that wait spin for
 * a moment, where there is a CPU for each of them, and sleep then.  Every wait
 * ends when a rank of the node has ended, when the mesh is broken, and after
 * mesh_timeout().
 */
struct node_group;

/* All ranks of the node call it.  NULL; with errno ENOTSUP, on all of them,
 * where they cannot share memory.
 */
struct node_group *node_open (struct mesh *m, struct slurmdl_error *err);
void node_close (struct node_group *n); /* NULL is accepted */

/* From another thread, or after an error: end all ranks' waits. */
void node_abort (struct node_group *n, const char *why);

/* Any collective but a reduce-scatter and an all-gather, with local ranks.
 */
int node_run (struct node_group *n, const struct collective *c, struct slurmdl_error *err);

/* Each local rank has as many blocks of a tensor: block b of rank r begins at
 * starts[r * blocks + b] and has counts[r * blocks + b] elements.  By itself a
 * rank has its blocks one after another.
 */
struct node_layout {
    size_t blocks;
    const size_t *starts, *counts;
};

/* 'out': this rank's blocks of the reduced 'in', of c->type by c->op.  With one
 * block it may be that part of 'in'.
 */
int node_reduce_scatter (struct node_group *n, const struct collective *c, void *out,
                         const struct node_layout *l, struct slurmdl_error *err);

/* 'in': this rank's blocks, 'out': those of all, of bytes.  With one block
 * 'in' may be its part of 'out'.
 */
int node_allgather (struct node_group *n, const void *in, void *out, const struct node_layout *l,
                    struct slurmdl_error *err);
