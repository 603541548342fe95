/* SPDX-License-Identifier: Apache-2.0 */
/* Count which parts of the ranks are ready for a tensor. */
#pragma once

#include "runtime/comm/engine/packet.h"

/* The ranks form a tree whose root, rank 0, decides.  The units of a rank are its children and
 * itself.  A rank passes on that a numbered tensor is ready once, when all its units are.  For a
 * step that was seen before, rank 0 therefore receives one short message from each of its children,
 * however many ranks there are.
 */
struct readiness;

/* 'ranks': the number of ranks in each unit; the first unit is the rank itself. */
struct readiness *readiness_create (size_t units, const long *ranks);
void readiness_destroy (struct readiness *r); /* NULL is accepted */

int readiness_assign (struct readiness *r, uint32_t id); /* begin to count it */
void readiness_drop (struct readiness *r, uint32_t id);

/* All ranks of a unit that have not joined are ready; unknown ids are ignored, because a message
 * about a dropped one may be late.
 */
int readiness_ready (struct readiness *r, uint32_t id);

/* One rank of the unit has joined: it counts as ready for everything until readiness_rejoin(). */
int readiness_join (struct readiness *r, size_t unit);
void readiness_rejoin (struct readiness *r);

/* The '*n' ids for which all units have become ready since the last call; valid until the next
 * call. */
uint32_t *readiness_full (struct readiness *r, size_t *n);

/* The place of a rank in the tree: */
struct engine_tree {
    long parent;    /* -1: rank 0 */
    long *children; /* 'n' of them */
    long *below;    /* number of ranks in the subtree of each child */
    size_t n;
};

/* each rank is below the first rank of its node, and these form a tree with 'fan' children each.
 * node[rank] counts from 0 in the order of the first ranks.
 */
int engine_tree_make (struct engine_tree *t, long rank, long size, const long *node, long fan);
void engine_tree_free (struct engine_tree *t);
