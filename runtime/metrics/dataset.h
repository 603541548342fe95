/* SPDX-License-Identifier: Apache-2.0 */
/* Open a metrics file that a writer may be at work on, and read datasets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/storage/h5.h"

enum dataset_name { NAMES, METRICS, RECORDS, BYTES, DATASETS };

/* One in the layout of empty_file.c is read in place, which is many times faster
 * for a short one; libhdf5 reads others, such as one that was repacked.
 */
struct source {
    int fd;     /* -1: libhdf5 reads it */
    hid_t file; /* -1: it is read in place */
    uid_t owner;
    struct {
        uint64_t length, address, bytes; /* offset of its length 0: none */
        uint32_t size;                   /* of a record */
    } places[DATASETS];
    int64_t attempt;
};

struct dataset {
    hid_t id;         /* -1: none, or it is read in place */
    uint64_t address; /* 0: none, or libhdf5 reads it */
    uint64_t n;
    size_t size; /* of a record */
};

/* Returns -1 if it cannot be read, with EPERM if only libhdf5 could, which may
 * not (h5_may_parse()); source_close() after either.
 */
int source_open (struct source *s, const char *path);
void source_close (struct source *s);

/* With the length that it has now.  Returns -1 if there is none, or one of
 * records of another size; dataset_close() after either.
 */
int dataset_open (const struct source *s, enum dataset_name name, size_t size, struct dataset *d);
void dataset_close (struct dataset *d);

int dataset_read (const struct source *s, const struct dataset *d, uint64_t first, uint64_t n,
                  void *buf);

/* The record at or behind 'first' from which on the file has data: it may claim
 * a hole that nobody could read to its end.
 */
uint64_t dataset_skip_hole (const struct source *s, const struct dataset *d, uint64_t first);
