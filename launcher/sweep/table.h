/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, printed as text or as JSON. */
#pragma once

#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stddef.h>

struct table_column {
    const char *name; /* NULL ends a list */
    bool right;
};

/* Create a table.  As text it has colours on a terminal unless NO_COLOR is set, and no cell is ever
 * cut off, except by table_fit().
 */
struct libscols_table *table_create (const char *name, const struct table_column *columns,
                                     bool json);

/* Add an empty line, which belongs to the table. */
struct libscols_line *table_line (struct libscols_table *tb);

/* The width of the terminal in characters, which the variable COLUMNS overrides; 0: no limit,
 * because the output goes to a file or a pipe.
 */
int table_width (void);

/* Hide columns until the table fits the terminal.  Among the first 'own' columns, hide those that
 * the NULL-ended list 'least' names first, in its order.  Then hide columns from the last one
 * backwards, but never one of the first 'stay'.  The cells of a column with SCOLS_FL_TRUNC, such as
 * a sentence, are cut off to fit the remaining room.
 *
 * Returns the names of the hidden columns, such as "attempts, time", which the caller frees; NULL
 * if all columns fit.
 */
char *table_fit (struct libscols_table *tb, const char *const *least, size_t own, size_t stay);

/* Print a table like scols_print_table(), but faster if it is long. */
void table_print (struct libscols_table *tb);

/* Set the colour of a cell; NULL: leave it as it is. */
void table_colour (struct libscols_line *line, size_t column, const char *colour);

/* Set the text of a cell. */
void table_set (struct libscols_line *line, size_t column, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
