/* SPDX-License-Identifier: Apache-2.0 */
/* Collect what is wrong with a file. */
#include <stdarg.h>

#include "launcher/experiment.h"

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
}

void problem (struct problems *p, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    vfprintf (p->stream, fmt, ap);
    va_end (ap);
    fputc ('\n', p->stream);
    p->count++;
}
