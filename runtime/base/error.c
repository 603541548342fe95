/* SPDX-License-Identifier: Apache-2.0 */
/* One place where error lines are made. */
#include "runtime/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void error_clear (struct slurmdl_error *err)
{
    if (err)
        *err->text = '\0';
}

/* Hosts, labels and reasons are others' words, and may go to a terminal. */
static void clean (char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++)
        if ((*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f)
            *c = '?';
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
            *c = c[1] = '?';
}

int errorf (struct slurmdl_error *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    if (err && !*err->text) {
        va_start (ap, fmt);
        vsnprintf (err->text, sizeof (err->text), fmt, ap);
        va_end (ap);
        clean (err->text);
    }
    errno = saved;
    return -1;
}
