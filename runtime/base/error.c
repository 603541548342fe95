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

int errorf (struct slurmdl_error *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    if (err && !*err->text) {
        va_start (ap, fmt);
        vsnprintf (err->text, sizeof (err->text), fmt, ap);
        va_end (ap);
    }
    errno = saved;
    return -1;
}
