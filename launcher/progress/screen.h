/* SPDX-License-Identifier: Apache-2.0 */
/* A picture that fills the window of a terminal and is redrawn in place. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* How a text is shown where the terminal has colours. */
enum screen_style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_GOOD,
    STYLE_BAD,
    STYLE_WARNING,
    STYLE_BUSY,
    STYLES
};

struct screen {
    int width, height; /* of the window; 'height' lines at most are kept */
    bool utf8, colours;
    int row, column; /* of what comes next */
    FILE *f;
    char *text;
    size_t size;
};

/* Whether standard output is a terminal that can be redrawn. */
bool screen_is_there (void);

/* Take the terminal: its other screen, no cursor, and with 'keys' keys without
 * Enter.  From now on SIGINT, SIGTERM and SIGHUP end screen_wait(), and SIGTSTP
 * gives the terminal back while the process is stopped.
 */
void screen_take (bool keys);

/* Give it back as it was; harmless if it was not taken. */
void screen_give_back (void);

enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_QUIT };

/* Wait for so many seconds, for q (with 'keys'), ^C, or another size of the
 * window.
 */
enum screen_event screen_wait (double seconds);

/* Begin a picture: of the window, or of a given size (for the tests, and where
 * 'width' is not 0).
 */
void screen_begin (struct screen *s, int width, int height);

/* Add to the line.  Control characters and what is no UTF-8 become \xNN; what
 * the line has no room for is left out.
 */
void screen_put (struct screen *s, enum screen_style style, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* The same for a text that ends in column 'column', or takes 'width' columns
 * from here on.
 */
void screen_right (struct screen *s, enum screen_style style, int column, const char *text);
void screen_cell (struct screen *s, enum screen_style style, int width, const char *text);

/* A bar of 'width' columns, of which the share 'part' is full. */
void screen_bar (struct screen *s, enum screen_style style, int width, double part);

/* End the line. */
void screen_line (struct screen *s);

/* Lines that are left. */
int screen_room (const struct screen *s);

/* Show it in the window, or with 'to' write it there as lines; and free it. */
void screen_end (struct screen *s, FILE *to);

/* Columns that a text takes, as screen_put() shows it. */
int screen_columns (const struct screen *s, const char *text);
