/* SPDX-License-Identifier: Apache-2.0 */
/* A spare server waits until the place of another one is free. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/ps/server.h"

enum { TURN_MS = 500, ANSWER_SECONDS = 5 };

struct ps_watch {
    uint64_t before; /* number of the entry when the spare came */
    uint64_t number; /* as it was seen last */
    double since;    /* when it was first seen to be lost */
};

/* What is left from an earlier run has a grace; a server that a worker has
 * given up has the time to say that it is there (psstore_look()).
 */
static double
patience (const struct slurmdl_ps *ps, const struct ps_watch *w, bool ended)
{
    if (w->number <= w->before)
        return ps->grace;
    return ended ? 0 : ps->grace < ANSWER_SECONDS ? ps->grace : ANSWER_SECONDS;
}

/* 1: its place is to be taken, 0: not, -1: it has left. */
static int is_lost (struct slurmdl_ps *ps,
                    long server,
                    struct ps_watch *w,
                    const struct process_id *self)
{
    struct ps_entry e;
    uint64_t number;
    bool ended;

    if (psregistration_newest (ps->dir, "server", server, &number, &e) != 1)
        return 0;
    if (e.state == PS_LEFT)
        return number > w->before ? -1 : 0;
    ended = process_id_has_ended (&e.member, self);
    if (number != w->number)
        w->since = 0;
    w->number = number;
    if (!ended && e.state != PS_LOST)
        w->since = 0;
    else if (w->since == 0)
        w->since = monotonic ();
    return w->since > 0 && monotonic () - w->since >= patience (ps, w, ended);
}

static int wait_turn (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct pollfd p = { .fd = ps->stop, .events = POLLIN };

    if (poll (&p, 1, TURN_MS) <= 0)
        return 0;
    errno = ECANCELED;
    return errorf (err, "the server was told to stop");
}

/* Returns the server whose place is to be taken, -1 when all have left, -2 on
 * failure.
 */
static long watch_servers (struct slurmdl_ps *ps,
                           struct ps_watch *w,
                           struct slurmdl_error *err)
{
    struct process_id self;
    struct ps_entry e;
    long left = 0;
    int is;

    process_id_describe (&self);
    for (long i = 0; i < ps->servers; i++)
        psregistration_newest (ps->dir, "server", i, &w[i].before, &e);
    while (left < ps->servers) {
        if (wait_turn (ps, err) < 0)
            return -2;
        left = 0;
        for (long i = 0; i < ps->servers; i++) {
            if ((is = is_lost (ps, i, &w[i], &self)) > 0)
                return i;
            left -= is;
        }
    }
    return -1;
}

long psspare_wait (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_watch *w = calloc ((size_t)ps->servers, sizeof (*w));
    long i = w ? watch_servers (ps, w, err) : -2;

    free (w);
    return i;
}
