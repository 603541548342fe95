/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file: a plain HDF5 file whose datasets grow without libhdf5. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/metrics/empty_file.h"

/* libhdf5 lays the file out once: contiguous datasets, which get room for all
 * the records that they may have (sparsely).  From then on records are written
 * with pwrite(), and the dataset's length, one aligned 8-byte word of its
 * object header (HDF5 file format, version 1 dataspace message), with one
 * more pwrite().  At every instant the file is a valid HDF5 file that holds
 * all records written so far.  doc/formats.md has the layout.
 */

enum { NAME_SIZE = 64, NAMES_MAX = 1024 };

struct row {
    int64_t step;
    double time;
    double value;
    uint32_t name; /* index in /names */
    uint32_t crc;  /* CRC-32C of the 28 bytes before it */
};

/* What is no scalar: its data lie in /bytes. */
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

/* What is said of the writer in the file's attributes. */
struct metrics_file_about {
    char experiment[128];
    long trial;
    long attempt;
};

enum { COLUMNS = 4 };

struct metrics_file {
    int fd;
    int folder;                     /* that it is in */
    char tmp[40];                   /* its name before it has one; "": it has */
    int number;                     /* in its name, 0: none */
    atomic_int *named;              /* where it is told, plus one; or NULL */
    uint64_t dirty;                 /* bytes that are not on stable storage yet */
    bool held;                      /* it gets none before metrics_file_move() */
    bool fresh;                     /* nor is its name */
    bool suspect;                   /* it could not be brought there */
    unsigned files;                 /* that had the name before */
    struct metrics_file_work *work; /* in the background, or NULL */
    struct metrics_file_kept *kept; /* since the last sync; NULL: nothing is */
    uint64_t refused;               /* rows at which a larger file failed */
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

/* Create, in DIR, which may be open as 'folder' (else -1), metrics.h5, or
 * metrics.1.h5, ... where that is taken.  It gets the name with what is written
 * first, when both are synced; before that it has the name 'tmp', or one of
 * link_tmp_name() if that is NULL.  This calls libhdf5; nothing that is done
 * with the file later does.
 */
int metrics_file_create (struct metrics_file *f, const char *dir, int folder, const char *tmp,
                         const struct metrics_file_about *about, struct slurmdl_error *err);

/* Before that, where 'held' is set and all is synced: be metrics.h5 of another
 * folder, which has none, and of this trial and attempt of the experiment.
 */
int metrics_file_move (struct metrics_file *f, const char *dir, int folder,
                       const struct metrics_file_about *about);

/* The same, as DIR/STEM.h5, or STEM.1.h5, ..., which is there at once; without
 * a folder that is open -1.
 */
int metrics_file_create_as (struct metrics_file *f, const char *dir, int folder, const char *stem,
                            const struct metrics_file_about *about, struct slurmdl_error *err);

/* Append names, or rows whose names are in.  On failure the file is as it
 * was, and the same call may be tried again.
 */
int metrics_file_add_names (struct metrics_file *f, const char (*names)[NAME_SIZE], uint64_t n);
int metrics_file_add_rows (struct metrics_file *f, const struct row *rows, uint64_t n);

/* Append records, whose offset, data_crc and crc are set, and their data. */
int metrics_file_add_records (struct metrics_file *f, struct record *records,
                              const void *const *data, uint64_t n);

/* Have these rows, the first of which is that of 'slurmdl', in the place of
 * all that are there.  On failure the file is as it was.
 */
int metrics_file_replace_rows (struct metrics_file *f, const struct row *rows, uint64_t n);

/* Have all on stable storage; waits for what is done in the background. */
int metrics_file_sync (struct metrics_file *f);

/* To be called after records were added: a thread of its own makes a larger
 * file before the room is used up, and, if 'sync', brings what was written to
 * stable storage.  When one of the two is done, '*bell' is changed and woken,
 * and this is to be called again.  Returns -1 with errno if a sync has failed:
 * metrics_file_sync() tries again.
 */
int metrics_file_tend (struct metrics_file *f, bool sync, atomic_uint *bell);

/* Whether metrics_file_tend() has something to do with what is in the
 * background. */
bool metrics_file_is_done (const struct metrics_file *f);

/* Close the file, rewritten in its exact size if that saves much. */
int metrics_file_close (struct metrics_file *f);
