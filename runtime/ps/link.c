/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of a worker: send requests to all servers, take answers. */
#include "runtime/ps/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"

enum { TICK_MS = 100, SLACK = 10, TEXT = 200 };

static int send_some (struct slurmdl_ps *ps, struct ps_link *l)
{
    while (l->send) {
        struct ps_record *r = l->send;
        size_t head = sizeof (r->h);
        size_t at = l->sent < head ? l->sent : head;
        struct iovec v[2] = {
            { (char *)&r->h + at, head - at },
            { (void *)(uintptr_t)(r->body + (l->sent - at)),
              r->h.bytes - (l->sent - at) },
        };
        struct msghdr m = { .msg_iov = v, .msg_iovlen = r->h.bytes ? 2 : 1 };
        ssize_t n = sendmsg (l->fd, &m, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        l->since = monotonic ();
        l->sent += (size_t)n;
        ps->stats.bytes_out += (uint64_t)n;
        if (l->sent == head + r->h.bytes) {
            l->send = r->next;
            l->sent = 0;
        }
    }
    return 0;
}

static bool is_direct (const struct ps_link *l)
{
    return l->queue.head->out && !l->queue.head->where && !l->in.status;
}

/* Whether the answer is the one that the first request can have. */
static int check_answer (struct ps_link *l)
{
    const struct ps_record *r = l->queue.head;
    uint64_t wanted = 0;
    void *more;

    if (!r || r == l->send || l->in.magic != PS_MAGIC
        || l->in.kind != r->h.kind)
        return -1;
    if (r->out)
        wanted = r->h.count * (r->row ? r->row : 1) * sizeof (float);
    if (l->in.status ? l->in.bytes > 1024 : l->in.bytes != wanted)
        return -1;
    if (is_direct (l) || l->in.bytes <= l->room)
        return 0;
    if (!(more = realloc (l->body, l->in.bytes)))
        return -1;
    l->body = more;
    l->room = l->in.bytes;
    return 0;
}

static void scatter (const struct ps_record *r, const unsigned char *rows)
{
    size_t row = r->row * sizeof (float);

    for (uint64_t i = 0; i < r->h.count; i++)
        memcpy (r->out + r->where[i] * r->row, rows + i * row, row);
}

static void take_answer (struct slurmdl_ps *ps, struct ps_link *l)
{
    struct ps_record *r = l->queue.head;
    char why[TEXT] = "";

    if (l->in.status && l->in.bytes)
        snprintf (why,
                  sizeof (why),
                  "%.*s",
                  (int)(l->in.bytes < TEXT ? l->in.bytes : TEXT - 1),
                  (char *)l->body);
    else if (r->where)
        scatter (r, l->body);
    l->queue.head = r->next;
    if (!l->queue.head)
        l->queue.tail = NULL;
    l->got = 0;
    psclient_answered (ps, l, r, &l->in);
    pslink_complete (ps, l, r, (int)l->in.status, why);
}

/* Returns -1 when the connection is gone. */
static int recv_some (struct slurmdl_ps *ps, struct ps_link *l)
{
    size_t head = sizeof (l->in);
    ssize_t n;

    for (;;) {
        unsigned char *to = (unsigned char *)&l->in;
        size_t at = l->got;
        size_t size = head;
        if (l->got >= head) {
            to = is_direct (l) ? (unsigned char *)l->queue.head->out : l->body;
            at = l->got - head;
            size = l->in.bytes;
        }
        n = recv (l->fd, to + at, size - at, 0);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        if (n == 0)
            return -1;
        l->since = monotonic ();
        l->got += (size_t)n;
        ps->stats.bytes_in += (uint64_t)n;
        if (l->got == head && check_answer (l) < 0)
            return -1;
        if (l->got >= head && l->got == head + l->in.bytes)
            take_answer (ps, l);
    }
}

static void disconnect (struct ps_link *l)
{
    close (l->fd);
    l->fd = -1;
    l->since = monotonic ();
    l->next = 0;
    l->pause = 0.02;
    l->pulse = (struct ps_pulse){ 0, 0 };
}

static int too_late (struct slurmdl_ps *ps, struct ps_link *l)
{
    struct slurmdl_error why = { "" };
    double for_s = monotonic () - l->since;

    if (l->fd < 0 && for_s > ps->timeout)
        errorf (&why,
                "server %ld (%s) is lost, and no process replaced it within "
                "%.0f s",
                l->server,
                *l->entry.host ? l->entry.host : "it has never come",
                ps->timeout);
    else if (l->fd >= 0 && l->queue.head && for_s > ps->timeout + SLACK)
        errorf (&why,
                "server %ld (%s) has not answered for %.0f s",
                l->server,
                l->entry.host,
                for_s);
    else
        return 0;
    return psclient_break (ps, ETIMEDOUT, why.text);
}

static int raise_link (struct slurmdl_ps *ps, struct ps_link *l)
{
    struct slurmdl_error why = { "" };
    int rv;

    if (l->fd >= 0 || monotonic () < l->next)
        return 0;
    if ((rv = pslink_connect (ps, l, &why)) < 0)
        return psclient_break (ps, errno, why.text);
    if (rv > 0) {
        l->since = monotonic ();
        return 0;
    }
    l->pause = l->pause < 0.5 ? l->pause * 1.5 : 0.5;
    l->next = monotonic () + l->pause;
    return 0;
}

/* Returns -1 when there is no sense in waiting. */
static int look_after (struct slurmdl_ps *ps)
{
    struct ps_client *c = ps->client;

    for (long i = 0; i < ps->servers; i++) {
        struct ps_link *l = &c->links[i];
        if (c->leaving && !l->queue.head)
            continue; /* it has answered, and may have ended */
        if (l->fd >= 0 && pswire_is_dead (l->fd, ps->grace, &l->pulse))
            disconnect (l);
        if (raise_link (ps, l) < 0 || too_late (ps, l) < 0)
            return -1;
    }
    return 0;
}

static void handle (struct slurmdl_ps *ps, struct pollfd *fds)
{
    for (long i = 0; i < ps->servers; i++) {
        struct ps_link *l = &ps->client->links[i];
        int rv = 0;
        if (l->fd < 0 || !fds[i].revents)
            continue;
        if (fds[i].revents & (POLLIN | POLLERR | POLLHUP))
            rv = recv_some (ps, l);
        if (rv == 0 && (fds[i].revents & POLLOUT))
            rv = send_some (ps, l);
        if (rv < 0)
            disconnect (l);
    }
}

static int wait_some (struct slurmdl_ps *ps, struct pollfd *fds)
{
    int wait = TICK_MS;

    for (long i = 0; i < ps->servers; i++) {
        struct ps_link *l = &ps->client->links[i];
        fds[i] = (struct pollfd){ .fd = l->fd, .events = POLLIN };
        if (l->fd >= 0 && l->send)
            fds[i].events |= POLLOUT;
        if (l->fd < 0)
            wait = 20;
    }
    if (poll (fds, (nfds_t)ps->servers, wait) < 0 && errno != EINTR)
        return psclient_break (ps, errno, "poll has failed");
    return 0;
}

static int refuse (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    errorf (err, "%s", ps->client->why.text);
    errno = ps->client->code;
    return -1;
}

int pslinks_pump (struct slurmdl_ps *ps,
                  pslink_done_f done,
                  int64_t arg,
                  struct slurmdl_error *err)
{
    struct ps_client *c = ps->client;
    double began = monotonic ();
    struct pollfd *fds;

    for (long i = 0; i < ps->servers; i++)
        if (c->links[i].fd >= 0 && send_some (ps, &c->links[i]) < 0)
            disconnect (&c->links[i]);
    if (!c->broken && done (ps, arg))
        return 0;
    if (!(fds = calloc ((size_t)ps->servers, sizeof (*fds))))
        return errorf (err, "out of memory");
    while (!c->broken && !done (ps, arg))
        if (look_after (ps) == 0 && wait_some (ps, fds) == 0)
            handle (ps, fds);
    free (fds);
    ps->stats.waited += monotonic () - began;
    return c->broken ? refuse (ps, err) : 0;
}
