/* SPDX-License-Identifier: Apache-2.0 */
/* The tables in a checkpoint that describe its contents, with checksums. */
#pragma once

#include <stdint.h>

#include "runtime/run/run.h"
#include "runtime/storage/h5.h"
#include "runtime/storage/name_index.h"

/* This folder: save.c and stream.c write a checkpoint with staging.c, pieces.c and commit.c;
 * restore.c reads one with check.c and fetch.c.
 */

/* One tensor: a dataset of the checkpoint. */
struct manifest_row {
    char name[DATASET_NAME_SIZE];
    uint64_t dims[DIMS_MAX];
    uint64_t offset; /* of the data in the file */
    uint64_t bytes;
    uint32_t type; /* enum slurmdl_type */
    uint32_t ndims;
    uint32_t crc;    /* CRC-32C of the data, or the first of its shards */
    uint32_t shards; /* 0: one, the whole tensor */
};

/* A slab of a tensor, as a rank wrote it. */
struct shard_row {
    uint64_t offset[DIMS_MAX];
    uint64_t dims[DIMS_MAX];
    uint32_t tensor;
    uint32_t rank;
    uint32_t crc; /* CRC-32C of its elements in C order */
    uint32_t reserved;
};

struct manifest {
    int64_t step;
    hsize_t n;
    struct manifest_row *rows;
    struct name_index names; /* of the rows */
    uint64_t offset;         /* of the rows in the file */
    hsize_t nshards;
    struct shard_row *shards; /* those of a tensor are adjacent */
    uint64_t shards_offset;
    uint64_t length; /* of the HDF5 file; as read */
    uint32_t rest_crc;
    bool guessed; /* its padding was not checked */
};

/* The data of each tensor begin at a multiple of this. */
enum { MANIFEST_ALIGNMENT = 4096 };

/* A trailer behind the HDF5 file, which HDF5 ignores.  With it, every bit of a file is verified
 * before anybody interprets it: libhdf5 is not designed to read damaged files.
 */
struct trailer {
    char magic[8]; /* "SLURMDL1" */
    int64_t step;
    uint64_t length;   /* of the HDF5 file: offset of the trailer */
    uint64_t manifest; /* offset of the manifest's rows */
    uint64_t rows;     /* their number */
    uint64_t shards;   /* offset of the shards' rows */
    uint64_t nshards;
    uint32_t rest_crc; /* CRC-32C of the HDF5 file without the tensors' data */
    uint32_t crc;      /* CRC-32C of the trailer before it */
};

/* Read the manifest that the trailer points to, verify everything but the data and the padding
 * between them, and check that the numbers are consistent.  Returns -1 with EBADMSG if the file is
 * damaged, EPROTONOSUPPORT if a later version wrote it; any other errno comes from the disk or from
 * this process.  Call manifest_free() in any case.
 */
int manifest_read (int fd, struct manifest *m);
/* Also verify the padding.  Returns 0, or -1 with EBADMSG. */
int manifest_check_rest (int fd, const struct manifest *m);
void manifest_free (struct manifest *m);

/* The parts of a file of 'length' bytes that are not data of a tensor, in order; the caller frees
 * the list.  Returns NULL if data overlap or reach beyond the end.
 */
struct part {
    uint64_t at, bytes;
};
struct part *manifest_rest (const struct manifest *m, uint64_t length, size_t *n);

/* The row with this name, or NULL. */
struct manifest_row *manifest_find (const struct manifest *m, const char *name);

/* Shard 'i' of a row.  For a tensor without shards in the table, fills in and returns 'whole'. */
const struct shard_row *manifest_shard (const struct manifest *m, const struct manifest_row *row,
                                        uint32_t i, struct shard_row *whole);
static inline uint32_t manifest_shards (const struct manifest_row *row)
{
    return row->shards ? row->shards : 1;
}
struct slab shard_slab (const struct manifest_row *row, const struct shard_row *s);

/* Whether the shards of each tensor cover it exactly once; otherwise, 'name' is set to a tensor for
 * which they do not.
 */
bool manifest_covered (const struct manifest *m, char *name);
