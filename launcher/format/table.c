/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people and as JSON. */
#include "launcher/format/table.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

static bool has_colours (void)
{
    const char *no = getenv ("NO_COLOR");
    const char *term = getenv ("TERM");

    return isatty (1) && !(no && *no) && term && strcmp (term, "dumb");
}

struct libscols_table *
table_create (const char *name, const struct table_column *columns, bool json)
{
    struct libscols_table *tb = scols_new_table ();

    if (!tb)
        return NULL;
    scols_table_set_name (tb, name);
    scols_table_enable_json (tb, json);
    scols_table_set_termforce (tb, SCOLS_TERMFORCE_NEVER);
    scols_table_enable_colors (tb, !json && has_colours ());
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

void table_colour (struct libscols_line *line,
                   size_t column,
                   const char *colour)
{
    struct libscols_cell *cell = scols_line_get_cell (line, column);

    if (cell && colour)
        scols_cell_set_color (cell, colour);
}

/* ---- the window ---- */

int table_width (void)
{
    const char *given = getenv ("COLUMNS");
    struct winsize ws;

    if (given && atoi (given) > 0)
        return atoi (given);
    return isatty (1) && ioctl (1, TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
}

static int text_width (const char *text)
{
    wchar_t wide[1024];
    size_t n = text ? mbstowcs (wide, text, 1024) : 0;
    int width = n < 1024 ? wcswidth (wide, n) : -1;

    return width >= 0 ? width : (int)strlen (text);
}

/* A column of sentences takes this at least, and what is left of the window. */
enum { SENTENCE = 24 };

static bool is_sentence (struct libscols_column *cl)
{
    return scols_column_get_flags (cl) & SCOLS_FL_TRUNC;
}

/* What a column takes, with the blank before it; 0: it is left out. */
static int column_width (struct libscols_table *tb, struct libscols_column *cl)
{
    int width = text_width (scols_cell_get_data (scols_column_get_header (cl)));

    if (scols_column_get_flags (cl) & SCOLS_FL_HIDDEN)
        return 0;
    for (size_t i = 0; i < scols_table_get_nlines (tb); i++) {
        struct libscols_line *line = scols_table_get_line (tb, i);
        int w = text_width (
            scols_cell_get_data (scols_line_get_column_cell (line, cl)));
        width = w > width ? w : width;
    }
    return (is_sentence (cl) && width > SENTENCE ? SENTENCE : width) + 1;
}

/* Columns of the window that are left; less than 0: it is too narrow. */
static int room_left (struct libscols_table *tb)
{
    int room = table_width () + 1;

    if (room == 1)
        return INT_MAX;
    for (size_t i = 0; i < scols_table_get_ncols (tb); i++)
        room -= column_width (tb, scols_table_get_column (tb, i));
    return room;
}

static void cut (struct libscols_cell *cell, size_t room)
{
    const char *text = scols_cell_get_data (cell);
    char *shorter;

    if (!text || strlen (text) <= room)
        return;
    while (room > 0 && (text[room] & 0xc0) == 0x80)
        room--;
    if ((shorter = strndup (text, room)))
        scols_cell_refer_data (cell, shorter);
}

static void cut_sentences (struct libscols_table *tb)
{
    int room = room_left (tb);

    for (size_t i = 0; room < INT_MAX && i < scols_table_get_ncols (tb); i++) {
        struct libscols_column *cl = scols_table_get_column (tb, i);
        for (size_t k = 0; is_sentence (cl) && k < scols_table_get_nlines (tb);
             k++)
            cut (scols_line_get_column_cell (scols_table_get_line (tb, k), cl),
                 (size_t)(SENTENCE + (room > 0 ? room : 0)));
    }
}

static const char *name_of (struct libscols_column *cl)
{
    return scols_cell_get_data (scols_column_get_header (cl));
}

/* The next column that can go, NULL: none. */
static struct libscols_column *least_of (struct libscols_table *tb,
                                         const char *const *least,
                                         size_t own,
                                         size_t stay)
{
    struct libscols_column *cl = NULL;

    for (; *least; least++)
        for (size_t i = 0; i < own; i++) {
            cl = scols_table_get_column (tb, i);
            if (!strcmp (name_of (cl), *least)
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

char *table_fit (struct libscols_table *tb,
                 const char *const *least,
                 size_t own,
                 size_t stay)
{
    struct libscols_column *cl;
    char *names = NULL;
    size_t size;
    FILE *f = NULL;

    while (room_left (tb) < 0 && (cl = least_of (tb, least, own, stay))) {
        if (!f && !(f = open_memstream (&names, &size)))
            return NULL;
        fprintf (f, "%s%s", ftell (f) > 0 ? ", " : "", name_of (cl));
        scols_column_set_flags (cl,
                                scols_column_get_flags (cl) | SCOLS_FL_HIDDEN);
    }
    cut_sentences (tb);
    if (f)
        fclose (f);
    return names;
}
