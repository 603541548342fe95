/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint that is being made: its layout, and what is no data. */
#pragma once

#include "runtime/checkpoint/manifest.h"

/* The superblock of HDF5, the tensors, one behind the other, the tables, and
 * what HDF5 has to know of all these.  What is not data is kept until it is
 * summed up, and written last.
 */
struct draft {
    int fd; /* -1: closed */
    struct manifest m;
    struct draft_folder *folders; /* those that names have */
    size_t nfolders;
    struct name_index folder_names;
    uint64_t end;    /* of the data */
    uint64_t length; /* of the HDF5 file */
    bool reserved;
    struct part *rest;
    size_t nrest;
    unsigned char *image; /* the bytes of 'rest', one after the other */
};

int draft_create (struct draft *d, const char *path, int64_t step);

/* Add a tensor; the row's offset is set.  Returns it, NULL on failure (EINVAL:
 * its name is another's, or a folder in one, or the other way round); it is good
 * until the next call.
 */
struct manifest_row *draft_add (struct draft *d, const char *name, enum slurmdl_type type,
                                int ndims, const uint64_t *dims);

/* No more tensors.  From here on rows and shards may change in what is no
 * length: set 'm.shards', 'm.nshards' and each row's 'shards' before, and the
 * checksums until draft_seal().
 */
int draft_lay_out (struct draft *d);

/* Take room on the disk for all of the file, where the file system can:
 * 'reserved'.
 */
int draft_reserve (struct draft *d);

/* Write the superblock, what lies behind the last data, and the trailer. */
int draft_seal (struct draft *d);

/* Close; frees what it has. */
void draft_close (struct draft *d);
