/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file: a plain HDF5 file whose datasets grow without libhdf5. */
#ifndef RUNTIME_JOURNAL_H
#define RUNTIME_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/slurmdl.h"

/* libhdf5 lays the file out once: contiguous datasets /names and /metrics,
 * allocated (sparsely) for all the rows they may get.  From then on rows are
 * written with pwrite(), and the dataset's length, one aligned 8-byte word of
 * its object header (HDF5 file format, version 1 dataspace message), with
 * one more pwrite().  At every instant the file is a valid HDF5 file that
 * holds all rows written so far.  doc/formats.md has the layout.
 */

enum { NAME_SIZE = 64, NAMES_MAX = 1024 };

/* Room at first; when it is used up, so many times as much. */
enum { NAMES_FIRST = 32, ROWS_FIRST = 1024, GROWTH = 8 };

struct row {
    int64_t step;
    double time;
    double value;
    uint32_t name; /* index in /names */
    uint32_t crc;  /* CRC-32C of the 28 bytes before it */
};

/* One growing dataset. */
struct column {
    off_t data;   /* where its first record lies */
    off_t length; /* where its length lies */
    uint64_t n;
    uint64_t room;
};

/* What is said of the writer in the file's attributes. */
struct journal_about {
    char experiment[128];
    long trial;
    long attempt;
};

struct journal {
    int fd;
    bool dirty; /* something is not on stable storage yet */
    char path[4096];
    struct journal_about about;
    struct column names;
    struct column rows;
};

uint32_t row_crc (const struct row *row);

/* Create DIR/metrics.h5, or metrics.1.h5, ... where that is taken. */
int journal_create (struct journal *j,
                    const char *dir,
                    const struct journal_about *about,
                    struct slurmdl_error *err);

/* The same, as DIR/STEM.h5, or STEM.1.h5, ... */
int journal_create_as (struct journal *j,
                       const char *dir,
                       const char *stem,
                       const struct journal_about *about,
                       struct slurmdl_error *err);

/* Append names, or rows whose names are in.  On failure the file is as it
 * was, and the same call may be tried again.
 */
int journal_add_names (struct journal *j,
                       const char (*names)[NAME_SIZE],
                       uint64_t n);
int journal_add_rows (struct journal *j, const struct row *rows, uint64_t n);

/* Have these rows, the first of which is that of 'slurmdl', in the place of
 * all that are there.  On failure the file is as it was.
 */
int journal_replace_rows (struct journal *j,
                          const struct row *rows,
                          uint64_t n);

int journal_sync (struct journal *j);

/* Close the file, rewritten in its exact size if that saves much. */
int journal_close (struct journal *j);

#endif
