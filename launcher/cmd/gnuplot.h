/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot as a program: what it can draw on, and safe text for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "runtime/base/error.h"

/* What gnuplot draws on: a terminal, or a file. */
enum plot_medium {
    PLOT_DUMB,
    PLOT_BLOCK,
    PLOT_SIXEL,
    PLOT_KITTY,
    PLOT_SVG,
    PLOT_PNG,
    PLOT_PDF,
    PLOT_MEDIA
};
extern const char *const plot_media[PLOT_MEDIA]; /* "dumb", ... */

/* It is text of columns and lines, not pixels. */
bool plot_is_text (enum plot_medium m);

/* Which terminals gnuplot has, " dumb svg ... "; 127 as its exit status if it
 * is not there.
 */
int gnuplot_terminals (char *buf, size_t size);

/* Whether it can draw on it. */
bool gnuplot_has (const char *terminals, enum plot_medium m);

/* The commands that choose the terminal, for so many columns and lines. */
void gnuplot_begin (FILE *f, const char *terminals, enum plot_medium m, int columns, int lines,
                    bool colours);

/* A text of others as a string of gnuplot's: in it nothing is a command, a
 * substitution, a format or markup.  'tic': as the label of a tic.
 */
void gnuplot_text (FILE *f, const char *text);
void gnuplot_tic (FILE *f, const char *text);

/* Run a script; what it draws is left in '*out', which the caller frees.
 * Returns -1 with 'err'.
 */
int gnuplot_run (const char *script, size_t size, char **out, size_t *nout,
                 struct slurmdl_error *err);
