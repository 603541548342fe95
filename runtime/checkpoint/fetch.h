/* SPDX-License-Identifier: Apache-2.0 */
/* Read parts of a checkpoint by several threads, and verify them. */
#pragma once

#include <stdatomic.h>

#include "runtime/checkpoint/manifest.h"

/* A saved slab, whole, and the memory that wants some of it. */
struct fetch_part {
    const struct manifest_row *row;
    struct shard_row shard;
    struct slab to;
    void *data;  /* of 'to'; NULL: only verified */
    uint64_t at; /* first byte in the file */
};

struct fetch {
    int fd;
    const struct manifest *m;
    struct fetch_part *list;
    size_t n;
    const struct manifest_row *bad; /* what fetch_run() failed at, or NULL */
};

/* Ask for what the slab 'to' of a tensor has, to be put into 'data' (the
 * host's): the saved slabs that it touches, and no others.
 */
int fetch_add (struct fetch *f, const struct manifest_row *row, const struct slab *to, void *data);

/* Ask that all of a tensor be verified. */
int fetch_add_whole (struct fetch *f, const struct manifest_row *row);

/* Read all that was asked for by at most 'threads' threads, each a stretch of
 * the file from front to back.
 *
 * Returns 0, or -1: EBADMSG (damaged, or cut), ECANCELED once '*cancel' is
 * nonzero ('cancel' may be NULL), ENOMEM, EIO.
 */
int fetch_run (struct fetch *f, long threads, atomic_int *cancel);
void fetch_free (struct fetch *f);
