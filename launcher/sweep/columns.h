/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trials: its columns, for every format that it is written in.
 */
#pragma once

#include "launcher/sweep/metrics.h"
#include "launcher/sweep/sweep.h"

enum column_type { COLUMN_INT, COLUMN_REAL, COLUMN_TEXT };

/* A value; which member counts is the column's type. */
struct cell {
    int64_t integer;
    double real;      /* NaN: none */
    const char *text; /* NULL: none; the sweep's or the column's own; of a real
                         that is logged and is no number: "nan" */
};

struct result_column {
    char *name;
    const char *title; /* in the table of dl show; NULL: the name */
    enum column_type type;
    bool hparam;                        /* a hyperparameter: the name is its path */
    size_t index;                       /* of the metric or the hyperparameter */
    char *text;                         /* of a constant; the metric that is not optimised, ... */
    const struct logged_metric *logged; /* ... and what trials have */
    void (*get) (const struct sweep *s, const struct result_column *c, long trial,
                 struct cell *cell);
};

struct columns {
    struct result_column *list; /* the hyperparameters last */
    size_t n;
};

/* The columns for the trials of 's': no two names of hyperparameters, nor of
 * the others, are equal, and none has a '/'.
 */
void columns_create (struct columns *c, const struct sweep *s);

/* Append a column "metric.NAME" for each metric of 'l', which must outlive the columns. */
void columns_add_logged (struct columns *c, const struct logged_metrics *l);
void columns_destroy (struct columns *c);

/* What the table of dl show calls the column 'name'. */
const char *column_title (const char *name);

/* A column that all trials have, by its name, which must be in the table of columns.c. */
struct result_column column_named (const char *name);

struct cell column_cell (const struct result_column *c, const struct sweep *s, long trial);
