/* SPDX-License-Identifier: Apache-2.0 */
/* Find datasets in the first bytes of a metrics file, without libhdf5. */
#pragma once

#include <stdint.h>

/* Anybody may have written the bytes. */
struct header_image {
    const char *bytes;
    uint64_t size;
};

/* Offsets in the file. */
struct header_dataset {
    uint64_t length;  /* of the word with its length */
    uint64_t storage; /* of two words: the address and size of its data */
    uint32_t size;    /* of a record */
};

/* Find a contiguous dataset of one dimension in the root group.  HEADER_UNKNOWN: the layout of the
 * file differs from that of file.c; libhdf5 may be able to read it.
 */
enum header_result { HEADER_UNKNOWN = -1, HEADER_FOUND, HEADER_HAS_NONE };
enum header_result header_find (const struct header_image *image, const char *name,
                                struct header_dataset *d);

/* The offset of the value of an attribute of the root group, an 8-byte integer; 0 if there is none,
 * or if its layout differs.
 */
uint64_t header_number (const struct header_image *image, const char *name);

/* Read the attribute 'attempt'.  Returns -1 if there is none, or if its layout differs. */
int header_attempt (const struct header_image *image, int64_t *attempt);
