/* SPDX-License-Identifier: Apache-2.0 */
/* The file format of safetensors. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* 8 bytes: the length of a header; the header, JSON: an object with type,
 * shape and place of each tensor; the data, without gaps.
 */
struct safetensors {
    int fd;
    struct slurmdl_tensor *list; /* in the order of the data */
    uint64_t *offsets;           /* in the file */
    size_t n;
    int64_t step;   /* of a file that dl wrote, else -1 */
    bool own;       /* the file and its data are this user's or root's ... */
    uint32_t owner; /* ... and this is whose they are (origin.h) */
};

/* Open and check a file: nothing in it is believed that is not checked, and
 * every byte of data belongs to one tensor.  Fails with EBADMSG, or ENOTSUP
 * for a type, name or shape that a checkpoint cannot have.
 */
int safetensors_open (struct safetensors *s, const char *path, struct slurmdl_error *err);
int safetensors_read (const struct safetensors *s, size_t i, void *data, struct slurmdl_error *err);
void safetensors_close (struct safetensors *s);

/* Write the tensors of a checkpoint whose names begin with 'prefix', with the
 * rest of their names; 'path' gets its name when it is whole.  ENOENT if there
 * is none.
 */
int safetensors_write (struct slurmdl_checkpoint *c, const char *prefix, const char *path,
                       struct slurmdl_error *err);
