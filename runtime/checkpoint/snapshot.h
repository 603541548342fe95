/* SPDX-License-Identifier: Apache-2.0 */
/* Copy protected memory, so that training can continue while it is written. */
#pragma once

#include "runtime/checkpoint/commit.h"

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
