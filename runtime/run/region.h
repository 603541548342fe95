/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a run's checkpoints: protected memory and states. */
#pragma once

#include <stddef.h>

#include "runtime/slurmdl.h"
#include "runtime/storage/name_index.h"
#include "runtime/storage/slab.h"

enum { DATASET_NAME_SIZE = SLURMDL_NAME_SIZE };

/* Memory that is part of the checkpoint. */
struct region {
    char name[DATASET_NAME_SIZE];
    enum slurmdl_type type;
    uint64_t dims[DIMS_MAX]; /* of the tensor */
    struct slab slab;        /* this rank's */
    uint64_t bytes;          /* of the slab */
    void *data;
    bool shard; /* this rank's own: a slab, or a state with %r */
    bool state; /* 'data' is our own copy */
};

struct regions {
    struct region *list;
    size_t n;
    struct name_index names;
};

/* Whether saving is collective. */
bool regions_shared (const struct regions *r);

struct region *regions_find (const struct regions *r, const char *name);

/* Add a state under the name of its dataset; takes ownership of 'data'. */
int regions_put_state (struct regions *r, const char *name, void *data, size_t n, bool own);
void regions_clear (struct regions *r);

/* Write "state/NAME", with the rank in place of %r; sets '*own' to whether NAME has a %r. */
int state_dataset (const char *name, long rank, char *buf, bool *own);
bool is_state (const char *dataset);
