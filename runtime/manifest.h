/* SPDX-License-Identifier: Apache-2.0 */
/* The table in a checkpoint that says what is in it, with checksums. */
#ifndef RUNTIME_MANIFEST_H
#define RUNTIME_MANIFEST_H

#include <stdint.h>

#include "runtime/h5.h"
#include "runtime/private.h"

/* One dataset of a checkpoint. */
struct manifest_row {
    char name[DATASET_NAME_SIZE];
    uint64_t dims[DIMS_MAX];
    uint64_t offset; /* of the data in the file */
    uint64_t bytes;
    uint32_t type; /* enum slurmdl_type */
    uint32_t ndims;
    uint32_t crc; /* CRC-32C of the data */
    uint32_t reserved;
};

struct manifest {
    int64_t step;
    hsize_t n;
    struct manifest_row *rows;
};

/* Write /manifest and the attributes of 'file'. */
int manifest_write (hid_t file, const struct manifest *m);

/* Read them and compare their checksum.  Free m->rows. */
int manifest_read (hid_t file, struct manifest *m);

/* Whether the datasets of the file have the names, types, shapes and places
 * that the manifest says.
 */
bool manifest_fits (hid_t file, const struct manifest *m);

hid_t element_h5 (enum slurmdl_type type);

#endif
