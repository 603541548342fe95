/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a metrics file, as libhdf5 makes them. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One growing dataset. */
struct column {
    off_t data;    /* where its first record lies */
    off_t length;  /* where its length lies */
    off_t storage; /* where the address and size of its data lie */
    uint64_t n;
    uint64_t room;
    size_t size; /* of a record */
};

/* An HDF5 file without data: superblock, attributes and object headers.  It
 * is made once, in memory, because an error of the disk inside of libhdf5
 * would leave it with a file that it cannot close, and because a thread that
 * calls libhdf5 would do so beside the program's.
 */
struct blank {
    char *image;
    size_t size;
    uint64_t trial, attempt; /* where their numbers are */
};

struct metrics_file_about;

/* Sets all of the columns (file.h) but their place.  Returns -1 on failure;
 * the image is the caller's to free after either.
 */
int blank_make (struct blank *b, const struct metrics_file_about *about, struct column *columns);

/* Set, in the image, whose file it is: trial and attempt. */
int blank_number (struct blank *b, const struct metrics_file_about *about);

/* Set, in the image, the data's place and room of a column, with length 1;
 * and the end of the file.
 */
void blank_place (struct blank *b, const struct column *c);
void blank_end (struct blank *b, uint64_t end);
