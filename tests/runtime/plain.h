/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs, element by element. */
#pragma once

#include "runtime/storage/slab.h"

static inline uint64_t count_of (const struct slab *s)
{
    uint64_t n = 1;

    for (int i = 0; i < s->ndims; i++)
        n *= s->dims[i];
    return n;
}

/* The index in box 'a' of the k-th element of box 'b', or -1 if it is not in 'a'. */
static inline int64_t plain_place (const struct slab *a, const struct slab *b, uint64_t k)
{
    uint64_t at[DIMS_MAX];
    uint64_t n = 0;

    for (int i = b->ndims - 1; i >= 0; i--) {
        at[i] = b->offset[i] + k % b->dims[i];
        k /= b->dims[i];
    }
    for (int i = 0; i < a->ndims; i++) {
        if (at[i] < a->offset[i] || at[i] >= a->offset[i] + a->dims[i])
            return -1;
        n = n * a->dims[i] + at[i] - a->offset[i];
    }
    return (int64_t)n;
}
