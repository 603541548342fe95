/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of a server. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/ps/server.h"

enum { TICK_MS = 100 };

static short events_of (const struct ps_peer *p)
{
    if (pspeer_is_writing (p))
        return POLLOUT | POLLRDHUP;
    return p->held ? POLLRDHUP : POLLIN;
}

static int handle_peer (struct ps_server *s, struct ps_peer *p, short got)
{
    if (pspeer_is_writing (p) && (got & POLLOUT))
        return pspeer_flush (s, p);
    if (got & POLLIN)
        return pspeer_serve (s, p);
    if (!got)
        return 0;
    pspeer_hung_up (p);
    return -1;
}

/* Returns 1 when it was told to stop.  Whoever slept looks first whether it
 * still has its place.
 */
static int wait_events (struct ps_server *s, struct slurmdl_error *err)
{
    size_t n = s->npeers;
    size_t stop = listener_fds (&s->listener);
    struct pollfd *fds = listener_poll (&s->listener, 1 + n);
    struct pollfd *peers = fds + stop + 1;

    if (!fds)
        return errorf (err, "out of memory");
    fds[stop] = (struct pollfd){ .fd = s->ps->stop, .events = POLLIN };
    for (size_t i = 0; i < n; i++)
        peers[i] = (struct pollfd){ .fd = s->peers[i].fd,
                                    .events = events_of (&s->peers[i]) };
    if (poll (fds, stop + 1 + n, pssave_wait_ms (s, TICK_MS)) < 0)
        return errno == EINTR ? 0 : errorf (err, "poll: %s", strerror (errno));
    if (fds[stop].revents)
        return 1;
    if (psstore_look (s, err) < 0)
        return -1;
    for (size_t i = n; i-- > 0;)
        if (handle_peer (s, &s->peers[i], peers[i].revents) < 0)
            pspeer_drop (s, i);
    listener_serve (&s->listener);
    pspeers_accept (s);
    return 0;
}

static int turn (struct ps_server *s, struct slurmdl_error *err)
{
    int rv = wait_events (s, err);

    if (rv > 0) {
        errno = ECANCELED;
        return errorf (err, "the server was told to stop");
    }
    if (rv < 0)
        return -1;
    if (pssave_go_on (s, err) < 0 || psapply_progress (s, err) < 0)
        return -1;
    pspeers_retry (s);
    if (psapply_progress (s, err) < 0)
        return -1;
    pspeers_tick (s);
    return psworkers_look (s, err);
}

/* With saves that are asked for, the end is saved too. */
static int save_end (struct ps_server *s, struct slurmdl_error *err)
{
    int64_t most = 0;

    if (pssave_finish (s, err) < 0 || psapply_progress (s, err) < 0
        || pssave_finish (s, err) < 0)
        return -1;
    if (s->ps->save_every <= 0)
        return 0;
    for (long i = 0; i < s->ps->workers; i++)
        if (s->workers[i].clock > most)
            most = s->workers[i].clock;
    if (!most
        || (s->entry->nsaved
            && s->entry->saved[s->entry->nsaved - 1].clock >= most))
        return 0;
    s->cut = most;
    return pssave_begin (s, err) < 0 ? -1 : pssave_finish (s, err);
}

/* The rest of the last answers goes out. */
static void drain (struct ps_server *s)
{
    double until = monotonic () + 2;

    while (s->npeers > 0 && monotonic () < until && wait_events (s, NULL) == 0)
        pspeers_tick (s);
}

static int run (struct ps_server *s, struct slurmdl_error *err)
{
    int rv;

    s->listener = (struct listener){ .handshake = pshandshake_with (s->entry),
                                     .most = sizeof (struct ps_hello),
                                     .expected = (size_t)s->ps->workers };
    if (pswire_listen (s->ps->address, s->entry, &s->listener.at, err) < 0)
        return -1;
    s->entry->state = PS_RESTORING;
    if (ps_claim (s->ps, err) < 0 || psstore_restore (s, err) < 0)
        return -1;
    s->alive = monotonic ();
    while ((rv = turn (s, err)) == 0)
        ;
    if (rv < 0)
        return -1;
    if (save_end (s, err) < 0)
        return -1;
    drain (s);
    s->entry->state = PS_LEFT;
    psregistration_put (
        s->ps->dir, "server", s->ps->index, s->ps->number + 1, s->entry);
    return 0;
}

static int serve (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_server s = { .ps = ps, .entry = &ps->entry };
    int rv = -1;
    int saved;

    process_id_describe (&s.self);
    s.workers = calloc ((size_t)ps->workers, sizeof (*s.workers));
    if (s.workers)
        rv = run (&s, err);
    saved = errno;
    pssave_abandon (&s);
    while (s.npeers > 0)
        pspeer_drop (&s, s.npeers - 1);
    listener_close (&s.listener);
    for (size_t i = 0; i < s.ntables; i++)
        ps_table_destroy (s.tables[i]);
    free (s.tables);
    free (s.peers);
    free (s.workers);
    errno = saved;
    return rv;
}

static int stand_by (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    long i = psspare_wait (ps, err);

    if (i < 0)
        return i == -1 ? 0 : -1;
    ps->index = i;
    ps->role = PS_SERVER;
    return serve (ps, err);
}

int slurmdl_ps_serve (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    if (err)
        *err->text = '\0';
    if (ps->role == PS_WORKER) {
        errno = EINVAL;
        return errorf (err, "a worker does not serve");
    }
    return ps->role == PS_SPARE ? stand_by (ps, err) : serve (ps, err);
}

void slurmdl_ps_stop (struct slurmdl_ps *ps)
{
    uint64_t one = 1;
    int saved = errno;

    if (write (ps->stop, &one, sizeof (one)) < 0)
        errno = saved; /* it was told before */
    errno = saved;
}
