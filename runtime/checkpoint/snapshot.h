/* SPDX-License-Identifier: Apache-2.0 */
/* Copy protected memory, so that training can go on while it is written. */
#pragma once

#include "runtime/checkpoint/commit.h"

/* Memory that is there, aligned to a page, and used again and again; pinned
 * for a device where there is device memory to copy.
 */
struct buffer {
    unsigned char *data;
    size_t size;
    const struct memory_ops *device;
    bool pinned;
};

/* The pieces of this rank, in the program's own memory. */
int job_create (struct save_job *job, const struct slurmdl *run, int64_t step);
/* Put a region into a job, in parts of at most PART_BYTES. */
int job_add (struct save_job *job, const struct region *r);
void job_free (struct save_job *job);

/* Move the job into the buffer.  On failure the job is as it was: ENOMEM (more
 * than DL_SNAPSHOT_MAX, or than half of what is free), EIO of a device.
 */
int snapshot_take (struct buffer *b, struct save_job *job);
/* Get the buffer that the job will need: 0, or -1 with ENOMEM. */
int snapshot_prepare (struct buffer *b, const struct save_job *job);
void buffer_free (struct buffer *b);
