/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people and as JSON. */
#include "launcher/format/table.h"

#include <stdarg.h>
#include <stdio.h>

struct libscols_table *
table_create (const char *name, const struct table_column *columns, bool json)
{
    struct libscols_table *tb = scols_new_table ();

    if (!tb)
        return NULL;
    scols_table_set_name (tb, name);
    scols_table_enable_json (tb, json);
    for (; columns->name; columns++)
        scols_table_new_column (
            tb, columns->name, 0, columns->right ? SCOLS_FL_RIGHT : 0);
    return tb;
}

void table_set (struct libscols_line *line, size_t column, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start (ap, fmt);
    if (vasprintf (&text, fmt, ap) >= 0)
        scols_line_refer_data (line, column, text);
    va_end (ap);
}
