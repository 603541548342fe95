/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange small messages over the tree of ranks that have met. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/socket.h"

struct boot_exchange {
    struct boot_tree *t;
    size_t bytes;
    size_t record; /* a rank's number and its bytes */
    size_t most;   /* of a message */
    char *all;
    bool *missing;
    long left; /* of the ranks below this one */
    bool done; /* 'all' is whole */
    struct pollfd *poll;
};

void boot_tree_tell (struct boot_tree *t, const struct boot_peer *but, int error, const char *why)
{
    double deadline = monotonic () + 1;
    char body[BOOT_TEXT];
    int32_t code = error;
    size_t n = strlen (why);

    memcpy (body, &code, sizeof (code));
    if (n > sizeof (body) - sizeof (code))
        n = sizeof (body) - sizeof (code);
    memcpy (body + sizeof (code), why, n);
    n += sizeof (code);
    if (t->parent.stream.fd >= 0 && but != &t->parent)
        net_stream_send (&t->parent.stream, BOOT_FAILED, body, n, deadline);
    for (long i = 0; i < t->nchildren; i++)
        if (t->children[i].stream.fd >= 0 && but != &t->children[i])
            net_stream_send (&t->children[i].stream, BOOT_FAILED, body, n, deadline);
}

static void drain (struct boot_peer *p, double deadline)
{
    char byte[4096];

    if (p->stream.fd < 0)
        return;
    shutdown (p->stream.fd, SHUT_WR);
    while (socket_recv (p->stream.fd, byte, sizeof (byte), deadline) == 0)
        continue;
}

void boot_tree_drain (struct boot_tree *t)
{
    double deadline = monotonic () + 1;

    drain (&t->parent, deadline);
    for (long i = 0; i < t->nchildren; i++)
        drain (&t->children[i], deadline);
}

const char *boot_tree_reason (const struct net_stream *w)
{
    int32_t code;

    errno = EPROTO;
    if (w->head.length < sizeof (code))
        return "no reason";
    memcpy (&code, w->body, sizeof (code));
    errno = code > 0 ? code : EPROTO;
    return w->head.length > sizeof (code) && w->body[sizeof (code)]
               ? clean_text (w->body + sizeof (code))
               : "no reason";
}

/* After an error all later exchanges fail in the same way. */
static int fail (struct boot_tree *t, const struct boot_peer *from, int error)
{
    boot_tree_tell (t, from, error, t->why.text);
    t->broken = true;
    errno = error;
    return -1;
}

int boot_say_altered (const struct boot_peer *from, struct slurmdl_error *err)
{
    errno = EBADMSG;
    return errorf (err,
                   "what rank %ld (%s) sent was altered on its way (wrong MAC): "
                   "the connection is ended",
                   from->rank, *from->host ? from->host : from->from);
}

static int lost (struct boot_exchange *x, struct boot_peer *p)
{
    int error = errno;

    if (error == EBADMSG)
        boot_say_altered (p, &x->t->why);
    else if (error == EPROTO)
        errorf (&x->t->why, "rank %ld (%s) is in another exchange", p->rank, p->host);
    else
        errorf (&x->t->why, "rank %ld (%s) has ended or lost its connection", p->rank, p->host);
    return fail (x->t, error == EPROTO ? NULL : p, error);
}

static int take_gathered (struct boot_exchange *x, struct boot_peer *p)
{
    size_t n = p->stream.head.length / x->record;
    const char *from = p->stream.body;
    uint32_t rank;

    for (size_t i = 0; i < n; i++, from += x->record) {
        memcpy (&rank, from, sizeof (rank));
        if (rank >= x->t->size || !x->missing[rank])
            goto wrong;
        memcpy (x->all + rank * x->bytes, from + sizeof (rank), x->bytes);
        x->missing[rank] = false;
        x->left--;
    }
    if (n * x->record == p->stream.head.length)
        return 0;
wrong:
    errno = EPROTO;
    return lost (x, p);
}

static int take_message (struct boot_exchange *x, struct boot_peer *p)
{
    int rv = net_stream_read (&p->stream, x->most);

    if (rv <= 0)
        return rv < 0 ? lost (x, p) : 0;
    if (p->stream.head.kind == BOOT_FAILED) {
        errorf (&x->t->why, "%s", boot_tree_reason (&p->stream));
        return fail (x->t, p, errno);
    }
    if (p->stream.head.kind == BOOT_GATHER && p != &x->t->parent) {
        if (take_gathered (x, p) < 0)
            return -1;
    } else if (p->stream.head.kind == BOOT_ALL && p == &x->t->parent
               && p->stream.head.length == (size_t)x->t->size * x->bytes) {
        memcpy (x->all, p->stream.body, p->stream.head.length);
        x->done = true;
    } else {
        errno = EPROTO;
        return lost (x, p);
    }
    net_stream_next (&p->stream);
    return 0;
}

static int poll_peers (struct boot_exchange *x, double deadline)
{
    struct boot_tree *t = x->t;
    int n;

    x->poll[0] = (struct pollfd){ .fd = t->parent.stream.fd, .events = POLLIN };
    for (long i = 0; i < t->nchildren; i++)
        x->poll[i + 1] = (struct pollfd){ .fd = t->children[i].stream.fd, .events = POLLIN };
    do
        n = poll (x->poll, (nfds_t)t->nchildren + 1, socket_left (deadline));
    while (n < 0 && errno == EINTR);
    return n;
}

static struct boot_peer *peer_at (struct boot_tree *t, long i)
{
    return i == 0 ? &t->parent : &t->children[i - 1];
}

/* Returns 1: there was something, 0: the deadline has passed. */
static int step (struct boot_exchange *x, double deadline)
{
    int n = poll_peers (x, deadline);

    if (n < 0) {
        errorf (&x->t->why, "poll: %s", strerror (errno));
        return fail (x->t, NULL, errno);
    }
    for (long i = 0; n > 0 && i <= x->t->nchildren; i++)
        if (x->poll[i].revents && take_message (x, peer_at (x->t, i)) < 0)
            return -1;
    return n > 0 || monotonic () < deadline;
}

static int send_up (struct boot_exchange *x, double deadline)
{
    struct boot_tree *t = x->t;
    char *body, *to;
    size_t n = 0;
    int rv;

    for (long r = 0; r < t->size; r++)
        n += !x->missing[r];
    if (!(body = to = malloc (n * x->record + 1))) {
        errorf (&t->why, "rank %ld: %s", t->rank, strerror (errno));
        return fail (t, NULL, ENOMEM);
    }
    for (uint32_t r = 0; r < t->size; r++) {
        if (x->missing[r])
            continue;
        memcpy (to, &r, sizeof (r));
        memcpy (to + sizeof (r), x->all + r * x->bytes, x->bytes);
        to += x->record;
    }
    rv = net_stream_send (&t->parent.stream, BOOT_GATHER, body, n * x->record, deadline);
    free (body);
    return rv < 0 ? lost (x, &t->parent) : 0;
}

static int send_down (struct boot_exchange *x, double deadline)
{
    struct boot_tree *t = x->t;

    for (long i = 0; i < t->nchildren; i++)
        if (net_stream_send (&t->children[i].stream, BOOT_ALL, x->all, (size_t)t->size * x->bytes,
                             deadline)
            < 0)
            return lost (x, &t->children[i]);
    return 0;
}

static int say_late (struct boot_exchange *x)
{
    struct boot_tree *t = x->t;
    char names[160];

    boot_name_ranks (names, sizeof (names), x->missing, t->size, t->layout);
    errorf (&t->why, "rank %ld has waited for %g s for an exchange with %s", t->rank, t->timeout,
            names);
    return fail (t, NULL, ETIMEDOUT);
}

static int run (struct boot_exchange *x)
{
    struct boot_tree *t = x->t;
    double deadline = monotonic () + t->timeout;
    double slack = 2;
    int rv = 1;

    while (x->left > 0 && rv == 1)
        rv = step (x, deadline);
    if (rv < 0)
        return -1;
    if (t->rank == 0)
        return x->left > 0 ? say_late (x) : send_down (x, deadline + slack);
    if (send_up (x, deadline + slack) < 0)
        return -1;
    for (rv = 1; !x->done && rv == 1;)
        rv = step (x, deadline + slack);
    if (rv < 0)
        return -1;
    if (!x->done) {
        memset (x->missing, 0, (size_t)t->size * sizeof (*x->missing));
        x->missing[0] = true;
        return say_late (x);
    }
    return send_down (x, deadline + slack);
}

static int prepare (struct boot_exchange *x, const void *mine)
{
    struct boot_tree *t = x->t;
    size_t size = (size_t)t->size;

    x->missing = malloc (size * sizeof (*x->missing));
    x->poll = malloc ((size_t)(t->nchildren + 1) * sizeof (*x->poll));
    if (!x->missing || !x->poll)
        return -1;
    memset (x->missing, 1, size * sizeof (*x->missing));
    x->missing[t->rank] = false;
    memcpy (x->all + (size_t)t->rank * x->bytes, mine, x->bytes);
    x->record = sizeof (uint32_t) + x->bytes;
    x->most = size * x->record + BOOT_TEXT;
    for (long i = 0; i < t->nchildren; i++)
        x->left += t->children[i].nranks;
    return 0;
}

int boot_tree_allgather (struct boot_tree *t, const void *mine, size_t bytes, void *all,
                         struct slurmdl_error *err)
{
    struct boot_exchange x = { .t = t, .bytes = bytes, .all = all };
    int rv = -1;

    if (t->broken) {
        errno = ENOTCONN;
        return errorf (err, "%s", t->why.text);
    }
    if (prepare (&x, mine) < 0)
        errorf (err, "rank %ld: %s", t->rank, strerror (errno));
    else if ((rv = run (&x)) < 0)
        errorf (err, "%s", t->why.text);
    free (x.missing);
    free (x.poll);
    return rv;
}
