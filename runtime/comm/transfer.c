/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two ranks: non-blocking in both directions at once. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/clock.h"
#include "runtime/comm/channel.h"

/* One direction of an exchange. */
struct side {
    long peer; /* -1: done */
    int fd;    /* -1: not there yet */
    struct head head;
    char *data;
    size_t n, done; /* 'done' counts the head too */
};

struct exchange {
    struct mesh *m;
    struct side out, in;
    size_t grain, told;
    mesh_part_f f;
    void *arg;
    double began, until;
    struct slurmdl_error *err;
};

enum { HEAD = sizeof (struct head) };

static int pieces (const struct side *s, struct iovec *v)
{
    int n = 0;

    if (s->done < HEAD)
        v[n++] = (struct iovec){ (char *)&s->head + s->done, HEAD - s->done };
    if (s->n > 0) {
        size_t at = s->done < HEAD ? 0 : s->done - HEAD;
        v[n++] = (struct iovec){ s->data + at, s->n - at };
    }
    return n;
}

/* 1: something was moved, 0: not now, -1: failed. */
static int push (struct exchange *x)
{
    struct side *s = &x->out;
    struct iovec v[2];
    struct msghdr h = { .msg_iov = v };
    ssize_t n;

    h.msg_iovlen = (size_t)pieces (s, v);
    n = sendmsg (s->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR
                   ? 0
                   : mesh_lost (x->m, s->peer, x->err);
    s->done += (size_t)n;
    if (s->done == HEAD + s->n)
        s->peer = -1;
    return 1;
}

static int check_head (struct exchange *x)
{
    const struct side *s = &x->in;
    const char *host = mesh_host (x->m, s->peer);

    if (s->head.magic == HEAD_BYE)
        return mesh_fail (x->m,
                          ECONNRESET,
                          x->err,
                          "rank %ld on %s has closed its communicator",
                          s->peer,
                          host);
    if (s->head.magic == HEAD_MESSAGE && s->head.tag == x->m->tag
        && s->head.size == s->n)
        return 0;
    return mesh_fail (x->m,
                      EPROTO,
                      x->err,
                      "rank %ld on %s calls another collective than rank %ld, "
                      "or with another size: %llu bytes, not %zu",
                      s->peer,
                      host,
                      x->m->rank,
                      (unsigned long long)s->head.size,
                      s->n);
}

static void tell_parts (struct exchange *x)
{
    size_t have = x->in.done > HEAD ? x->in.done - HEAD : 0;
    size_t n = have - x->told;

    if (!x->f || n == 0)
        return;
    if (have < x->in.n)
        n -= n % x->grain;
    if (n > 0)
        x->f (x->arg, x->told, n);
    x->told += n;
}

static int pull (struct exchange *x)
{
    struct side *s = &x->in;
    struct iovec v[2];
    bool whole = s->done >= HEAD;
    ssize_t n = readv (s->fd, v, pieces (s, v));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return mesh_lost (x->m, s->peer, x->err);
    s->done += (size_t)n;
    if (!whole && s->done >= HEAD && check_head (x) < 0)
        return -1;
    tell_parts (x);
    if (s->done == HEAD + s->n)
        s->peer = -1;
    return 1;
}

static void listener_said (struct mesh *m)
{
    eventfd_t value;

    eventfd_read (m->event, &value);
}

/* A rank that has not connected is looked for, to know whether it lives. */
static int look_for (struct exchange *x)
{
    if (x->in.peer < 0 || x->in.fd >= 0 || monotonic () < x->began + 0.05)
        return 0;
    return mesh_dial (x->m, x->in.peer, x->err) < 0 ? -1 : 0;
}

static long awaited (const struct exchange *x)
{
    return x->in.peer >= 0 ? x->in.peer : x->out.peer;
}

/* Whether the one we wait for has closed our connection to it. */
static int check_hangup (struct exchange *x, const struct pollfd *p)
{
    if (x->in.peer >= 0 && x->in.fd < 0 && p[3].revents) {
        x->in.fd = atomic_load (&x->m->links[x->in.peer].in);
        if (x->in.fd < 0)
            return mesh_lost (x->m, x->in.peer, x->err);
    }
    if (x->out.peer >= 0 && (p[1].revents & (POLLERR | POLLHUP | POLLRDHUP)))
        return mesh_lost (x->m, x->out.peer, x->err);
    return 0;
}

static int sleep_on (struct exchange *x)
{
    struct mesh *m = x->m;
    struct pollfd p[4];
    int ms = 1000;

    if (look_for (x) < 0)
        return -1;
    p[0] = (struct pollfd){ .fd = m->event, .events = POLLIN };
    p[1] = (struct pollfd){ .fd = x->out.peer >= 0 ? x->out.fd : -1,
                            .events = POLLOUT | POLLRDHUP };
    p[2] = (struct pollfd){ .fd = x->in.peer >= 0 ? x->in.fd : -1,
                            .events = POLLIN };
    p[3] = (struct pollfd){ .fd = -1, .events = POLLRDHUP };
    if (x->in.peer >= 0 && x->in.fd < 0) {
        p[3].fd = m->links[x->in.peer].out;
        ms = p[3].fd < 0 ? 50 : 1000;
    }
    atomic_store (&m->waits, awaited (x));
    if (poll (p, 4, ms) <= 0)
        return monotonic () > x->until ? mesh_late (m, awaited (x), x->err) : 0;
    if (p[0].revents)
        listener_said (m);
    if (atomic_load (&m->aborted))
        return mesh_usable (m, x->err);
    return check_hangup (x, p);
}

static int run (struct exchange *x)
{
    while (x->out.peer >= 0 || x->in.peer >= 0) {
        int moved = 0;
        int n;
        if (x->in.peer >= 0 && x->in.fd < 0)
            x->in.fd = atomic_load (&x->m->links[x->in.peer].in);
        if (x->out.peer >= 0 && (n = push (x)) != 0)
            moved += n;
        if (moved < 0)
            return -1;
        if (x->in.peer >= 0 && x->in.fd >= 0) {
            if ((n = pull (x)) < 0)
                return -1;
            moved += n;
        }
        if (moved)
            x->until = 0;
        else if (x->until == 0)
            x->until = monotonic () + x->m->timeout;
        if (!moved && sleep_on (x) < 0)
            return -1;
    }
    atomic_store (&x->m->waits, -1);
    return 0;
}

int mesh_exchange_parts (struct mesh *m,
                         long to,
                         const void *out,
                         size_t nout,
                         long from,
                         void *in,
                         size_t nin,
                         size_t grain,
                         mesh_part_f f,
                         void *arg,
                         struct slurmdl_error *err)
{
    struct exchange x = { .m = m,
                          .out = { to, -1, { 0 }, (void *)out, nout, 0 },
                          .in = { from, -1, { 0 }, in, nin, 0 },
                          .grain = grain ? grain : 1,
                          .f = f,
                          .arg = arg,
                          .err = err };

    if (mesh_usable (m, err) < 0)
        return -1;
    if (to == m->rank && from == m->rank) {
        memmove (in, out, nin < nout ? nin : nout);
        if (f && nin)
            f (arg, 0, nin);
        return 0;
    }
    x.out.head = (struct head){ HEAD_MESSAGE, m->tag, nout };
    x.began = monotonic ();
    atomic_store (&m->since, x.began);
    if (to >= 0 && (x.out.fd = mesh_dial (m, to, err)) < 0)
        return -1;
    return run (&x);
}

int mesh_exchange (struct mesh *m,
                   long to,
                   const void *out,
                   size_t nout,
                   long from,
                   void *in,
                   size_t nin,
                   struct slurmdl_error *err)
{
    return mesh_exchange_parts (
        m, to, out, nout, from, in, nin, 1, NULL, NULL, err);
}

int mesh_send (struct mesh *m,
               long to,
               const void *data,
               size_t n,
               struct slurmdl_error *err)
{
    return mesh_exchange (m, to, data, n, -1, NULL, 0, err);
}

int mesh_recv (
    struct mesh *m, long from, void *data, size_t n, struct slurmdl_error *err)
{
    return mesh_exchange (m, -1, NULL, 0, from, data, n, err);
}
