/* SPDX-License-Identifier: Apache-2.0 */
/* Format error messages, and shorten them to fit. */
#include "runtime/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void error_clear (struct slurmdl_error *err)
{
    if (err)
        *err->text = '\0';
}

/* Replace control characters: host names, labels and reasons come from others, and
 * the message may be printed on a terminal.
 */
static void replace_controls (char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if ((*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f)
            *c = '?';
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            *c = c[1] = '?';
}

/* The longest word with a slash in it, or the whole text if there is none. */
static char *longest_path (char *text, size_t *length)
{
    char *found = text;

    *length = 0;
    for (char *c = text; *c;) {
        size_t n = strcspn (c, " \n\t");
        if (n > *length && memchr (c, '/', n)) {
            found = c;
            *length = n;
        }
        c += n + (c[n] != '\0');
    }
    return found;
}

/* Whether this byte continues a UTF-8 character. */
static bool continues_character (char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Cut out the middle of the path: the cause of the error follows the path, and the
 * end of the path names the file.
 */
static void elide_path (char *text, size_t most)
{
    static const char dots[] = "...";
    size_t least = 80, n;

    while (strlen (text) > most) {
        char *at = longest_path (text, &n);
        size_t over = strlen (text) - most + strlen (dots), from, to;
        if (n < least) { /* no path is long enough */
            at = text;
            n = strlen (text);
        }
        if (over > n - least / 2)
            over = n - least / 2;
        from = (n - over) / 3;
        to = from + over;
        while (from > 0 && continues_character (at[from]))
            from--;
        while (to < n && continues_character (at[to]))
            to++;
        memcpy (at + from, dots, strlen (dots));
        memmove (at + from + strlen (dots), at + to, strlen (at + to) + 1);
    }
}

int errorf (struct slurmdl_error *err, const char *fmt, ...)
{
    int saved = errno;
    char *whole = NULL;
    va_list ap;
    int n;

    if (err && !*err->text) {
        va_start (ap, fmt);
        n = vsnprintf (err->text, sizeof (err->text), fmt, ap);
        va_end (ap);
        if (n >= (int)sizeof (err->text)) {
            va_start (ap, fmt);
            n = vasprintf (&whole, fmt, ap);
            va_end (ap);
            if (n >= 0) {
                elide_path (whole, sizeof (err->text) - 1);
                strcpy (err->text, whole);
                free (whole);
            }
        }
        replace_controls (err->text);
    }
    errno = saved;
    return -1;
}
