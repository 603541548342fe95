/* SPDX-License-Identifier: Apache-2.0 */
/* Read a metrics file, even while a writer extends it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/metrics/file.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/h5.h"

enum dataset_name { NAMES, METRICS, RECORDS, BYTES, DATASETS };

/* A file with the layout of file.c is read in place, which is many times faster if it is short.
 * libhdf5 reads others, such as a repacked file.
 */
struct source {
    int fd;     /* -1: libhdf5 reads it */
    hid_t file; /* -1: it is read in place */
    uid_t owner;
    struct {
        uint64_t length, address, bytes; /* 'length': offset of its length; 0: none */
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

/* Returns -1 if the file cannot be read; EPERM if only libhdf5 could read it and must not
 * (h5_may_parse()).  Call source_close() in any case.
 */
int source_open (struct source *s, const char *path);
void source_close (struct source *s);

/* The rows before 'row' with a higher step than 'step' are superseded. */
struct resume {
    int64_t step;
    uint64_t row;
};

struct table {
    const char *path;
    struct source source;
    struct dataset rows, records, bytes; /* length 0: the file has none */
    char (*names)[NAME_SIZE];
    uint64_t nnames;
    long attempt;
    struct resume *resumes;
    size_t nresumes;
};

/* Fails with EBADMSG if it is not a metrics file.  Call table_close() in any case. */
int table_open (struct table *t, const char *path, struct slurmdl_error *err);
void table_close (struct table *t);

/* Whether its run was later restored to a step below that of this row. */
bool table_superseded (const struct table *t, uint64_t number, const struct row *row);

/* Call 'f' for blocks of rows, without those that have a wrong checksum or name; 'first' is the
 * number of the first row of a block.  If 'f' returns nonzero, stop and return that.  If rows were
 * skipped, return -1 with EBADMSG at the end; 'err' says which.
 */
typedef int (*block_f) (const struct table *t, const struct row *rows, size_t n, uint64_t first,
                        void *arg);
int table_read_rows (const struct table *t, block_f f, void *arg, struct slurmdl_error *err);

int table_read_records (const struct table *t, slurmdl_record_f f, void *arg,
                        struct slurmdl_error *err);

/* Call 'f' for the path of each metrics file in a folder, in the order of their creation.  A
 * missing folder is not an error.
 */
int each_metrics_file (const char *dir,
                       int (*f) (const char *path, void *arg, struct slurmdl_error *err), void *arg,
                       struct slurmdl_error *err);
