/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint that is being made: the layout by HDF5, the rest by us. */
#pragma once

#include "runtime/checkpoint/manifest.h"

/* libhdf5 makes a nameless file in memory with a dataset a tensor, whose data
 * it never sees; what is not data is then written by us, and kept, to be summed
 * up.  So no error of a disk ever comes to libhdf5, which takes one that comes
 * while it closes a file for the end of the process.
 */
struct draft {
    hid_t file;                  /* -1: closed */
    hid_t access, dataset, link; /* property lists; 0: closed */
    hid_t type;                  /* of the last dataset: 'type_of' */
    enum slurmdl_type type_of;
    hid_t group; /* 'folder', or 0 */
    char folder[DATASET_NAME_SIZE];
    int layout; /* libhdf5's file, or -1 */
    int fd;     /* ours, or -1 */
    struct manifest m;
    uint64_t length;
    bool reserved;
    struct part *rest;
    size_t nrest;
    unsigned char *image; /* the bytes of 'rest', one after the other */
};

/* 'tensors': about how many there will be. */
int draft_create (struct draft *d, const char *path, int64_t step, size_t tensors);

/* Add a dataset; the row's offset is set.  Returns it, NULL on failure; it is
 * good until the next call.
 */
struct manifest_row *draft_add (struct draft *d, const char *name, enum slurmdl_type type,
                                int ndims, const uint64_t *dims);

/* Close the HDF5 part.  From here on rows and shards may change in what is no
 * length: set 'm.shards', 'm.nshards' and each row's 'shards' before, and the
 * checksums until draft_seal().
 */
int draft_lay_out (struct draft *d);

/* Take room on the disk for all of the file, where the file system can:
 * 'reserved'.
 */
int draft_reserve (struct draft *d);

/* Write the manifest, what lies behind the last data, and the trailer. */
int draft_seal (struct draft *d);

/* Close; frees what it has. */
void draft_close (struct draft *d);

/* Remove from /dev/shm what processes of this user that were killed have left.
 */
void draft_clean_up (void);
