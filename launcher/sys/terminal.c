/* SPDX-License-Identifier: Apache-2.0 */
/* Keep control characters from files and programs away from the terminal. */
#include "launcher/sys/terminal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/utf8.h"

enum { HELD_MAX = 24, OUT_MAX = 4096, ESCAPE = 0x1b };

struct terminal {
    int fd;
    bool colours;
    bool coloured;                    /* the colour must be reset at the end of the line */
    bool returned;                    /* the last byte was a carriage return */
    unsigned char held[HELD_MAX + 1]; /* an incomplete character or sequence */
    size_t nheld;
    char out[OUT_MAX];
    size_t n;
};

static struct terminal output = { .fd = 1 };
static struct terminal errors = { .fd = 2 };
static bool guarded;

static int put_all (struct terminal *t)
{
    size_t done = 0;

    while (done < t->n) {
        ssize_t n = write (t->fd, t->out + done, t->n - done);
        if (n < 0 && errno != EINTR)
            return -1;
        done += n > 0 ? (size_t)n : 0;
    }
    t->n = 0;
    return 0;
}

static void put_bytes_out (struct terminal *t, const void *bytes, size_t n)
{
    memcpy (t->out + t->n, bytes, n);
    t->n += n;
}

static void put_visible (struct terminal *t, unsigned char c)
{
    char text[8];

    if (c >= ' ' && c < 0x7f)
        put_bytes_out (t, &c, 1);
    else
        put_bytes_out (t, text, (size_t)snprintf (text, sizeof (text), "\\x%02x", c));
}

static void put_line_end (struct terminal *t)
{
    if (t->coloured)
        put_bytes_out (t, "\033[0m", 4);
    t->coloured = false;
    put_bytes_out (t, "\n", 1);
}

static void show_held (struct terminal *t)
{
    for (size_t i = 0; i < t->nheld; i++)
        put_visible (t, t->held[i]);
    t->nheld = 0;
}

/* Whether this may become a colour: "ESC [ 1;31" before its "m". */
static bool is_colour (struct terminal *t)
{
    unsigned char c = t->held[t->nheld - 1];

    if (t->nheld == 2)
        return c == '[';
    return t->nheld < HELD_MAX && c && strchr ("0123456789;:", c);
}

static void hold_colour (struct terminal *t, unsigned char c)
{
    t->held[t->nheld++] = c;
    if (t->nheld > 2 && c == 'm') {
        put_bytes_out (t, t->held, t->nheld);
        t->coloured = true;
        t->nheld = 0;
    } else if (!is_colour (t))
        show_held (t);
}

static size_t length_of (unsigned char first)
{
    return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Whether this is a C1 control character, or one that changes the display order of the following
 * characters: U+202A to U+202E, U+2066 to U+2069.
 */
static bool is_control (const unsigned char *c)
{
    return (c[0] == 0xc2 && c[1] < 0xa0)
           || (c[0] == 0xe2 && c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae)
           || (c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
}

static void hold_character (struct terminal *t, unsigned char c)
{
    t->held[t->nheld++] = c;
    t->held[t->nheld] = '\0';
    if (t->nheld < length_of (t->held[0]))
        return;
    if (is_utf8 ((char *)t->held) && !is_control (t->held)) {
        put_bytes_out (t, t->held, t->nheld);
        t->nheld = 0;
    } else
        show_held (t);
}

static void take_bytes (struct terminal *t, unsigned char c)
{
    bool after_return = t->returned;
    bool continues = t->nheld && t->held[0] != ESCAPE;

    t->returned = false;
    if (t->nheld && t->held[0] == ESCAPE && c != ESCAPE && c >= ' ') {
        hold_colour (t, c);
        return;
    }
    if (continues && (c & 0xc0) == 0x80) {
        hold_character (t, c);
        return;
    }
    show_held (t);
    if (c == '\n' && after_return)
        return;
    if (c == '\n' || (c == '\r' && t->colours)) {
        put_line_end (t);
        t->returned = c == '\r';
    } else if (c == '\t')
        put_bytes_out (t, &c, 1);
    else if (c == ESCAPE && t->colours)
        t->held[t->nheld++] = c;
    else if (c >= 0xc2 && c < 0xf5)
        hold_character (t, c);
    else
        put_visible (t, c);
}

static ssize_t guard_write (void *cookie, const char *bytes, size_t n)
{
    struct terminal *t = cookie;

    for (size_t i = 0; i < n; i++) {
        take_bytes (t, (unsigned char)bytes[i]);
        if (t->n > OUT_MAX - 8 * HELD_MAX && put_all (t) < 0)
            return 0;
    }
    return put_all (t) < 0 ? 0 : (ssize_t)n;
}

static FILE *guard (struct terminal *t, FILE *unguarded, int buffer)
{
    static const cookie_io_functions_t calls = { .write = guard_write };
    FILE *f = isatty (t->fd) ? fopencookie (t, "w", calls) : NULL;

    if (!f)
        return unguarded;
    setvbuf (f, NULL, buffer, buffer == _IONBF ? 0 : BUFSIZ);
    return f;
}

void terminal_guard (void)
{
    FILE *before = stdout;

    stdout = guard (&output, stdout, _IOLBF);
    stderr = guard (&errors, stderr, _IONBF);
    guarded = stdout != before;
}

void terminal_allow_colours (bool allow)
{
    fflush (stdout);
    output.colours = allow;
}

void terminal_control (const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    if (guarded) {
        fflush (stdout);
        vdprintf (output.fd, fmt, ap);
    } else
        vprintf (fmt, ap);
    va_end (ap);
}
