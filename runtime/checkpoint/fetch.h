/* SPDX-License-Identifier: Apache-2.0 */
/* Read parts of a checkpoint in several threads, and verify them. */
#pragma once

#include <stdatomic.h>

#include "runtime/checkpoint/manifest.h"

/* A saved slab, read whole, and the memory that needs a part of it. */
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
    const struct manifest_row *bad; /* the part at which fetch_run() failed, or NULL */
};

/* Schedule reading the slab 'to' of a tensor into 'data' (host memory): only
 * the saved slabs that it overlaps.
 */
int fetch_add (struct fetch *f, const struct manifest_row *row, const struct slab *to, void *data);

/* Schedule the verification of a whole tensor. */
int fetch_add_whole (struct fetch *f, const struct manifest_row *row);

/* Read everything that was scheduled, in at most 'threads' threads, each a
 * section of the file from front to back.
 *
 * Returns 0, or -1: EBADMSG (damaged or truncated), ECANCELED once '*cancel' is
 * nonzero ('cancel' may be NULL), ENOMEM, EIO.
 */
int fetch_run (struct fetch *f, long threads, atomic_int *cancel);
void fetch_free (struct fetch *f);

/* ---- open a checkpoint, list, read and verify its tensors (check.c) ---- */

/* Verify a whole file as it is on the disk; its step must be 'step'. */
int check_file (const char *path, int64_t step, atomic_int *cancel);

struct slurmdl_checkpoint {
    int fd;
    struct manifest m;
    char *path;
};
