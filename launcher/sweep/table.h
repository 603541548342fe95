/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people and as JSON. */
#pragma once

#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stddef.h>

struct table_column {
    const char *name; /* NULL: the end */
    bool right;
};

/* As text no cell is ever cut; with colours on a terminal, unless NO_COLOR says no. */
struct libscols_table *table_create (const char *name, const struct table_column *columns,
                                     bool json);

/* Add an empty line. */
struct libscols_line *table_line (struct libscols_table *tb);

/* Columns of the window, or of the variable COLUMNS; 0: no limit, as output
 * into a file or a pipe has none.
 */
int table_width (void);

/* Leave out columns until the table fits into the window: first those of
 * the first 'own' ones that 'least' names, in that order, then from the last
 * one on, but not the first 'stay'.  A column with SCOLS_FL_TRUNC, a sentence
 * say, is cut to the room that is left, if that is some.  Returns their names,
 * "attempts, time", NULL if all fit; the caller frees it.
 */
char *table_fit (struct libscols_table *tb, const char *const *least, size_t own, size_t stay);

/* Print it, as scols_print_table() does, but many lines sooner. */
void table_print (struct libscols_table *tb);

/* The colour of a cell; NULL: none. */
void table_colour (struct libscols_line *line, size_t column, const char *colour);

/* Fill in a cell. */
void table_set (struct libscols_line *line, size_t column, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
