/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, printed as text or as JSON. */
#include "launcher/sweep/table.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/environment.h"

static bool has_colours (void)
{
    const char *no = getenv ("NO_COLOR");
    const char *term = getenv ("TERM");

    return isatty (1) && !(no && *no) && term && strcmp (term, "dumb");
}

struct libscols_table *table_create (const char *name, const struct table_column *columns,
                                     bool json)
{
    struct libscols_table *tb = scols_new_table ();

    if (!tb)
        out_of_memory ();
    scols_table_set_name (tb, name);
    scols_table_enable_json (tb, json);
    scols_table_set_termforce (tb, SCOLS_TERMFORCE_NEVER);
    scols_table_enable_colors (tb, !json && has_colours ());
    for (; columns->name; columns++)
        scols_table_new_column (tb, columns->name, 0, columns->right ? SCOLS_FL_RIGHT : 0);
    return tb;
}

struct libscols_line *table_line (struct libscols_table *tb)
{
    struct libscols_line *line = scols_table_new_line (tb, NULL);

    if (!line)
        out_of_memory ();
    return line;
}

void table_set (struct libscols_line *line, size_t column, const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start (ap, fmt);
    text = xvasprintf (fmt, ap);
    va_end (ap);
    scols_line_refer_data (line, column, text);
}

void table_colour (struct libscols_line *line, size_t column, const char *colour)
{
    struct libscols_cell *cell = scols_line_get_cell (line, column);

    if (cell && colour)
        scols_cell_set_color (cell, colour);
}

/* ---- fitting the terminal ---- */

int table_width (void)
{
    long long given = environment_number ("COLUMNS", 0);
    struct winsize ws;

    if (given > 0 && given <= INT_MAX)
        return (int)given;
    return isatty (1) && ioctl (1, TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
}

static int text_width (const char *text)
{
    wchar_t wide[1024];
    size_t n = text ? mbstowcs (wide, text, 1024) : 0;
    int width = n < 1024 ? wcswidth (wide, n) : -1;

    return width >= 0 ? width : (int)strlen (text);
}

/* A column whose cells may be cut off keeps at least so many characters. */
enum { CUT_MIN = 20 };

static bool may_be_cut (struct libscols_column *cl)
{
    return scols_column_get_flags (cl) & SCOLS_FL_TRUNC;
}

/* The width of a column with the blank before it; 0: it is hidden. */
static int column_width (struct libscols_table *tb, struct libscols_column *cl)
{
    int width = text_width (scols_cell_get_data (scols_column_get_header (cl)));

    if (scols_column_get_flags (cl) & SCOLS_FL_HIDDEN)
        return 0;
    for (size_t i = 0; i < scols_table_get_nlines (tb); i++) {
        struct libscols_line *line = scols_table_get_line (tb, i);
        int w = text_width (scols_cell_get_data (scols_line_get_column_cell (line, cl)));
        width = w > width ? w : width;
    }
    return width + 1;
}

/* How many characters of the terminal's width are left; negative: the table does not fit. */
static int room_of (struct libscols_table *tb)
{
    int room = table_width () + 1;

    for (size_t i = 0; i < scols_table_get_ncols (tb); i++) {
        struct libscols_column *cl = scols_table_get_column (tb, i);
        int width = column_width (tb, cl);
        room -= may_be_cut (cl) && width > CUT_MIN ? CUT_MIN : width;
    }
    return room;
}

/* Cut off the text of a cell, but not within a UTF-8 character. */
static void cut_cell (struct libscols_cell *cell, int width)
{
    const char *data = scols_cell_get_data (cell);
    char *text = xstrdup (data);
    size_t n = text ? strlen (text) : 0;

    while (n > 0 && text_width (text) > width) {
        while (--n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            ;
        text[n] = '\0';
    }
    if (text)
        scols_cell_refer_data (cell, text);
}

static void cut_columns (struct libscols_table *tb)
{
    int width = CUT_MIN - 1 + room_of (tb);

    for (size_t i = 0; i < scols_table_get_ncols (tb); i++) {
        struct libscols_column *cl = scols_table_get_column (tb, i);
        if (!may_be_cut (cl) || column_width (tb, cl) <= width)
            continue;
        for (size_t k = 0; k < scols_table_get_nlines (tb); k++)
            cut_cell (scols_line_get_column_cell (scols_table_get_line (tb, k), cl), width);
    }
}

static const char *column_name (struct libscols_column *cl)
{
    return scols_cell_get_data (scols_column_get_header (cl));
}

/* The next column to hide; NULL: none is left. */
static struct libscols_column *least_of (struct libscols_table *tb, const char *const *least,
                                         size_t own, size_t stay)
{
    struct libscols_column *cl = NULL;

    for (; *least; least++)
        for (size_t i = 0; i < own; i++) {
            cl = scols_table_get_column (tb, i);
            if (!strcmp (column_name (cl), *least)
                && !(scols_column_get_flags (cl) & SCOLS_FL_HIDDEN))
                return cl;
        }
    for (size_t i = scols_table_get_ncols (tb); i > stay; i--) {
        cl = scols_table_get_column (tb, i - 1);
        if (!(scols_column_get_flags (cl) & SCOLS_FL_HIDDEN))
            return cl;
    }
    return NULL;
}

char *table_fit (struct libscols_table *tb, const char *const *least, size_t own, size_t stay)
{
    struct libscols_column *cl;
    char *names = NULL;
    size_t size;
    FILE *f = NULL;

    if (table_width () == 0)
        return NULL;
    while (room_of (tb) < 0 && (cl = least_of (tb, least, own, stay))) {
        if (!f)
            f = xopen_memstream (&names, &size);
        fprintf (f, "%s%s", ftell (f) > 0 ? ", " : "", column_name (cl));
        scols_column_set_flags (cl, scols_column_get_flags (cl) | SCOLS_FL_HIDDEN);
    }
    if (f)
        xclose_memstream (f);
    cut_columns (tb);
    return names;
}

/* ---- printing ---- */

/* libsmartcols determines the width of each character, and does so several times.  In a long table
 * that takes longer than everything else, so print plain text without it.
 */
enum { LINES_MANY = 256 };

struct table_layout {
    struct libscols_table *tb;
    size_t n;
    size_t *widths; /* of each column */
    char *row;
};

/* The text of a column's cell; with 'line' NULL, of its header. */
static const char *cell_text_of (const struct table_layout *l, struct libscols_line *line,
                                 size_t column)
{
    const char *text = line ? scols_cell_get_data (scols_line_get_cell (line, column))
                            : column_name (scols_table_get_column (l->tb, column));

    return text ? text : "";
}

/* Whether all characters are one column wide and libsmartcols would print them unchanged. */
static bool value_is_plain (const char *text, size_t *n)
{
    for (*n = 0; text[*n]; ++*n)
        if (text[*n] < ' ' || text[*n] > '~' || text[*n] == '\\')
            return false;
    return true;
}

static bool widen_column (const struct table_layout *l, struct libscols_line *line)
{
    size_t n;

    for (size_t i = 0; i < l->n; i++) {
        if (!value_is_plain (cell_text_of (l, line, i), &n))
            return false;
        l->widths[i] = n > l->widths[i] ? n : l->widths[i];
    }
    return true;
}

static bool make_layout (struct table_layout *l)
{
    struct libscols_iter *it = scols_new_iter (SCOLS_ITER_FORWARD);
    struct libscols_line *line;
    size_t size = 1;
    bool plain;

    l->widths = xcalloc (l->n, sizeof (*l->widths));
    plain = it && widen_column (l, NULL);
    while (plain && scols_table_next_line (l->tb, it, &line) == 0)
        plain = widen_column (l, line);
    scols_free_iter (it);
    for (size_t i = 0; plain && i < l->n; i++)
        size += l->widths[i] + 1;
    l->row = plain ? xmalloc (size) : NULL;
    return plain;
}

static void print_row (const struct table_layout *l, struct libscols_line *line)
{
    size_t at = 0;
    size_t end = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct libscols_column *cl = scols_table_get_column (l->tb, i);
        const char *text = cell_text_of (l, line, i);
        bool right = scols_column_get_flags (cl) & SCOLS_FL_RIGHT;
        size_t n = strlen (text);
        memset (l->row + at, ' ', l->widths[i] + 1);
        memcpy (l->row + at + (right ? l->widths[i] - n : 0), text, n);
        end = at + (right && n > 0 ? l->widths[i] : n);
        at += l->widths[i] + 1;
    }
    l->row[end] = '\n';
    fwrite (l->row, 1, end + 1, stdout);
}

static bool is_simple (struct libscols_table *tb)
{
    for (size_t i = 0; i < scols_table_get_ncols (tb); i++)
        if (scols_column_get_flags (scols_table_get_column (tb, i)) & SCOLS_FL_HIDDEN)
            return false;
    return scols_table_get_nlines (tb) >= LINES_MANY && !scols_table_is_json (tb)
           && !scols_table_colors_wanted (tb);
}

void table_print (struct libscols_table *tb)
{
    struct table_layout l = { .tb = tb, .n = scols_table_get_ncols (tb) };
    struct libscols_iter *it = scols_new_iter (SCOLS_ITER_FORWARD);
    struct libscols_line *line;

    if (it && is_simple (tb) && make_layout (&l)) {
        print_row (&l, NULL);
        while (scols_table_next_line (tb, it, &line) == 0)
            print_row (&l, line);
    } else
        scols_print_table (tb);
    scols_free_iter (it);
    free (l.widths);
    free (l.row);
}
