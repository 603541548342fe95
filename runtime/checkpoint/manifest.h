/* SPDX-License-Identifier: Apache-2.0 */
/* The tables in a checkpoint that say what is in it, with checksums. */
#pragma once

#include <stdint.h>

#include "runtime/run/run.h"
#include "runtime/storage/h5.h"
#include "runtime/storage/name_index.h"

/* This folder: save.c and stream.c make a checkpoint by staging.c, pieces.c and
 * commit.c; restore.c reads one by check.c and fetch.c.
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
    uint32_t shards; /* 0: one, which is all of it */
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
    struct shard_row *shards; /* of one tensor together */
    uint64_t shards_offset;
    uint64_t length; /* of the HDF5 file; as read */
    uint32_t rest_crc;
    bool guessed; /* its padding was not looked at */
};

/* The data of each tensor begin at a multiple of this. */
enum { MANIFEST_ALIGNMENT = 4096 };

/* A trailer behind the HDF5 file, which HDF5 does not look at.  With it a
 * file is verified bit by bit before libhdf5 or anybody else believes a word
 * of it: libhdf5 is not made to read damaged files.
 */
struct trailer {
    char magic[8]; /* "SLURMDL2" */
    int64_t step;
    uint64_t length;   /* of the HDF5 file; the trailer lies there */
    uint64_t manifest; /* offset of the manifest's rows */
    uint64_t rows;     /* their number */
    uint64_t shards;   /* offset of the shards' rows */
    uint64_t nshards;
    uint32_t rest_crc; /* CRC-32C of the HDF5 file without the tensors' data */
    uint32_t crc;      /* CRC-32C of the trailer before it */
};

/* Read the manifest by the trailer; all but the data, and the padding between
 * them, is then verified, and its numbers make sense.  -1 with EBADMSG: it is
 * damaged; EPROTONOSUPPORT: a later version has written it; any other errno is
 * one of the disk or of this process.  manifest_free() in any case.
 */
int manifest_read (int fd, struct manifest *m);
/* Verify the padding, too: 0, or -1 with EBADMSG. */
int manifest_check_rest (int fd, const struct manifest *m);
void manifest_free (struct manifest *m);

/* The parts of a file of 'length' bytes that are no tensor's data, in order;
 * the caller frees the list.  NULL if the data overlap or reach out.
 */
struct part {
    uint64_t at, bytes;
};
struct part *manifest_rest (const struct manifest *m, uint64_t length, size_t *n);

/* NULL: it has none of this name. */
struct manifest_row *manifest_find (const struct manifest *m, const char *name);

/* Shard 'i' of a row; 'whole' is room for one that is not in the table. */
const struct shard_row *manifest_shard (const struct manifest *m, const struct manifest_row *row,
                                        uint32_t i, struct shard_row *whole);
static inline uint32_t manifest_shards (const struct manifest_row *row)
{
    return row->shards ? row->shards : 1;
}
struct slab shard_slab (const struct manifest_row *row, const struct shard_row *s);

/* Whether the shards of each tensor cover it once; the name of one of which
 * they do not is put into 'name'.
 */
bool manifest_covered (const struct manifest *m, char *name);
