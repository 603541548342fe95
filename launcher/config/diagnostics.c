/* SPDX-License-Identifier: Apache-2.0 */
/* Collect what is wrong with a file. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/private.h"
#include "launcher/sys/strings.h"

int problems_open (struct problems *p)
{
    *p = (struct problems){ 0 };
    p->stream = open_memstream (&p->text, &p->size);
    return p->stream ? 0 : -1;
}

void problems_close (struct problems *p)
{
    if (p->stream)
        fclose (p->stream);
    p->stream = NULL;
    strings_free (p->about);
    p->about = NULL;
}

void problem_about (struct problems *p, const char *key)
{
    strings_add (&p->about, key, strlen (key));
}

bool problem_is_about (const struct problems *p, const char *key)
{
    for (char **a = p->about; a && *a; a++) {
        size_t n = strlen (*a);
        if (!strncmp (*a, key, n) && (!key[n] || key[n] == '.'))
            return true;
    }
    return false;
}

void problem (struct problems *p, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start (ap, fmt);
    if (vasprintf (&text, fmt, ap) < 0)
        text = NULL;
    va_end (ap);
    if (p->sets && text)
        edit_name_option (&text, p->sets);
    /* one line, whatever a value in it has */
    for (char *c = text; c && *c; c++)
        if (iscntrl ((unsigned char)*c))
            *c = '?';
    fprintf (p->stream, "%s\n", text ? text : "out of memory");
    free (text);
    p->count++;
}
