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
    uint64_t offset; /* of the rows in the file */
};

/* A trailer behind the HDF5 file, which HDF5 does not look at.  With it a
 * file is verified bit by bit before libhdf5 or anybody else believes a word
 * of it: libhdf5 is not made to read damaged files.
 */
struct trailer {
    char magic[8]; /* "SLURMDL1" */
    int64_t step;
    uint64_t length;   /* of the HDF5 file; the trailer lies there */
    uint64_t manifest; /* offset of the manifest's rows */
    uint64_t rows;     /* their number */
    uint32_t rest_crc; /* CRC-32C of the HDF5 file without the rows' data */
    uint32_t crc;      /* CRC-32C of the trailer before it */
};

/* Write /manifest and the attributes of 'file'; sets m->offset. */
int manifest_write (hid_t file, struct manifest *m);

/* Append the trailer to the file, whose data are written. */
int manifest_seal (int fd, const struct manifest *m);

/* Read the manifest by the trailer; all but the data is then verified.
 * Free m->rows.
 */
int manifest_read (int fd, struct manifest *m);

hid_t element_h5 (enum slurmdl_type type);

#endif
