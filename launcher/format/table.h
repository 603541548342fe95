/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people and as JSON. */
#ifndef LAUNCHER_FORMAT_TABLE_H
#define LAUNCHER_FORMAT_TABLE_H

#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stddef.h>

struct table_column {
    const char *name; /* NULL: the end */
    bool right;
};

/* Returns NULL if out of memory. */
struct libscols_table *
table_create (const char *name, const struct table_column *columns, bool json);

/* Fill in a cell. */
void table_set (struct libscols_line *line, size_t column, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

#endif
