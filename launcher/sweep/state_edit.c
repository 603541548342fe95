/* SPDX-License-Identifier: Apache-2.0 */
/* Change the state of a sweep. */
#include "launcher/sweep/state_edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/sweep.h"
#include "launcher/sys/array.h"
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

int state_add_history (struct sweep *s, long what, struct slurmdl_error *err)
{
    long *list = array_grow (s->history, (size_t)s->nhistory, sizeof (*list));

    if (!list)
        return errorf (err, "out of memory");
    s->history = list;
    list[s->nhistory++] = what;
    return 0;
}
