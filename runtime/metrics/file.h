/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file: a plain HDF5 file whose datasets grow without libhdf5. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"

/* libhdf5 lays out the file once, with contiguous datasets that have room (a hole in the file) for
 * the records to come.  After that, pwrite() appends records, and another pwrite() updates the
 * length of the dataset: one aligned 8-byte word of its object header (HDF5 file format, version 1
 * dataspace message).  At every instant the file is a valid HDF5 file with all records written so
 * far.  doc/formats.md describes the layout.
 */

enum { NAME_SIZE = 64, NAMES_MAX = 1024 };

struct row {
    int64_t step;
    double time;
    double value;
    uint32_t name; /* index in /names */
    uint32_t crc;  /* CRC-32C of the 28 bytes before it */
};

/* Anything but a scalar; its data are in /bytes. */
struct record {
    int64_t step;
    double time;
    uint64_t offset;
    uint64_t bytes;
    uint32_t name;
    uint32_t kind;     /* enum slurmdl_kind */
    uint32_t data_crc; /* CRC-32C of the data */
    uint32_t crc;      /* CRC-32C of the 44 bytes before it */
};

/* The writer, as recorded in the attributes of the file. */
struct metrics_file_about {
    char experiment[128];
    long trial;
    long attempt;
};

enum { COLUMNS = 4 };

/* One growing dataset.  The first three members are offsets in the file. */
struct column {
    off_t data;    /* of its first record */
    off_t length;  /* of the word with its length */
    off_t storage; /* of two words: the address and size of its data */
    uint64_t n;
    uint64_t room;
    size_t size; /* of a record */
};

/* An HDF5 file without data, in memory: superblock, attributes and object headers.  libhdf5
 * makes it once: if libhdf5 wrote to the disk itself, an error would leave it with a file that it
 * cannot close, and a thread of ours would call it at the same time as the program.
 */
struct blank {
    char *image;
    size_t size;
    uint64_t trial, attempt; /* offsets of these attributes */
};

struct metrics_file {
    int fd;
    int folder;                     /* that contains the file */
    char tmp[40];                   /* temporary name; "" once the file has its final name */
    int number;                     /* in the final name, 0: none */
    atomic_int *named;              /* set to the number plus one, unless NULL */
    uint64_t dirty;                 /* bytes that are not on stable storage yet */
    bool held;                      /* it gets no final name before metrics_file_move() */
    bool fresh;                     /* its name is not on stable storage yet */
    bool suspect;                   /* a sync has failed */
    unsigned files;                 /* earlier files under this name */
    struct metrics_file_work *work; /* of the background thread, or NULL */
    struct metrics_file_kept *kept; /* data since the last sync, or NULL */
    uint64_t refused;               /* number of rows at which growing failed */
    char path[4096];
    struct blank blank;
    union {
        struct {
            struct column names, rows, records, bytes;
        };
        struct column columns[COLUMNS];
    };
};

void rows_seal (struct row *rows, size_t n);

/* Number of rows before the first one whose checksum is wrong. */
size_t rows_check (const struct row *rows, size_t n);

uint32_t record_crc (const struct record *r);

/* Create metrics.h5 in 'dir', or metrics.1.h5, ... if that name is taken; 'folder' is the open
 * directory, or -1.  The file gets this name with the first data, once both are synced; until then
 * it is called 'tmp', or as link_tmp_name() chooses if 'tmp' is NULL.  Only this function calls
 * libhdf5.
 */
int metrics_file_create (struct metrics_file *f, const char *dir, int folder, const char *tmp,
                         const struct metrics_file_about *about, struct slurmdl_error *err);

/* Turn a file without a final name, with 'held' set and everything synced, into the metrics.h5 of
 * another directory, which must have none, and of this trial and attempt.
 */
int metrics_file_move (struct metrics_file *f, const char *dir, int folder,
                       const struct metrics_file_about *about);

/* As metrics_file_create(), but create DIR/STEM.h5, or STEM.1.h5, ..., under its final name. */
int metrics_file_create_as (struct metrics_file *f, const char *dir, int folder, const char *stem,
                            const struct metrics_file_about *about, struct slurmdl_error *err);

/* Append names, or rows whose names were added.  On failure the file is unchanged, and the same
 * call may be repeated.
 */
int metrics_file_add_names (struct metrics_file *f, const char (*names)[NAME_SIZE], uint64_t n);
int metrics_file_add_rows (struct metrics_file *f, const struct row *rows, uint64_t n);

/* Append records and their data; this sets their offset, data_crc and crc. */
int metrics_file_add_records (struct metrics_file *f, struct record *records,
                              const void *const *data, uint64_t n);

/* Replace all rows by these; the first one must be that of 'slurmdl'.  On failure the file is
 * unchanged.
 */
int metrics_file_replace_rows (struct metrics_file *f, const struct row *rows, uint64_t n);

/* Bring everything to stable storage; waits for the background thread. */
int metrics_file_sync (struct metrics_file *f);

/* Call this after adding records.  A background thread makes a larger file before the room is used
 * up and, if 'sync', brings the data to stable storage.  When either is done, the thread
 * increments '*wakeups' and wakes its waiters; then call this again.  Returns -1 with errno if a
 * sync has failed; metrics_file_sync() repeats it.
 */
int metrics_file_tend (struct metrics_file *f, bool sync, atomic_uint *wakeups);

/* Whether the background thread is done, so that metrics_file_tend() should be called. */
bool metrics_file_is_done (const struct metrics_file *f);

/* Close the file; rewrite it in its exact size first if that saves much space. */
int metrics_file_close (struct metrics_file *f);
