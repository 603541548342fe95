/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the table of trials, the same for all output formats. */
#pragma once

#include "launcher/sweep/metrics.h"
#include "launcher/sweep/sweep.h"

enum column_type { COLUMN_INT, COLUMN_REAL, COLUMN_TEXT };

/* A value.  The column's type decides which member is valid. */
struct cell {
    int64_t integer;
    double real;      /* NaN: none */
    const char *text; /* NULL: none; belongs to the sweep or the column.  In a column of type
                         COLUMN_REAL it is "nan" if the trial logged a NaN */
};

struct result_column {
    char *name;
    const char *title; /* heading in dl show's table; NULL: the name */
    enum column_type type;
    bool hparam;                        /* it is a hyperparameter, and the name is its path */
    size_t index;                       /* of the metric or the hyperparameter */
    char *text;                         /* value of a constant, name of a logged metric; or NULL */
    const struct logged_metric *logged; /* for a metric that is not optimised */
    void (*get) (const struct sweep *s, const struct result_column *c, long trial,
                 struct cell *cell);
};

struct columns {
    struct result_column *list; /* the hyperparameters last */
    size_t n;
};

/* Create the columns for the trials of 's'.  Names are unique among the hyperparameters and among
 * the other columns, and contain no '/'.
 */
void columns_create (struct columns *c, const struct sweep *s);

/* Append a column "metric.NAME" for each metric of 'l', which must outlive the columns. */
void columns_add_logged (struct columns *c, const struct logged_metrics *l);
void columns_destroy (struct columns *c);

/* The heading of the column 'name' in dl show's table. */
const char *column_title (const char *name);

/* A column that every experiment has.  'name' must be in the table of columns.c. */
struct result_column column_named (const char *name);

struct cell column_cell (const struct result_column *c, const struct sweep *s, long trial);
