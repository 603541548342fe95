/* SPDX-License-Identifier: Apache-2.0 */
/* What all ranks have, put together as one checkpoint. */
#pragma once

#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/staging.h"

/* What a rank has: its pieces, without the data. */
struct entry {
    char name[DATASET_NAME_SIZE];
    uint32_t type;
    uint32_t shard;
    uint64_t dims[DIMS_MAX];
    struct slab slab;
    uint64_t bytes;
};

struct plan {
    int64_t step;
    uint64_t n;
    struct entry list[];
};

struct part_of {
    long rank;
    struct plan *plan;
    void *layout; /* what it is told */
    size_t first; /* of its entries among all */
};

struct merge_item {
    const struct entry *entry;
    long rank;
    size_t i; /* in the rank's plan */
    int64_t row;
    int64_t shard; /* -1: all of the tensor */
};

struct merge {
    long ranks;
    struct part_of *parts;
    struct merge_item *items; /* by name, then by rank */
    size_t n;
    struct draft draft;
};

/* Of a job; sets its size in bytes. */
struct plan *make_plan (const struct save_job *job, size_t *size);

/* Make the file 'tmp' for what the plans in 'parts' say.  EINVAL if they do not
 * fit each other, or slabs do not cover their tensor once.
 */
int merge_lay_out (struct merge *g, const char *tmp, int64_t step, struct slurmdl_error *err);

/* Put the checksums of a rank's pieces into the manifest. */
void merge_set_crc (struct merge *g, long rank, const uint32_t *crcs);

/* The same two things for rank 0's own job. */
void merge_own_offsets (const struct merge *g, struct save_job *job);
int merge_own_crcs (struct merge *g, const struct save_job *job);

void merge_free (struct merge *g);
