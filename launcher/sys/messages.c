/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error. */
#include "launcher/sys/messages.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Always print exactly one line, even if a name or another program's text contains newlines. */
void complain (const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start (ap, fmt);
    if (vasprintf (&text, fmt, ap) < 0)
        text = NULL;
    va_end (ap);
    for (char *c = text; c && *c; c++)
        if (*c == '\n')
            *c = ';';
        else if (iscntrl ((unsigned char)*c) && *c != '\t')
            *c = '?';
    fprintf (stderr, "dl: %s\n", text ? text : "out of memory");
    free (text);
}

int error_status (int e)
{
    switch (e) {
    case EBADMSG:
        return EXIT_DAMAGED;
    case ENOENT:
        return EXIT_NOT_FOUND;
    case EINVAL:
        return EXIT_USAGE;
    default:
        return EXIT_IO;
    }
}

int fail (const struct slurmdl_error *err)
{
    int e = errno;

    complain ("%s", *err->text ? err->text : strerror (e));
    return error_status (e);
}
