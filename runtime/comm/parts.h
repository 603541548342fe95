/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms over a mesh, for those that choose between them. */
#ifndef RUNTIME_COMM_PARTS_H
#define RUNTIME_COMM_PARTS_H

#include "runtime/comm/mesh.h"

/* An array that is reduced in parts, one a rank: part r begins at element
 * at[r] and ends at at[r + 1]. */
struct parts {
    char *data;
    size_t *at;
    long n;
    enum slurmdl_type type;
    size_t size; /* of an element */
    enum slurmdl_op op;
};

/* n / ranks elements each, one more for each of the first n % ranks. */
void parts_even (size_t *at, long ranks, size_t n);

/* Every rank's part of 'data' becomes the reduced one; the rest of it is
 * used up.  (Ring: each step reduces a part and passes it on.) */
int ring_reduce_scatter (struct mesh *m,
                         const struct parts *p,
                         struct slurmdl_error *err);

/* Every rank has its part of 'data', and gets the others'; bytes. */
int ring_allgather (struct mesh *m,
                    char *data,
                    const size_t *at,
                    struct slurmdl_error *err);

#endif
