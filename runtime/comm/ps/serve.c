/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a server: connections, requests, answers. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/comm/ps/server.h"
#include "runtime/error.h"

enum { TICK_MS = 100, STRANGERS_MAX = 256, STRANGER_SECONDS = 10 };

/* ---- answers ---- */

void psanswer (struct ps_peer *p, const void *body, size_t n)
{
    p->out = (struct ps_header){ .magic = PS_MAGIC,
                                 .version = PS_VERSION,
                                 .kind = p->in.kind,
                                 .clock = p->in.clock,
                                 .bytes = n };
    p->out_body = body;
    p->out_size = sizeof (p->out) + n;
    p->out_sent = 0;
}

void *psanswer_room (struct ps_peer *p, size_t n)
{
    void *more;

    if (n > p->out_room) {
        if (!(more = realloc (p->out_own, n)))
            return NULL;
        p->out_own = more;
        p->out_room = n;
    }
    psanswer (p, p->out_own, n);
    return n ? p->out_own : (void *)&p->out;
}

void psanswer_error (struct ps_peer *p, int code, const char *why)
{
    size_t n = strlen (why);
    void *to = psanswer_room (p, n + 1);

    if (to)
        memcpy (to, why, n + 1);
    else
        psanswer (p, NULL, 0);
    p->out.status = (uint32_t)(code ? code : EIO);
}

/* Returns -1 when the connection is gone. */
static int flush_peer (struct ps_server *s, struct ps_peer *p)
{
    while (p->out_sent < p->out_size) {
        size_t head = sizeof (p->out);
        size_t at = p->out_sent < head ? p->out_sent : head;
        size_t body = p->out_sent - at;
        struct iovec v[2] = {
            { (char *)&p->out + at, head - at },
            { (void *)(uintptr_t)(p->out_body + body), p->out.bytes - body },
        };
        struct msghdr m = { .msg_iov = v, .msg_iovlen = p->out.bytes ? 2 : 1 };
        ssize_t n = sendmsg (p->fd, &m, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        p->out_sent += (size_t)n;
        s->ps->stats.bytes_out += (uint64_t)n;
    }
    return p->close_after ? -1 : 0;
}

/* ---- requests ---- */

/* The answer of PS_HELD is not sent. */
static int do_request (struct ps_server *s, struct ps_peer *p)
{
    struct slurmdl_error why = { "" };

    switch (psapply_request (s, p, &why)) {
    case PS_HELD:
        p->out_size = p->out_sent = 0;
        if (!p->held)
            p->since = monotonic ();
        p->held = true;
        return 0;
    case PS_FAILED:
        psanswer_error (p, errno, why.text);
        p->close_after = !p->known;
        break;
    case PS_DONE:
        break;
    }
    p->held = false;
    p->in_got = 0;
    p->out.saved = s->saved;
    return flush_peer (s, p);
}

static int refuse_version (struct ps_server *s, struct ps_peer *p)
{
    psanswer_error (p,
                    EPROTO,
                    "it speaks version 1 of the protocol: start all processes "
                    "with the same libslurmdl");
    p->close_after = true;
    return flush_peer (s, p);
}

/* Returns 1 if the header may be followed by its body. */
static int check_header (struct ps_server *s, struct ps_peer *p)
{
    const struct ps_header *h = &p->in;

    if (h->magic != PS_MAGIC)
        return -1;
    if (h->version != PS_VERSION)
        return refuse_version (s, p);
    if ((h->kind == PS_HELLO) == p->known || h->kind == 0
        || h->kind >= PS_KINDS)
        return -1;
    if (h->kind == PS_HELLO && h->bytes != sizeof (struct ps_hello))
        return -1;
    if (h->clock < 0 || h->bytes > 2 * (uint64_t)PS_ROWS_BYTES_MAX)
        return -1;
    return 1;
}

static int make_body (struct ps_peer *p)
{
    size_t n = p->in.bytes < 4096 ? 4096 : p->in.bytes;
    void *more;

    if (n <= p->body_room)
        return 0;
    free (p->body);
    p->body_room = 0;
    if (!(more = p->body = malloc (n)))
        return -1;
    p->body_room = n;
    return 0;
}

/* One piece of what is there; 1: more may be, 0: no more, -1: it is gone. */
static int read_some (struct ps_server *s, struct ps_peer *p)
{
    size_t head = sizeof (p->in);
    ssize_t n;
    int ok;

    if (p->in_got < head)
        n = recv (p->fd, (char *)&p->in + p->in_got, head - p->in_got, 0);
    else
        n = recv (p->fd,
                  p->body + (p->in_got - head),
                  head + p->in.bytes - p->in_got,
                  0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1;
    s->ps->stats.bytes_in += (uint64_t)n;
    p->in_got += (size_t)n;
    if (p->in_got - (size_t)n < head && p->in_got == head) {
        if ((ok = check_header (s, p)) <= 0)
            return ok;
        if (make_body (p) < 0)
            return -1;
    }
    return 1;
}

static bool is_whole (const struct ps_peer *p)
{
    return p->in_got >= sizeof (p->in)
           && p->in_got == sizeof (p->in) + p->in.bytes;
}

static bool is_writing (const struct ps_peer *p)
{
    return p->out_sent < p->out_size;
}

/* As many requests as fit into a turn. */
static int serve_peer (struct ps_server *s, struct ps_peer *p)
{
    int rv;

    for (int turn = 0; turn < 64 && !p->held && !is_writing (p); turn++) {
        if (!is_whole (p) && (rv = read_some (s, p)) <= 0)
            return rv;
        if (is_whole (p) && do_request (s, p) < 0)
            return -1;
    }
    return 0;
}

/* ---- connections ---- */

static void drop_peer (struct ps_server *s, size_t i)
{
    struct ps_peer *p = &s->peers[i];

    if (p->known)
        pspeople_disconnected (s, p->worker);
    close (p->fd);
    free (p->body);
    free (p->out_own);
    *p = s->peers[--s->npeers];
}

static void drop_stranger (struct ps_server *s)
{
    size_t n = 0;
    size_t oldest = s->npeers;

    for (size_t i = 0; i < s->npeers; i++)
        if (!s->peers[i].known) {
            n++;
            if (oldest == s->npeers
                || s->peers[i].since < s->peers[oldest].since)
                oldest = i;
        }
    if (n > STRANGERS_MAX)
        drop_peer (s, oldest);
}

static int accept_peers (struct ps_server *s)
{
    struct ps_peer *more;
    int fd;

    while ((fd = accept4 (s->listen, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC))
           >= 0) {
        if (s->npeers == s->room) {
            size_t room = s->room ? 2 * s->room : 16;
            if (!(more = realloc (s->peers, room * sizeof (*more)))) {
                close (fd);
                return -1;
            }
            s->peers = more;
            s->room = room;
        }
        pswire_tune (fd, s->ps->grace);
        memset (&s->peers[s->npeers], 0, sizeof (*s->peers));
        s->peers[s->npeers].fd = fd;
        s->peers[s->npeers++].since = monotonic ();
        drop_stranger (s);
    }
    return 0;
}

static bool is_late (struct ps_server *s, struct ps_peer *p)
{
    if (!p->known && !p->close_after)
        return monotonic () - p->since > STRANGER_SECONDS;
    return is_writing (p) && pswire_is_dead (p->fd, s->ps->grace);
}

static void answer_late (struct ps_server *s, struct ps_peer *p)
{
    struct slurmdl_error why = { "" };

    if (!p->held || monotonic () - p->since < p->timeout)
        return;
    psapply_explain (s, p, &why);
    psanswer_error (p, ETIMEDOUT, why.text);
    p->held = false;
    p->in_got = 0;
    flush_peer (s, p);
}

/* What was held may go on after what others have done. */
static void retry_held (struct ps_server *s)
{
    for (size_t i = s->npeers; i-- > 0;)
        if (s->peers[i].held && do_request (s, &s->peers[i]) < 0)
            drop_peer (s, i);
}

static void tick (struct ps_server *s)
{
    for (size_t i = s->npeers; i-- > 0;) {
        answer_late (s, &s->peers[i]);
        if (is_late (s, &s->peers[i])
            || (s->peers[i].close_after && !is_writing (&s->peers[i])))
            drop_peer (s, i);
    }
}

/* ---- the loop ---- */

static short events_of (const struct ps_peer *p)
{
    if (is_writing (p))
        return POLLOUT | POLLRDHUP;
    return p->held ? POLLRDHUP : POLLIN;
}

/* Returns 1 when it was told to stop. */
static int handle_events (struct ps_server *s, struct pollfd *fds)
{
    size_t n = s->npeers;

    fds[0] = (struct pollfd){ .fd = s->listen, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = s->ps->stop, .events = POLLIN };
    for (size_t i = 0; i < n; i++)
        fds[2 + i] = (struct pollfd){ .fd = s->peers[i].fd,
                                      .events = events_of (&s->peers[i]) };
    if (poll (fds, 2 + n, TICK_MS) < 0)
        return errno == EINTR ? 0 : -1;
    if (fds[1].revents)
        return 1;
    for (size_t i = n; i-- > 0;) {
        struct ps_peer *p = &s->peers[i];
        short got = fds[2 + i].revents;
        int rv = 0;
        if (is_writing (p) && (got & POLLOUT))
            rv = flush_peer (s, p);
        else if (got & POLLIN)
            rv = serve_peer (s, p);
        else if (got)
            rv = -1;
        if (rv < 0)
            drop_peer (s, i);
    }
    if (fds[0].revents)
        accept_peers (s);
    return 0;
}

static int wait_events (struct ps_server *s)
{
    struct pollfd *fds = calloc (s->npeers + 2, sizeof (*fds));
    int rv = fds ? handle_events (s, fds) : -1;

    free (fds);
    return rv;
}

static int turn (struct ps_server *s, struct slurmdl_error *err)
{
    int rv = wait_events (s);

    if (rv > 0) {
        errno = ECANCELED;
        return errorf (err, "the server was told to stop");
    }
    if (rv < 0)
        return errorf (err, "poll: %s", strerror (errno));
    if (psapply_progress (s, err) < 0)
        return -1;
    retry_held (s);
    if (psapply_progress (s, err) < 0)
        return -1;
    tick (s);
    if (psstore_look (s, err) < 0)
        return -1;
    return pspeople_look (s, err);
}

/* With saves that are asked for, the end is saved too. */
static int save_end (struct ps_server *s, struct slurmdl_error *err)
{
    int64_t most = 0;

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
    return psstore_save (s, err);
}

/* The rest of the last answers goes out. */
static void drain (struct ps_server *s)
{
    double until = monotonic () + 2;

    while (s->npeers > 0 && monotonic () < until && wait_events (s) == 0)
        tick (s);
}

static int run (struct ps_server *s, struct slurmdl_error *err)
{
    int rv;

    s->listen = pswire_listen (s->ps->address, s->entry);
    if (s->listen < 0)
        return errorf (err, "cannot listen on a port: %s", strerror (errno));
    s->entry->state = PS_RESTORING;
    if (ps_claim (s->ps, err) < 0 || psstore_restore (s, err) < 0)
        return -1;
    s->alive = monotonic ();
    while ((rv = turn (s, err)) == 0)
        ;
    if (rv < 0)
        return -1;
    if (psapply_progress (s, err) < 0 || save_end (s, err) < 0)
        return -1;
    drain (s);
    s->entry->state = PS_LEFT;
    psplace_put (
        s->ps->dir, "server", s->ps->index, s->ps->number + 1, s->entry);
    return 0;
}

static int serve (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_server s = { .ps = ps, .entry = &ps->entry, .listen = -1 };
    int rv = -1;
    int saved;

    member_describe (&s.self);
    s.workers = calloc ((size_t)ps->workers, sizeof (*s.workers));
    if (s.workers)
        rv = run (&s, err);
    saved = errno;
    while (s.npeers > 0)
        drop_peer (&s, s.npeers - 1);
    if (s.listen >= 0)
        close (s.listen);
    for (size_t i = 0; i < s.ntables; i++)
        ps_table_destroy (s.tables[i]);
    free (s.tables);
    free (s.peers);
    free (s.workers);
    errno = saved;
    return rv;
}

/* ---- a spare ---- */

struct watch {
    uint64_t number; /* of the entry when the spare came */
    double since;    /* when the process was first seen to have ended */
};

/* 1: its place is to be taken, 0: not, -1: it has left. */
static int is_lost (struct slurmdl_ps *ps,
                    long server,
                    struct watch *w,
                    const struct member *self)
{
    struct ps_entry e;
    uint64_t number;
    bool ended;

    if (psplace_newest (ps->dir, "server", server, &number, &e) != 1)
        return 0;
    if (e.state == PS_LEFT)
        return number > w->number ? -1 : 0;
    ended = e.state == PS_LOST || member_has_ended (&e.member, self);
    if (!ended)
        w->since = 0;
    else if (w->since == 0)
        w->since = monotonic ();
    /* what is left from an earlier run has a grace */
    return ended && (number > w->number || monotonic () - w->since > ps->grace);
}

static int wait_turn (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct pollfd p = { .fd = ps->stop, .events = POLLIN };

    if (poll (&p, 1, 5 * TICK_MS) <= 0)
        return 0;
    errno = ECANCELED;
    return errorf (err, "the server was told to stop");
}

/* Returns the server whose place is to be taken, -1 when all have left, -2 on
 * failure.
 */
static long watch_servers (struct slurmdl_ps *ps,
                           struct watch *w,
                           struct slurmdl_error *err)
{
    struct member self;
    struct ps_entry e;
    long left = 0;
    int is;

    member_describe (&self);
    for (long i = 0; i < ps->servers; i++)
        psplace_newest (ps->dir, "server", i, &w[i].number, &e);
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

static int stand_by (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct watch *w = calloc ((size_t)ps->servers, sizeof (*w));
    long i = w ? watch_servers (ps, w, err) : -2;

    free (w);
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
