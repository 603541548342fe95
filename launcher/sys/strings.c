/* SPDX-License-Identifier: Apache-2.0 */
/* NULL-terminated lists of strings. */
#include "launcher/sys/strings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"

void strings_add_part (char ***list, const char *text, size_t len)
{
    size_t n = 0;

    while (*list && (*list)[n])
        n++;
    *list = xreallocarray (*list, n + 2, sizeof (**list));
    (*list)[n] = xstrndup (text, len);
    (*list)[n + 1] = NULL;
}

void strings_add (char ***list, const char *text)
{
    strings_add_part (list, text, strlen (text));
}

void strings_addf (char ***list, const char *format, ...)
{
    char *text;
    va_list ap;

    va_start (ap, format);
    text = xvasprintf (format, ap);
    va_end (ap);
    strings_add (list, text);
    free (text);
}

void strings_add_all (char ***list, char *const *more)
{
    for (; more && *more; more++)
        strings_add (list, *more);
}

bool strings_contain (const char *const *list, const char *text)
{
    while (list && *list && strcmp (*list, text))
        list++;
    return list && *list;
}

void strings_free (char **list)
{
    for (char **s = list; s && *s; s++)
        free (*s);
    free (list);
}

int strings_compare (const void *a, const void *b)
{
    return strcmp (*(const char *const *)a, *(const char *const *)b);
}

bool word_fits (const char *text)
{
    size_t n = strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-");

    return n > 0 && n < WORD_SIZE && !text[n] && *text != '.' && *text != '-';
}

void word_make_fit (char *text)
{
    for (char *c = text; *c; c++) {
        const char one[] = { 'x', *c, '\0' };
        if (!word_fits (c == text ? one + 1 : one))
            *c = '_';
    }
}

static bool is_plain (const char *text)
{
    size_t n = strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "0123456789._-+/:,@%");

    return n > 0 && !text[n];
}

const char *and_more (char buf[AND_MORE_SIZE], long left)
{
    *buf = '\0';
    if (left > 0)
        snprintf (buf, AND_MORE_SIZE, " and %ld more", left);
    return buf;
}

bool text_ends_with (const char *text, const char *end)
{
    size_t n = strlen (text), k = strlen (end);

    return n >= k && !strcmp (text + n - k, end);
}

void shell_put (FILE *f, const char *text)
{
    if (is_plain (text)) {
        fputs (text, f);
        return;
    }
    fputc ('\'', f);
    for (; *text; text++)
        if (*text == '\'')
            fputs ("'\\''", f);
        else
            fputc (*text, f);
    fputc ('\'', f);
}

char *shell_word (const char *text)
{
    char *word = NULL;
    size_t size;
    FILE *f = xopen_memstream (&word, &size);

    shell_put (f, text);
    xclose_memstream (f);
    return word;
}
