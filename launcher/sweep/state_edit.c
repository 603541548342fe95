/* SPDX-License-Identifier: Apache-2.0 */
/* Change the state of a sweep. */
#include "launcher/sweep/state_edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/base/error.h"

int state_damaged (struct slurmdl_error *err, const char *what)
{
    errno = EBADMSG;
    return errorf (err, "decision log: %s", what);
}

void state_set_text (char **at, const char *text)
{
    free (*at);
    *at = text ? strdup (text) : NULL;
}

/* Where trial 'n' stands, or is to stand, in s->open. */
static long place_of (const struct sweep *s, long n)
{
    long i = s->nopen;

    while (i > 0 && s->open[i - 1] >= n)
        i--;
    return i;
}

int state_add_open (struct sweep *s, long n, struct slurmdl_error *err)
{
    long *list = array_grow (s->open, (size_t)s->nopen, sizeof (*list));
    long i;

    if (!list)
        return errorf (err, "out of memory");
    s->open = list;
    i = place_of (s, n);
    memmove (list + i + 1, list + i, (size_t)(s->nopen - i) * sizeof (*list));
    list[i] = n;
    s->nopen++;
    return 0;
}

void state_remove_open (struct sweep *s, long n)
{
    long i = place_of (s, n);

    s->nopen--;
    memmove (s->open + i, s->open + i + 1, (size_t)(s->nopen - i) * sizeof (*s->open));
}

int state_add_history (struct sweep *s, long what, struct slurmdl_error *err)
{
    long *list = array_grow (s->history, (size_t)s->nhistory, sizeof (*list));

    if (!list)
        return errorf (err, "out of memory");
    s->history = list;
    list[s->nhistory++] = what;
    return 0;
}
