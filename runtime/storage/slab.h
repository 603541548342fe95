/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs of a tensor: overlaps, and the runs that two of them share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DIMS_MAX = 8 };

/* A box of a tensor, stored separately in C order. */
struct slab {
    int ndims; /* 0: a scalar */
    uint64_t offset[DIMS_MAX];
    uint64_t dims[DIMS_MAX];
};

/* The whole of a tensor. */
struct slab slab_whole (int ndims, const uint64_t *dims);

/* Whether the box lies within the tensor. */
bool slab_fits (const struct slab *s, const uint64_t *dims);

/* Number of elements; UINT64_MAX if there are that many or more. */
uint64_t slab_elements (const struct slab *s);

/* Whether two boxes of one tensor overlap; and the overlap. */
bool slab_overlap (const struct slab *a, const struct slab *b, struct slab *both);

/* Call 'f' for each longest run of elements that is contiguous in both boxes,
 * in order; positions are in elements of each box.  If 'f' returns nonzero,
 * stop and return that.
 */
typedef int (*slab_f) (uint64_t at_a, uint64_t at_b, uint64_t n, void *arg);
int slab_walk (const struct slab *a, const struct slab *b, slab_f f, void *arg);

/* Call 'f' for parts of at most 'most' elements, in C order: whole rows of the
 * outermost dimension with more than one, or, if rows are longer, parts of
 * rows.  If 'f' returns nonzero, stop and return that.
 */
typedef int (*slab_part_f) (const struct slab *part, void *arg);
int slab_cut (const struct slab *s, uint64_t most, slab_part_f f, void *arg);

/* Copy the overlap. */
void slab_copy (const struct slab *to_box, void *to, const struct slab *from_box, const void *from,
                uint64_t element_size);
