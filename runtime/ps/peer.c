/* SPDX-License-Identifier: Apache-2.0 */
/* A server's connections: requests come in, answers go out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/ps/server.h"

/* From a host that can be reached there is an end or a reset. */
static int is_gone (struct ps_peer *p)
{
    p->silent = errno != ECONNRESET && errno != EPIPE;
    return -1;
}

void pspeer_hung_up (struct ps_peer *p)
{
    char c;

    if (recv (p->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
        is_gone (p);
}

int pspeer_flush (struct ps_server *s, struct ps_peer *p)
{
    while (p->out_sent < p->out_size) {
        size_t head = sizeof (p->out);
        size_t at = p->out_sent < head ? p->out_sent : head;
        size_t body = p->out_sent - at;
        struct iovec v[2] = {
            { (char *)&p->out + at, head - at },
            { p->out.bytes ? (void *)(uintptr_t)(p->out_body + body) : NULL,
              p->out.bytes - body },
        };
        struct msghdr m = { .msg_iov = v, .msg_iovlen = p->out.bytes ? 2 : 1 };
        ssize_t n = sendmsg (p->fd, &m, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : is_gone (p);
        p->out_sent += (size_t)n;
        s->ps->stats.bytes_out += (uint64_t)n;
    }
    return p->close_after ? -1 : 0;
}

/* The answer of PS_HELD is not sent. */
static int do_request (struct ps_server *s, struct ps_peer *p)
{
    struct slurmdl_error why = { "" };

    if (!p->known && p->in.kind != PS_HELLO)
        return -1; /* another process is this worker now */
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
    return pspeer_flush (s, p);
}

/* Whether the header may be followed by its body. */
static int check_header (const struct ps_peer *p)
{
    const struct ps_header *h = &p->in;

    if (h->magic != PS_MAGIC)
        return -1;
    if (h->version != PS_VERSION || !p->known || h->kind <= PS_HELLO
        || h->kind >= PS_KINDS)
        return -1;
    if (h->clock < 0 || h->bytes > 2 * (uint64_t)PS_ROWS_BYTES_MAX)
        return -1;
    return 0;
}

static int make_body (struct ps_peer *p)
{
    size_t n = p->in.bytes < 4096 ? 4096 : p->in.bytes;

    if (n <= p->body_room)
        return 0;
    free (p->body);
    p->body_room = 0;
    if (!(p->body = malloc (n)))
        return -1;
    p->body_room = n;
    return 0;
}

/* One piece of what is there; 1: more may be, 0: no more, -1: it is gone. */
static int read_some (struct ps_server *s, struct ps_peer *p)
{
    size_t head = sizeof (p->in);
    ssize_t n;

    if (p->in_got < head)
        n = recv (p->fd, (char *)&p->in + p->in_got, head - p->in_got, 0);
    else
        n = recv (p->fd,
                  p->body + (p->in_got - head),
                  head + p->in.bytes - p->in_got,
                  0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : is_gone (p);
    if (n == 0)
        return -1;
    s->ps->stats.bytes_in += (uint64_t)n;
    p->in_got += (size_t)n;
    if (p->in_got - (size_t)n < head && p->in_got == head) {
        if (check_header (p) < 0 || make_body (p) < 0)
            return -1;
    }
    return 1;
}

static bool is_whole (const struct ps_peer *p)
{
    return p->in_got >= sizeof (p->in)
           && p->in_got == sizeof (p->in) + p->in.bytes;
}

bool pspeer_is_writing (const struct ps_peer *p)
{
    return p->out_sent < p->out_size;
}

/* As many requests as fit into a turn. */
int pspeer_serve (struct ps_server *s, struct ps_peer *p)
{
    int rv;

    for (int turn = 0; turn < 64 && !p->held && !pspeer_is_writing (p);
         turn++) {
        if (!is_whole (p) && (rv = read_some (s, p)) <= 0)
            return rv;
        if (is_whole (p) && do_request (s, p) < 0)
            return -1;
    }
    return 0;
}

void pspeer_drop (struct ps_server *s, size_t i)
{
    struct ps_peer *p = &s->peers[i];

    if (p->known)
        psworkers_disconnected (s, p->worker, p->silent);
    close (p->fd);
    free (p->body);
    free (p->out_own);
    *p = s->peers[--s->npeers];
}

/* Its answer, or nothing, goes out; -1: it is gone. */
static int say_hello (struct ps_server *s,
                      struct ps_peer *p,
                      const struct listener_arrival *a)
{
    char why[128];

    p->in = (struct ps_header){ .magic = PS_MAGIC,
                                .version = PS_VERSION,
                                .kind = PS_HELLO,
                                .bytes = a->length };
    if (a->version == PS_VERSION)
        return a->length == sizeof (struct ps_hello) ? do_request (s, p) : -1;
    snprintf (why,
              sizeof (why),
              "it speaks version %d of the protocol: start all processes with "
              "the same libslurmdl",
              PS_VERSION);
    psanswer_error (p, EPROTO, why);
    p->close_after = true;
    return pspeer_flush (s, p);
}

static struct ps_peer *add_peer (struct ps_server *s)
{
    struct ps_peer *more = array_grow (s->peers, s->npeers, sizeof (*more));

    if (!more)
        return NULL;
    s->peers = more;
    return memset (&more[s->npeers++], 0, sizeof (*more));
}

void pspeers_accept (struct ps_server *s)
{
    struct listener_arrival a;
    struct ps_peer *p;

    while (listener_take (&s->listener, &a)) {
        if (!(p = add_peer (s))) {
            close (a.fd);
            free (a.body);
            continue;
        }
        pswire_tune (a.fd, s->ps->grace);
        p->fd = a.fd;
        p->body = (unsigned char *)a.body;
        p->body_room = a.length;
        if (say_hello (s, p, &a) < 0)
            pspeer_drop (s, s->npeers - 1);
    }
}

static bool is_late (struct ps_server *s, struct ps_peer *p)
{
    return p->silent = pswire_is_dead (p->fd, s->ps->grace, &p->pulse);
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
    pspeer_flush (s, p);
}

/* What was held may go on after what others have done. */
void pspeers_retry (struct ps_server *s)
{
    for (size_t i = s->npeers; i-- > 0;)
        if (s->peers[i].held && do_request (s, &s->peers[i]) < 0)
            pspeer_drop (s, i);
}

void pspeers_tick (struct ps_server *s)
{
    for (size_t i = s->npeers; i-- > 0;) {
        answer_late (s, &s->peers[i]);
        if (is_late (s, &s->peers[i])
            || (s->peers[i].close_after && !pspeer_is_writing (&s->peers[i])))
            pspeer_drop (s, i);
    }
}
