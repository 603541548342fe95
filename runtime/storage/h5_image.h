/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of an HDF5 file, without libhdf5, which takes 10 us a dataset. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/slurmdl.h"

/* A member of a compound: an integer, 8 of them, or a name of
 * SLURMDL_NAME_SIZE bytes, which ends with zeros.
 */
enum h5_member_kind { H5_U32, H5_U64, H5_DIMS, H5_NAME };
struct h5_member {
    const char *name; /* NULL: the last */
    size_t offset;
    enum h5_member_kind kind;
};

/* A dataset whose data are, or will be, at 'offset' in the file. */
struct h5_dataset {
    const char *name; /* with slashes between groups */
    enum slurmdl_type type;
    const struct h5_member *members; /* if not NULL it is a compound of them */
    size_t size;                     /* of that */
    int ndims;                       /* 0: a scalar */
    const uint64_t *dims;
    uint64_t offset, bytes;
};

struct h5_attribute {
    const char *name;
    int64_t value;
};

/* The file begins with the superblock, and ends with the rest. */
enum { H5_SUPERBLOCK = 96 };
struct h5_image {
    unsigned char superblock[H5_SUPERBLOCK];
    unsigned char *rest; /* the caller frees it */
    size_t n;
};

/* Write what describes the datasets, which it sorts, and attributes of the root
 * group.  No name is there twice, or is a folder of another.  'at', a multiple
 * of 8, is where the rest begins, which ends the file.  HDF5 1.8 reads it.
 * Returns 0, or -1 with ENOMEM.
 */
int h5_image_make (struct h5_image *image, struct h5_dataset *list, size_t n,
                   const struct h5_attribute *attributes, size_t nattributes, uint64_t at);
