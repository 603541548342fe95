/* SPDX-License-Identifier: Apache-2.0 */
/* A metrics file that is read, while a writer may be at work on it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/metrics/dataset.h"
#include "runtime/metrics/file.h"
#include "runtime/slurmdl.h"

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

/* EBADMSG if it is no metrics file.  table_close() after either. */
int table_open (struct table *t, const char *path, struct slurmdl_error *err);
void table_close (struct table *t);

/* Whether its own run was restored below this row later. */
bool table_superseded (const struct table *t, uint64_t number, const struct row *row);

/* Rows in blocks, without those whose checksum or name is wrong; 'first' is the
 * number of the block's first row.  'f' returning nonzero ends it.  If rows
 * were lost it returns -1 with EBADMSG at the end, and 'err' says which.
 */
typedef int (*block_f) (const struct table *t, const struct row *rows, size_t n, uint64_t first,
                        void *arg);
int table_read_rows (const struct table *t, block_f f, void *arg, struct slurmdl_error *err);

int table_read_records (const struct table *t, slurmdl_record_f f, void *arg,
                        struct slurmdl_error *err);

/* Call 'f' for the path of each metrics file of a folder, in the order in
 * which they were made.  No folder is no error.
 */
int each_metrics_file (const char *dir,
                       int (*f) (const char *path, void *arg, struct slurmdl_error *err), void *arg,
                       struct slurmdl_error *err);
