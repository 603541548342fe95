/* SPDX-License-Identifier: Apache-2.0 */
/* Draw full-screen pictures in a terminal and redraw them in place. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Styles have no effect on a terminal without colours. */
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
    int width, height; /* of the window; lines beyond 'height' are dropped */
    bool utf8, colours;
    int row, column; /* where the next text goes */
    FILE *f;
    char *text;
    size_t size;
};

/* Return whether standard output is a terminal that can be redrawn. */
bool screen_is_there (void);

/* Switch to the terminal's alternate screen and hide the cursor.  With 'keys',
 * also read keys without waiting for Enter.  From now on SIGINT, SIGTERM, SIGHUP
 * and SIGQUIT end screen_wait(), and SIGTSTP restores the terminal while the
 * process is stopped.
 */
void screen_take (bool keys);

/* Restore the terminal.  Does nothing unless screen_take() was called. */
void screen_give_back (void);

enum screen_event { SCREEN_TIME, SCREEN_RESIZED, SCREEN_QUIT };

/* Wait until 'seconds' pass, the window is resized, a signal asks to quit, or,
 * with 'keys', the user presses q.
 */
enum screen_event screen_wait (double seconds);

/* Begin a picture of the given size, or of the window's size if 'width' is 0. */
void screen_begin (struct screen *s, int width, int height);

/* Append to the current line.  Control characters and invalid UTF-8 become \xNN.
 * Text that does not fit is cut.
 */
void screen_put (struct screen *s, enum screen_style style, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Like screen_put(), but screen_right() aligns the text to end at 'column', and
 * screen_cell() cuts or pads it to 'width' columns.
 */
void screen_right (struct screen *s, enum screen_style style, int column, const char *text);
void screen_cell (struct screen *s, enum screen_style style, int width, const char *text);

/* Append a bar of 'width' columns; 'part' (0..1) of it is filled. */
void screen_bar (struct screen *s, enum screen_style style, int width, double part);

/* End the line. */
void screen_line (struct screen *s);

/* Return the number of free lines. */
int screen_room (const struct screen *s);

/* Show the picture in the window, or write it to 'to' as lines unless that is
 * NULL.  Frees the picture.
 */
void screen_end (struct screen *s, FILE *to);

/* Return the number of columns that screen_put() needs for a text. */
int screen_columns (const struct screen *s, const char *text);
