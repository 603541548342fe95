/* SPDX-License-Identifier: Apache-2.0 */
/* Make one checkpoint of the data of all ranks, and give it its name. */
#pragma once

#include "runtime/run/run.h"

struct memory_ops;

/* Larger regions are divided into parts of this size, each a slab with its checksum. */
enum { PART_BYTES = 16 << 20 };

/* What this rank contributes to a checkpoint: memory that stays unchanged until
 * the checkpoint is made.
 */
struct piece {
    char name[DATASET_NAME_SIZE];
    enum slurmdl_type type;
    uint64_t dims[DIMS_MAX]; /* of the tensor */
    struct slab slab;
    uint64_t bytes;
    const unsigned char *data;
    const struct memory_ops *device; /* NULL: the host's */
    bool shard;
    uint64_t offset; /* of the tensor's data in the file */
    uint32_t crc;
};

struct save_job {
    int64_t step;
    bool shared; /* by all ranks */
    struct piece *list;
    size_t n;
};

/* Returns 0 once the checkpoint has its name 'path' (PATH_MAX); the same on all ranks. */
int commit (struct slurmdl *run, struct save_job *job, char *path, struct slurmdl_error *err);

/* Write pieces, whose offsets are set, into the file, and set their checksums. */
struct draft;
int write_pieces (const char *path, int fd, struct piece *list, size_t n,
                  const struct draft *whole);

/* Files up to this size are read back whole before they get their name. */
enum { SMALL_FILE = 16 << 20 };

/* The name of a checkpoint while it is written, and its final name (PATH_MAX each). */
int finish_paths (const char *dir, int64_t step, char *tmp, char *path, struct slurmdl_error *err);

/* Give a finished file its name; an existing file of that name is out of date. */
int finish_name (const char *tmp, const char *path);

/* ---- copy protected memory, to write it while training continues (snapshot.c) ---- */

/* Page-aligned memory that is reused; pinned for a device if device memory is copied. */
struct buffer {
    unsigned char *data;
    size_t size;
    const struct memory_ops *device;
    bool pinned;
};

/* Create the job with the pieces of this rank, in the program's own memory. */
int job_create (struct save_job *job, const struct slurmdl *run, int64_t step);
/* Add a region to a job, in parts of at most PART_BYTES. */
int job_add (struct save_job *job, const struct region *r);
void job_free (struct save_job *job);

/* Copy the job into the buffer.  On failure the job is unchanged: ENOMEM (more
 * than DL_SNAPSHOT_MAX, or than half of the free memory), EIO from a device.
 */
int snapshot_take (struct buffer *b, struct save_job *job);
/* Allocate the buffer that the job needs: 0, or -1 with ENOMEM. */
int snapshot_prepare (struct buffer *b, const struct save_job *job);
void buffer_free (struct buffer *b);

/* ---- the saves of a run that are in flight (save.c) ---- */

/* Wait for them.  Returns -1 if one has failed.  NULL is accepted. */
struct saver;
int saver_destroy (struct saver *s);
