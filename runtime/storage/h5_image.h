/* SPDX-License-Identifier: Apache-2.0 */
/* Write the metadata of an HDF5 file without libhdf5, which takes 10 us for each dataset. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/slurmdl.h"

/* A member of a compound: an integer, an array of 8 integers, or a name of SLURMDL_NAME_SIZE bytes,
 * padded with zeros.
 */
enum h5_member_kind { H5_U32, H5_U64, H5_DIMS, H5_NAME };
struct h5_member {
    const char *name; /* NULL: end of the list */
    size_t offset;
    enum h5_member_kind kind;
};

/* A dataset with its data at 'offset' in the file. */
struct h5_dataset {
    const char *name; /* with slashes between groups */
    enum slurmdl_type type;
    const struct h5_member *members; /* unless NULL, a compound of these */
    size_t size;                     /* of the compound */
    int ndims;                       /* 0: a scalar */
    const uint64_t *dims;
    uint64_t offset, bytes;
};

struct h5_attribute {
    const char *name;
    int64_t value;
};

/* The file begins with the superblock and ends with the rest. */
enum { H5_SUPERBLOCK = 96 };
struct h5_image {
    unsigned char superblock[H5_SUPERBLOCK];
    unsigned char *rest; /* the caller frees it */
    size_t n;
};

/* Write the descriptions of the datasets, which this sorts, and attributes of the root group. Names
 * must be unique, and none may be a group of another.  The rest begins at 'at', a multiple of 8,
 * and ends the file.  HDF5 1.8 can read it.  Returns 0, or -1 with ENOMEM.
 */
int h5_image_make (struct h5_image *image, struct h5_dataset *list, size_t n,
                   const struct h5_attribute *attributes, size_t nattributes, uint64_t at);
