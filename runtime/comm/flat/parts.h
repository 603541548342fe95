/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms over a mesh, for those that choose between them. */
#pragma once

#include "runtime/comm/mesh/mesh.h"

/* An array in parts, one a rank: part r begins at element at[r] and ends at
 * at[r + 1]. */
struct parts {
    const char *in; /* only read; may be 'out' */
    char *out;
    const size_t *at;
    long n;
    size_t size; /* of an element */
    enum slurmdl_type type;
    enum slurmdl_op op;
};

/* n / ranks elements each, one more for each of the first n % ranks. */
void parts_even (size_t *at, long ranks, size_t n);

/* Both in ceil (log2 (ranks)) steps, in which each rank sends all but its own
 * part once in total, for any number of ranks (the circulant graph of Traeff,
 * "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024,
 * arXiv:2410.14234): in each step a rank sends half of the parts that it
 * still cares for to the rank that many after it.
 */

/* This rank's part of 'out' becomes the reduced one of 'in'; what else of
 * 'out' there is is used up. */
int parts_reduce_scatter (struct mesh *m, const struct parts *p, struct slurmdl_error *err);

/* Each rank has its part of 'out', and gets the others'. */
int parts_allgather (struct mesh *m, const struct parts *p, struct slurmdl_error *err);

/* For few bytes: every rank gets all that the others have, and reduces it
 * itself, in the order of ranks; also ceil (log2 (ranks)) steps, half as many
 * as both of the above. */
int parts_gather_reduce (struct mesh *m, const void *in, void *out, size_t n,
                         enum slurmdl_type type, enum slurmdl_op op, struct slurmdl_error *err);

/* For many bytes: from each rank to the next one after it, in segments. */
int parts_chain (struct mesh *m, char *data, size_t bytes, long root, struct slurmdl_error *err);
