/* SPDX-License-Identifier: Apache-2.0 */
/* NULL-ended lists of texts. */
#include "launcher/sys/strings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int strings_add_part (char ***list, const char *text, size_t len)
{
    size_t n = 0;
    char **more;

    while (*list && (*list)[n])
        n++;
    if (!(more = realloc (*list, (n + 2) * sizeof (*more))))
        return -1;
    *list = more;
    more[n] = strndup (text, len);
    more[n + 1] = NULL;
    return more[n] ? 0 : -1;
}

int strings_add (char ***list, const char *text)
{
    return strings_add_part (list, text, strlen (text));
}

int strings_addf (char ***list, const char *format, ...)
{
    char *text;
    va_list ap;
    int n, rv;

    va_start (ap, format);
    n = vasprintf (&text, format, ap);
    va_end (ap);
    if (n < 0)
        return -1;
    rv = strings_add (list, text);
    free (text);
    return rv;
}

int strings_add_all (char ***list, char *const *more)
{
    int rv = 0;

    for (; rv == 0 && more && *more; more++)
        rv = strings_add (list, *more);
    return rv;
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
    size_t n = strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "0123456789_.+-");

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

char *shell_word (const char *text)
{
    char *word = NULL;
    size_t size;
    FILE *f;

    if (is_plain (text))
        return strdup (text);
    if (!(f = open_memstream (&word, &size)))
        return NULL;
    fputc ('\'', f);
    for (; *text; text++)
        if (*text == '\'')
            fputs ("'\\''", f);
        else
            fputc (*text, f);
    fputc ('\'', f);
    if (fclose (f) == 0)
        return word;
    free (word);
    return NULL;
}
