/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write safetensors files. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* A file starts with the length of its header in 8 bytes.  The header is a JSON
 * object with the type, shape and offsets of each tensor.  The data follows without
 * gaps.
 */
struct safetensors {
    int fd;
    struct slurmdl_tensor *list; /* in the order of the data */
    uint64_t *offsets;           /* in the file */
    size_t n;
    int64_t step;   /* recorded by dl; -1 in files of other programs */
    bool own;       /* the file and its data belong to this user or root */
    uint32_t owner; /* user ID of the owner; see origin.h */
};

/* Open a file and validate all of its header; every byte of data must belong to
 * exactly one tensor.  Fails with EBADMSG if the file is invalid, or with ENOTSUP if a
 * checkpoint cannot represent a type, name or shape.
 */
int safetensors_open (struct safetensors *s, const char *path, struct slurmdl_error *err);
int safetensors_read (const struct safetensors *s, size_t i, void *data, struct slurmdl_error *err);
void safetensors_close (struct safetensors *s);

/* Write the tensors whose names begin with 'prefix', and strip the prefix.  The file
 * appears at 'path' only when it is complete.  Fails with ENOENT if no tensor matches.
 */
int safetensors_write (struct slurmdl_checkpoint *c, const char *prefix, const char *path,
                       struct slurmdl_error *err);
