/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs of a tensor: overlap, and the runs that two of them share. */
#include "runtime/storage/slab.h"

#include <string.h>

struct slab slab_whole (int ndims, const uint64_t *dims)
{
    struct slab s = { .ndims = ndims };

    for (int i = 0; i < ndims; i++)
        s.dims[i] = dims[i];
    return s;
}

bool slab_fits (const struct slab *s, const uint64_t *dims)
{
    for (int i = 0; i < s->ndims; i++)
        if (s->dims[i] > dims[i] || s->offset[i] > dims[i] - s->dims[i])
            return false;
    return true;
}

uint64_t slab_elements (const struct slab *s)
{
    uint64_t n = 1;

    for (int i = 0; i < s->ndims; i++)
        if (s->dims[i] == 0)
            return 0;
    for (int i = 0; i < s->ndims; i++)
        if (__builtin_mul_overflow (n, s->dims[i], &n))
            return UINT64_MAX;
    return n;
}

bool slab_overlap (const struct slab *a, const struct slab *b, struct slab *both)
{
    *both = (struct slab){ .ndims = a->ndims };
    for (int i = 0; i < a->ndims; i++) {
        uint64_t from = a->offset[i] > b->offset[i] ? a->offset[i] : b->offset[i];
        uint64_t end_a = a->offset[i] + a->dims[i];
        uint64_t end_b = b->offset[i] + b->dims[i];
        uint64_t end = end_a < end_b ? end_a : end_b;
        if (from >= end)
            return false;
        both->offset[i] = from;
        both->dims[i] = end - from;
    }
    return true;
}

/* Index within slab 's' of the tensor element 'at'. */
static uint64_t element_offset (const struct slab *s, const uint64_t *at)
{
    uint64_t n = 0;

    for (int i = 0; i < s->ndims; i++)
        n = n * s->dims[i] + (at[i] - s->offset[i]);
    return n;
}

/* Advance 'at' in the first 'depth' dimensions.  Returns false after the last element. */
static bool next_element (const struct slab *s, uint64_t *at, int depth)
{
    for (int i = depth - 1; i >= 0; i--) {
        if (++at[i] < s->offset[i] + s->dims[i])
            return true;
        at[i] = s->offset[i];
    }
    return false;
}

int slab_walk (const struct slab *a, const struct slab *b, slab_f f, void *arg)
{
    struct slab both;
    uint64_t at[DIMS_MAX];
    uint64_t run = 1;
    int depth;
    int rv;

    if (!slab_overlap (a, b, &both))
        return 0;
    /* merge inner dimensions that both slabs cover completely into one run */
    for (depth = both.ndims; depth > 0;) {
        int i = --depth;
        run *= both.dims[i];
        if (both.dims[i] != a->dims[i] || both.dims[i] != b->dims[i])
            break;
    }
    memcpy (at, both.offset, sizeof (at));
    do
        if ((rv = f (element_offset (a, at), element_offset (b, at), run, arg)))
            return rv;
    while (next_element (&both, at, depth));
    return 0;
}

static int cut_slab (struct slab s, int dim, uint64_t most, slab_part_f f, void *arg)
{
    uint64_t end, row, rows;
    int rv = 0;

    while (dim < s.ndims && s.dims[dim] == 1)
        dim++;
    if (dim >= s.ndims || slab_elements (&s) <= most)
        return f (&s, arg);
    end = s.offset[dim] + s.dims[dim];
    row = slab_elements (&s) / s.dims[dim];
    rows = row < most ? most / row : 1;
    while (rv == 0 && s.offset[dim] < end) {
        s.dims[dim] = end - s.offset[dim] < rows ? end - s.offset[dim] : rows;
        rv = cut_slab (s, dim + 1, most, f, arg);
        s.offset[dim] += s.dims[dim];
    }
    return rv;
}

int slab_cut (const struct slab *s, uint64_t most, slab_part_f f, void *arg)
{
    return cut_slab (*s, 0, most ? most : 1, f, arg);
}

struct slab_copy {
    unsigned char *to;
    const unsigned char *from;
    uint64_t size;
};

static int copy_run (uint64_t at_to, uint64_t at_from, uint64_t n, void *arg)
{
    const struct slab_copy *c = arg;

    memcpy (c->to + at_to * c->size, c->from + at_from * c->size, n * c->size);
    return 0;
}

void slab_copy (const struct slab *to_box, void *to, const struct slab *from_box, const void *from,
                uint64_t element_size)
{
    struct slab_copy c = { to, from, element_size };

    slab_walk (to_box, from_box, copy_run, &c);
}
