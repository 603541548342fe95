/* SPDX-License-Identifier: Apache-2.0 */
/* A server's part of a table. */
#pragma once

#include "runtime/ps/rules.h"

/* A dense table is rows of PS_BLOCK elements, the last one shorter; so both
 * kinds are rows with values, the rule's slots, and how often it was applied.
 */
struct ps_copy;

struct ps_table {
    struct ps_spec spec;
    const struct ps_rule *rule;
    uint64_t key;
    uint64_t n;                 /* elements of a dense shard */
    uint64_t rows, room;        /* of arrays below */
    uint32_t width;             /* elements of a row */
    float *value[1 + PS_SLOTS]; /* [0]: the parameters */
    uint32_t *times;
    uint64_t *ids;       /* of a sparse one */
    uint32_t *buckets;   /* open addressing: row + 1 */
    uint64_t nbuckets;   /* a power of two */
    uint32_t *place;     /* of each row: where its sum is, + 1 (sum.c) */
    uint64_t missing;    /* blocks whose initial values have not come */
    bool awaited;        /* it was saved like that */
    unsigned char *got;  /* which have */
    struct ps_sum *sums; /* of each worker, for mode sync */
    long workers;
    struct ps_copy *copy; /* of a save that is being copied; NULL */
};

struct ps_table *ps_table_create (const struct ps_spec *spec,
                                  long server,
                                  long servers,
                                  long workers);
void ps_table_destroy (struct ps_table *t); /* NULL is accepted */

bool ps_table_is_dense (const struct ps_table *t);

/* Elements of row 'r'. */
size_t ps_table_length (const struct ps_table *t, uint64_t r);

/* The row of an id, which is made; -1: out of memory.  Pointers to rows are
 * good until the next call.
 */
int64_t ps_table_row (struct ps_table *t, uint64_t id);

/* Restoring a sparse table: make room, fill the arrays, then index them. */
int ps_table_reserve (struct ps_table *t, uint64_t rows);
int ps_table_index (struct ps_table *t);

/* Initial values; those of a block count once.  NULL: all are zero. */
void ps_table_initial (struct ps_table *t,
                       uint64_t offset,
                       const float *values,
                       uint64_t n);

/* Apply gradients at once: 'n' elements at 'offset', a multiple of PS_BLOCK;
 * or of 'n' rows.  -1: out of memory, and nothing was done.
 */
void ps_table_apply (struct ps_table *t,
                     uint64_t offset,
                     const float *gradient,
                     uint64_t n);
int ps_table_apply_rows (struct ps_table *t,
                         const uint64_t *ids,
                         const float *gradients,
                         uint64_t n);

/* Keep them until the end of the iteration; in mode sync. */
int ps_table_keep (struct ps_table *t,
                   long worker,
                   uint64_t offset,
                   const float *gradient,
                   uint64_t n);
int ps_table_keep_rows (struct ps_table *t,
                        long worker,
                        const uint64_t *ids,
                        const float *gradients,
                        uint64_t n);
void ps_table_forget (struct ps_table *t, long worker);

/* Apply the sums of all workers, in their order, once. */
int ps_table_end (struct ps_table *t);
