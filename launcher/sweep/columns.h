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

/* The order of the columns in dl show's table, from left to right. */
enum column_place {
    PLACE_NONE, /* only --columns shows it */
    PLACE_TRIAL,
    PLACE_STATE,
    PLACE_LENGTH,
    PLACE_BEST,
    PLACE_LAST,
    PLACE_TIME,
    PLACE_ATTEMPTS,
    PLACE_LOGGED,
    PLACE_POINT,
    PLACE_MEAN,
    PLACE_DEVIATION,
    PLACE_N,
    PLACE_METRIC,
    PLACE_HPARAM,
    PLACE_WHY,
};

/* The highest rank of result_column.drop. */
enum { COLUMN_DROPS = 6 };

struct result_column {
    char *name;
    const char *title; /* heading in dl show's table; NULL: the name */
    enum column_type type;
    bool hparam;                        /* it is a hyperparameter, and the name is its path */
    bool metric;                        /* it is one of several metrics that are optimised */
    size_t index;                       /* of the metric or the hyperparameter */
    char *text;                         /* value of a constant hyperparameter, or NULL */
    const struct logged_metric *logged; /* for a metric that is not optimised */
    enum column_place place;
    int drop; /* if dl show's table is too wide, it drops 1 first; 0: no rank */
    void (*get) (const struct sweep *s, const struct result_column *c, long trial,
                 struct cell *cell);
    void (*print) (char *buf, size_t size, double value); /* for tables; NULL: as a number */
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

/* A column that every experiment has.  'name' must be in the table of columns.c. */
struct result_column column_named (const char *name);

struct cell column_cell (const struct result_column *c, const struct sweep *s, long trial);

/* A cell as dl show prints it, which the caller frees; NULL: the trial has no value. */
char *column_text (const struct result_column *c, const struct sweep *s, long trial);
