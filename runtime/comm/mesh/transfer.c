/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two ranks: non-blocking in both directions at once. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mesh/channel.h"

/* One direction of an exchange. */
struct side {
    long peer; /* -1: done */
    int fd;    /* -1: not there yet */
    struct mesh_head head;
    struct iovec data[2];
    size_t n, done; /* 'done' counts the head too */
};

struct mesh_transfer {
    struct mesh *m;
    const struct mesh_sendrecv *t;
    struct side out, in;
    size_t reduced, kept; /* bytes that came, and were not reduced yet */
    double began, until, spin;
    bool slept;
    unsigned seconds;
    struct slurmdl_error *err;
};

/* What is moved at once stays in a core's cache. */
enum { HEAD = sizeof (struct mesh_head), AT_ONCE = 256 * 1024, SPIN_US = 30 };

/* for our listener to take a connection that is there */
static const double LISTENER_SECONDS = 1;

/* What is still to be moved, at most AT_ONCE bytes. */
static int rest (struct side *s, struct iovec *v)
{
    struct iovec all[3] = { { &s->head, HEAD }, s->data[0], s->data[1] };
    size_t skip = s->done;
    size_t left = AT_ONCE;
    int n = 0;

    for (int i = 0; i < 3 && left > 0; i++) {
        size_t cut = skip < all[i].iov_len ? skip : all[i].iov_len;
        size_t len = all[i].iov_len - cut;
        skip -= cut;
        len = len < left ? len : left;
        left -= len;
        if (len > 0)
            v[n++] = (struct iovec){ (char *)all[i].iov_base + cut, len };
    }
    return n;
}

/* 1: something was moved, 0: not now, -1: failed. */
static int push (struct mesh_transfer *x)
{
    struct side *s = &x->out;
    struct iovec v[3];
    struct msghdr h = { .msg_iov = v };
    ssize_t n;

    h.msg_iovlen = (size_t)rest (s, v);
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

static int differs (struct mesh_transfer *x)
{
    const struct side *s = &x->in;

    if (s->head.tag != atomic_load (&x->m->root->tag))
        return mesh_clash (x->m, s->peer, s->head.tag, x->err);
    return mesh_fail (x->m,
                      EPROTO,
                      x->err,
                      "rank %ld on %s sends %llu bytes, rank %ld expects %zu: "
                      "the sizes of the same call differ",
                      mesh_world_rank (x->m, s->peer),
                      mesh_host (x->m, s->peer),
                      (unsigned long long)s->head.size,
                      x->m->endpoint->rank,
                      s->n);
}

static int check_head (struct mesh_transfer *x)
{
    const struct side *s = &x->in;

    if (s->head.magic == HEAD_MESSAGE
        && s->head.tag == atomic_load (&x->m->root->tag)
        && s->head.size == s->n)
        return 0;
    if (s->head.magic == HEAD_MESSAGE)
        return differs (x);
    return mesh_fail (x->m,
                      ECONNRESET,
                      x->err,
                      "rank %ld on %s has closed its communicator",
                      mesh_world_rank (x->m, s->peer),
                      mesh_host (x->m, s->peer));
}

/* Where the next bytes go if they are reduced: behind those of an element that
 * has not come whole. */
static int rest_to_reduce (struct mesh_transfer *x, struct iovec *v)
{
    struct side *s = &x->in;
    size_t came = s->done > HEAD ? s->done - HEAD : 0;
    size_t room = AT_ONCE - x->kept;
    int n = 0;

    if (s->done < HEAD)
        v[n++] = (struct iovec){ (char *)&s->head + s->done, HEAD - s->done };
    if (room > s->n - came)
        room = s->n - came;
    if (room > 0)
        v[n++] = (struct iovec){ x->m->buffer + x->kept, room };
    return n;
}

static void reduce_some (struct mesh_transfer *x)
{
    size_t came = x->in.done > HEAD ? x->in.done - HEAD : 0;
    size_t have = came - x->reduced;
    size_t whole = have - have % x->t->grain;

    if (whole > 0)
        x->t->reduce (x->t->arg, x->reduced, x->m->buffer, whole);
    x->kept = have - whole;
    if (x->kept > 0 && whole > 0)
        memmove (x->m->buffer, x->m->buffer + whole, x->kept);
    x->reduced += whole;
}

static int pull (struct mesh_transfer *x)
{
    struct side *s = &x->in;
    struct iovec v[3];
    struct msghdr h = { .msg_iov = v };
    bool begun = s->done >= HEAD;
    ssize_t n;

    h.msg_iovlen = (size_t)(x->t->reduce ? rest_to_reduce (x, v) : rest (s, v));
    n = recvmsg (s->fd, &h, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return mesh_lost (x->m, s->peer, x->err);
    s->done += (size_t)n;
    if (!begun && s->done >= HEAD && check_head (x) < 0)
        return -1;
    if (x->t->reduce)
        reduce_some (x);
    if (s->done == HEAD + s->n)
        s->peer = -1;
    return 1;
}

static void listener_said (struct mesh *m)
{
    eventfd_t value;

    eventfd_read (m->event, &value);
}

static long awaited (const struct mesh_transfer *x)
{
    return x->in.peer >= 0 ? x->in.peer : x->out.peer;
}

/* One that has closed may have connected before, and sent all that we wait
 * for: our listener is about to say so.
 */
static int await_link (struct mesh_transfer *x)
{
    struct mesh *m = x->m;
    struct pollfd p = { .fd = m->event, .events = POLLIN };
    double until = monotonic () + LISTENER_SECONDS;

    for (;;) {
        x->in.fd = atomic_load (&m->links[x->in.peer].in);
        if (x->in.fd >= 0)
            return 0;
        if (atomic_load (&m->aborted))
            return mesh_usable (m, x->err);
        if (monotonic () > until)
            return mesh_lost (m, x->in.peer, x->err);
        poll (&p, 1, 20);
        listener_said (m);
    }
}

/* A rank that has not connected is looked for, to know whether it lives. */
static int look_for (struct mesh_transfer *x)
{
    int rv;

    if (x->in.peer < 0 || x->in.fd >= 0 || monotonic () < x->began + 0.05)
        return 0;
    rv = mesh_look_for (x->m, x->in.peer, x->err);
    return rv > 0 ? await_link (x) : rv;
}

/* Whether the one we wait for has closed our connection to it. */
static int check_hangup (struct mesh_transfer *x, const struct pollfd *p)
{
    if (x->in.peer >= 0 && x->in.fd < 0 && p[3].revents && await_link (x) < 0)
        return -1;
    if (x->out.peer >= 0 && (p[1].revents & (POLLERR | POLLHUP | POLLRDHUP)))
        return mesh_lost (x->m, x->out.peer, x->err);
    return 0;
}

/* Of a rank that has not connected, our own connection to it tells. */
static int check_hosts (struct mesh_transfer *x)
{
    struct mesh *m = x->m;
    const struct side *in = &x->in;
    int fd = in->fd;

    if (in->peer >= 0 && fd < 0)
        fd = atomic_load (&m->links[in->peer].out);
    if (in->peer >= 0 && mesh_is_unreachable (m, in->peer, fd))
        return mesh_lost (m, in->peer, x->err);
    if (x->out.peer >= 0 && mesh_is_unreachable (m, x->out.peer, x->out.fd))
        return mesh_lost (m, x->out.peer, x->err);
    return 0;
}

/* A second has passed; the first four, and now and then later. */
static int look_around (struct mesh_transfer *x)
{
    unsigned n = x->seconds++;

    if (check_hosts (x) < 0)
        return -1;
    if (x->in.peer >= 0 && (n < 4 || n % 16 == 0)
        && mesh_check_call (x->m, x->in.peer, x->err) < 0)
        return -1;
    if (monotonic () > x->until)
        return mesh_timed_out (x->m, awaited (x), x->err);
    return 0;
}

static int sleep_on (struct mesh_transfer *x)
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
    mesh_set_waits (m, awaited (x));
    x->slept = true;
    if (poll (p, 4, ms) <= 0)
        return look_around (x);
    if (p[0].revents)
        listener_said (m);
    if (atomic_load (&m->aborted))
        return mesh_usable (m, x->err);
    return check_hangup (x, p);
}

/* To look again at once is faster than to sleep where the peer is about to
 * answer, and a waste where it is not. */
static bool spins (struct mesh_transfer *x, double now)
{
    struct mesh *m = x->m;

    if (!m->may_spin || (m->missed > 8 && m->missed % 64))
        return false;
    if (x->spin == 0)
        x->spin = now + SPIN_US * 1e-6;
    return now < x->spin;
}

/* Nothing can be moved now. */
static int rest_a_while (struct mesh_transfer *x)
{
    double now = monotonic ();

    if (x->until == 0)
        x->until = now + x->m->timeout;
    if (spins (x, now))
        return 0;
    x->m->missed++;
    return sleep_on (x);
}

/* Something was moved. */
static void refresh (struct mesh_transfer *x)
{
    if (x->spin > 0 && monotonic () < x->spin)
        x->m->missed = 0;
    x->until = x->spin = 0;
}

static int move (struct mesh_transfer *x)
{
    int out = 0;
    int in = 0;

    if (x->in.peer >= 0 && x->in.fd < 0)
        x->in.fd = atomic_load (&x->m->links[x->in.peer].in);
    if (x->out.peer >= 0)
        out = push (x);
    if (out >= 0 && x->in.peer >= 0 && x->in.fd >= 0)
        in = pull (x);
    return out < 0 || in < 0 ? -1 : out + in;
}

static int run (struct mesh_transfer *x)
{
    while (x->out.peer >= 0 || x->in.peer >= 0) {
        int moved = move (x);
        if (moved < 0)
            return -1;
        if (moved)
            refresh (x);
        else if (rest_a_while (x) < 0)
            return -1;
    }
    if (x->slept)
        mesh_set_waits (x->m, -1);
    return 0;
}

static size_t both (const struct iovec *v)
{
    return v[0].iov_len + v[1].iov_len;
}

/* What a rank sends to itself. */
static int to_self (struct mesh *m, const struct mesh_sendrecv *t)
{
    size_t n = t->in[0].iov_len;

    (void)m;
    if (n > 0)
        memmove (t->in[0].iov_base, t->out[0].iov_base, n);
    return 0;
}

int mesh_sendrecv (struct mesh *m,
                   const struct mesh_sendrecv *t,
                   struct slurmdl_error *err)
{
    struct mesh_transfer x = { .m = m, .t = t, .err = err };

    if (mesh_usable (m, err) < 0)
        return -1;
    if (t->to == m->rank && t->from == m->rank)
        return to_self (m, t);
    if (t->reduce && !m->buffer && !(m->buffer = malloc (AT_ONCE)))
        return mesh_fail (m, ENOMEM, err, "out of memory");
    x.out = (struct side){
        t->to,
        -1,
        { HEAD_MESSAGE, atomic_load (&m->root->tag), both (t->out) },
        { t->out[0], t->out[1] },
        both (t->out),
        0
    };
    x.in = (struct side){ t->from,
                          -1,
                          { 0 },
                          { t->in[0], t->in[1] },
                          t->reduce ? t->reduce_n : both (t->in),
                          0 };
    x.began = monotonic ();
    if (t->to >= 0 && (x.out.fd = mesh_dial (m, t->to, err)) < 0)
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
    struct mesh_sendrecv t = { .to = to,
                               .from = from,
                               .out = { { (void *)out, nout } },
                               .in = { { in, nin } } };

    return mesh_sendrecv (m, &t, err);
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
