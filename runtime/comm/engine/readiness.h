/* SPDX-License-Identifier: Apache-2.0 */
/* Count which parts of the ranks are ready for a tensor. */
#pragma once

#include "runtime/comm/engine/packet.h"

/* The ranks are a tree: each has a parent, up to rank 0, which decides.  What
 * is told to a rank by its children and by itself, its units, about a tensor
 * that has a number is passed on once, when all of them are ready for it; so
 * rank 0 hears of a step that was seen before in one short message from each
 * of its children, however many ranks there are.
 */
struct readiness;

/* 'ranks': how many are in each of the units; the first is the rank itself. */
struct readiness *readiness_create (size_t units, const long *ranks);
void readiness_destroy (struct readiness *r); /* NULL is accepted */

int readiness_assign (struct readiness *r, uint32_t id); /* it may be counted now */
void readiness_drop (struct readiness *r, uint32_t id);

/* All ranks of a unit that have not joined are ready; unknown ones are late
 * messages about dropped ones. */
int readiness_ready (struct readiness *r, uint32_t id);

/* One rank of the unit takes part in everything from now on, until
 * readiness_rejoin(). */
int readiness_join (struct readiness *r, size_t unit);
void readiness_rejoin (struct readiness *r);

/* Those that all units are ready for, since the last time: '*n' of them,
 * valid until the next call. */
uint32_t *readiness_full (struct readiness *r, size_t *n);

/* The unit whose parent is this one... */
struct engine_tree {
    long parent;    /* -1: rank 0 */
    long *children; /* 'n' of them */
    long *below;    /* ranks in each child's part */
    size_t n;
};

/* ...: each rank is below the first one of its node, and those are a tree of
 * 'fan' children each.  node[rank] counts from 0 in the order of first ranks.
 */
int engine_tree_make (struct engine_tree *t, long rank, long size, const long *node, long fan);
void engine_tree_free (struct engine_tree *t);
