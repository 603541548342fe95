/* SPDX-License-Identifier: Apache-2.0 */
/* Find datasets in the first bytes of a metrics file, without libhdf5. */
#pragma once

#include <stdint.h>

/* The bytes may be anybody's. */
struct header_image {
    const char *bytes;
    uint64_t size;
};

/* Offsets in the file; the second is in the image. */
struct header_dataset {
    uint64_t length;  /* of the word that has its length */
    uint64_t storage; /* of two: address and size of its data */
    uint32_t size;    /* of a record */
};

/* A contiguous dataset of one dimension in the root group.  HEADER_UNKNOWN: the
 * file is laid out in another way than empty_file.c has it; libhdf5 may be able
 * to read it.
 */
enum header_result { HEADER_UNKNOWN = -1, HEADER_FOUND, HEADER_HAS_NONE };
enum header_result header_find (const struct header_image *image, const char *name,
                                struct header_dataset *d);

/* The offset of the value, an integer of 8 bytes, of an attribute of the root
 * group; 0: not found, or laid out in another way.
 */
uint64_t header_number (const struct header_image *image, const char *name);

/* The attribute 'attempt'.  Returns 0; -1: not found, or laid out in another way. */
int header_attempt (const struct header_image *image, int64_t *attempt);
