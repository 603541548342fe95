/* SPDX-License-Identifier: Apache-2.0 */
/* Collect the errors in an experiment file. */
#include "launcher/config/diagnostics.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"

void problems_open (struct problems *p)
{
    *p = (struct problems){ 0 };
    p->stream = xopen_memstream (&p->text, &p->size);
}

void problems_close (struct problems *p)
{
    if (p->stream)
        xclose_memstream (p->stream);
    p->stream = NULL;
    strings_free (p->about);
    p->about = NULL;
    for (size_t i = 0; i < p->nparts; i++)
        free (p->parts[i].file);
    free (p->parts);
    p->parts = NULL;
    p->nparts = 0;
}

void problems_part (struct problems *p, int first, const char *file, int line)
{
    XGROW (p->parts, p->nparts);
    p->parts[p->nparts++] = (struct text_part){ first, xstrdup (file), line };
}

const char *problems_file (const struct problems *p, int *line)
{
    const struct text_part *part = NULL;

    for (size_t i = 0; i < p->nparts && p->parts[i].first <= *line; i++)
        part = &p->parts[i];
    if (!part)
        return p->file;
    *line += part->line - part->first;
    return part->file;
}

void problem_about (struct problems *p, const char *key)
{
    strings_add (&p->about, key);
}

bool problem_is_about (const struct problems *p, const char *key)
{
    for (char **a = p->about; a && *a; a++) {
        size_t n = strlen (*a);
        if (n == 0 || (!strncmp (*a, key, n) && (!key[n] || key[n] == '.')))
            return true;
    }
    return false;
}

/* Always add exactly one line, even if a value in it contains newlines. */
static void __attribute__ ((format (printf, 3, 0)))
add_line (struct problems *p, const char *where, const char *fmt, va_list ap)
{
    char *text = xvasprintf (fmt, ap);
    char *line = xasprintf ("%s%s", where, text);

    for (char *c = line; *c; c++)
        if (iscntrl ((unsigned char)*c))
            *c = '?';
    fprintf (p->stream, "%s\n", line);
    free (line);
    free (text);
}

void problem (struct problems *p, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    add_line (p, "", fmt, ap);
    va_end (ap);
    p->count++;
}

static void __attribute__ ((format (printf, 3, 0)))
add_line_at (struct problems *p, struct origin origin, const char *fmt, va_list ap)
{
    char *where;
    char line[24] = "";
    int number = origin.line;
    const char *file = problems_file (p, &number);

    if (origin.line > 0)
        snprintf (line, sizeof (line), ":%d", number);
    where = !origin.option              ? xasprintf ("%s%s: ", file, line)
            : origin.option != p->point ? xasprintf ("--set %s: ", origin.option)
                                        : xasprintf ("%s: ", p->words);
    add_line (p, where, fmt, ap);
    free (where);
}

void problem_at (struct problems *p, struct origin origin, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    add_line_at (p, origin, fmt, ap);
    va_end (ap);
    p->count++;
}

void note_at (struct problems *p, struct origin origin, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    add_line_at (p, origin, fmt, ap);
    va_end (ap);
}
