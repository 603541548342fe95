/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint in the making: its layout, and its metadata. */
#pragma once

#include "runtime/checkpoint/manifest.h"

/* The file has HDF5's superblock, the tensors, the tables, and HDF5's metadata.
 * Everything but the data is kept in memory until its checksum is known, and
 * written last.
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

/* Add a tensor and set the row's offset.  Returns the row, valid until the next
 * call, or NULL on failure (EINVAL: the name is taken, or one name is a folder
 * of another).
 */
struct manifest_row *draft_add (struct draft *d, const char *name, enum slurmdl_type type,
                                int ndims, const uint64_t *dims);

/* No more tensors follow.  Afterwards rows and shards may change except in
 * their lengths: set 'm.shards', 'm.nshards' and each row's 'shards' before,
 * and the checksums before draft_seal().
 */
int draft_lay_out (struct draft *d);

/* Reserve disk space for the whole file, if the file system can; sets 'reserved'. */
int draft_reserve (struct draft *d);

/* Write the superblock, everything behind the last data, and the trailer. */
int draft_seal (struct draft *d);

/* Close the file and free the draft's memory. */
void draft_close (struct draft *d);
