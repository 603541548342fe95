/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange small messages along the tree of ranks. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/socket.h"

/* The ranks that have arrived get places 1 to n in the order of ranks; rank 0 has
 * place 0.  The children of place i start at BOOT_FANOUT * i + 1.
 */
struct boot_plan {
    struct boot_tree *t;
    const struct boot_place *p;
    long n;
    uint32_t *below; /* number of ranks at and below a place */
    char *message;
};

static long tree_parent (long place)
{
    return (place - 1) / BOOT_FANOUT;
}

static int fail_lost_peer (const struct boot_peer *p, struct slurmdl_error *err)
{
    return errorf (err, "rank %ld (%s) has ended or lost its connection", p->rank, p->host);
}

/* The peer's address, or "" if it is on the machine of rank 0: others then use the
 * address of rank 0.
 */
static const char *peer_address (const struct boot_peer *p)
{
    return !strncmp (p->from, "127.", 4) || !strcmp (p->from, "::1") ? "" : p->from;
}

static size_t compose_plan (struct boot_plan *x, long place)
{
    const struct boot_peer *peers = x->t->children - 1;
    struct boot_welcome w = { .parent = -1 };
    struct boot_child c;
    size_t n = sizeof (w);

    snprintf (w.host, sizeof (w.host), "%s", x->p->own);
    if (x->n > BOOT_STAR && tree_parent (place) > 0) {
        const struct boot_peer *parent = &peers[tree_parent (place)];
        w.parent = parent->rank;
        w.parent_port = parent->port;
        memcpy (w.parent_host, parent->host, sizeof (w.parent_host));
        snprintf (w.parent_from, sizeof (w.parent_from), "%s", peer_address (parent));
    }
    for (long i = BOOT_FANOUT * place + 1;
         x->n > BOOT_STAR && i <= x->n && tree_parent (i) == place; i++, w.nchildren++) {
        c.rank = (uint32_t)peers[i].rank;
        c.nranks = x->below[i];
        memcpy (x->message + n, &c, sizeof (c));
        n += sizeof (c);
    }
    memcpy (x->message, &w, sizeof (w));
    return n;
}

static int send_plan (struct boot_plan *x, struct slurmdl_error *err)
{
    double deadline = monotonic () + x->t->timeout;

    for (long i = 1; i <= x->n; i++) {
        struct boot_peer *p = &x->t->children[i - 1];
        size_t n = compose_plan (x, i);
        if (net_stream_send (&p->stream, BOOT_WELCOME, x->message, n, deadline) < 0)
            return fail_lost_peer (p, err);
    }
    return 0;
}

/* Keep only our own children; the others have different parents now. */
static void keep_children (struct boot_plan *x)
{
    struct boot_tree *t = x->t;

    if (x->n <= BOOT_STAR)
        return;
    for (long i = BOOT_FANOUT; i < t->nchildren; i++)
        boot_peer_close (&t->children[i]);
    t->nchildren = BOOT_FANOUT;
    for (long i = 0; i < t->nchildren; i++)
        t->children[i].nranks = x->below[i + 1];
}

int boot_tree_build (struct boot_tree *t, const struct boot_place *p, struct slurmdl_error *err)
{
    struct boot_plan x = { .t = t, .p = p, .n = t->nchildren };
    int rv = -1;

    x.below = calloc ((size_t)x.n + 1, sizeof (*x.below));
    x.message = malloc (sizeof (struct boot_welcome) + BOOT_FANOUT * sizeof (struct boot_child));
    if (!x.below || !x.message)
        goto out;
    for (long i = x.n; i > 0; i--) {
        x.below[i] += (uint32_t)t->children[i - 1].nranks;
        x.below[tree_parent (i)] += x.below[i];
    }
    rv = send_plan (&x, err);
    if (rv == 0)
        keep_children (&x);
out:
    free (x.below);
    free (x.message);
    return rv;
}

static int go_to_parent (struct boot_tree *t, const struct boot_place *p,
                         const struct boot_welcome *w, struct slurmdl_error *err)
{
    double deadline = monotonic () + p->timeout;
    const char *at = *w->parent_from ? w->parent_from : t->parent.from;
    int fd = socket_connect (at, w->parent_port, deadline);
    struct boot_peer parent;

    if (fd < 0)
        return errorf (err, "rank %ld (%s) cannot reach rank %ld (%s) at %s:%d: %s", p->rank,
                       p->own, (long)w->parent, w->parent_host, at, w->parent_port,
                       strerror (errno));
    boot_peer_init (&parent, fd, NULL);
    parent.rank = w->parent;
    memcpy (parent.host, w->parent_host, sizeof (parent.host));
    boot_peer_close (&t->parent);
    t->parent = parent;
    return boot_introduce (t, p, 0, true, deadline) < 0 ? fail_lost_peer (&t->parent, err) : 0;
}

/* Accept the children that rank 0 has announced, with the number of ranks that each
 * represents.
 */
static int receive_children (struct boot_tree *t, const struct boot_place *p,
                             const struct listen_sockets *listener, const struct boot_child *c,
                             uint32_t n, struct slurmdl_error *err)
{
    struct boot_accept m;
    long before = t->nchildren;
    char names[160];
    int rv = -1;

    if (boot_accept_open (&m, p, listener) < 0)
        goto out;
    for (uint32_t i = 0; i < n; i++)
        boot_accept_expect (&m, c[i].rank);
    if (boot_accept_run (&m, monotonic () + p->timeout) < 0) {
        boot_name_ranks (names, sizeof (names), m.missing, p->size, p->layout);
        errorf (err, "rank %ld (%s): no connection within %g s from %s", p->rank, p->own,
                p->timeout, names);
    } else if (boot_accept_end (&m, t) == 0)
        rv = 0;
    for (uint32_t i = 0; i < n && rv == 0; i++)
        t->children[before + i].nranks = c[i].nranks;
out:
    boot_accept_close (&m);
    return rv;
}

/* Ranks of this node stay with their leader. */
static int welcome_node (struct boot_tree *t, long n, const struct boot_welcome *from)
{
    struct boot_welcome w = *from;

    w.parent = -1;
    w.nchildren = 0;
    for (long i = 0; i < n; i++)
        if (net_stream_send (&t->children[i].stream, BOOT_WELCOME, &w, sizeof (w), monotonic () + 1)
            < 0)
            return -1;
    return 0;
}

static int check_welcome (const struct boot_place *p, const struct net_stream *w,
                          struct boot_welcome *welcome)
{
    size_t n = w->head.length;
    struct boot_child c;

    if (n < sizeof (*welcome))
        return -1;
    memcpy (welcome, w->body, sizeof (*welcome));
    if (welcome->nchildren > BOOT_FANOUT
        || n != sizeof (*welcome) + welcome->nchildren * sizeof (c))
        return -1;
    for (uint32_t i = 0; i < welcome->nchildren; i++) {
        memcpy (&c, w->body + sizeof (*welcome) + i * sizeof (c), sizeof (c));
        if (c.rank >= p->size || c.nranks > p->size)
            return -1;
    }
    welcome->host[sizeof (welcome->host) - 1] = '\0';
    welcome->parent_host[sizeof (welcome->parent_host) - 1] = '\0';
    welcome->parent_from[sizeof (welcome->parent_from) - 1] = '\0';
    clean_text (welcome->host);
    clean_text (welcome->parent_host);
    clean_text (welcome->parent_from);
    return 0;
}

int boot_tree_move (struct boot_tree *t, const struct boot_place *p,
                    struct listen_sockets *listener, struct slurmdl_error *err)
{
    struct boot_child children[BOOT_FANOUT];
    struct boot_welcome w;
    long local = t->nchildren;
    struct listen_sockets taken = *listener;

    if (check_welcome (p, &t->parent.stream, &w) < 0) {
        errno = EPROTO;
        return errorf (err, "rank 0 at %s runs another release of slurm-dl", p->host);
    }
    memcpy (children, t->parent.stream.body + sizeof (w), w.nchildren * sizeof (*children));
    net_stream_next (&t->parent.stream);
    if (t->parent.rank == 0)
        memcpy (t->parent.host, w.host, sizeof (w.host));
    if (welcome_node (t, local, &w) < 0)
        return errorf (err, "a rank of %s has ended", p->own);
    if (w.parent >= 0 && go_to_parent (t, p, &w, err) < 0)
        return -1;
    if (w.nchildren == 0)
        return 0;
    listener->n = 0;
    return receive_children (t, p, &taken, children, w.nchildren, err);
}

struct boot_exchange {
    struct boot_tree *t;
    size_t bytes;
    size_t record; /* bytes of a rank's number and its data */
    size_t most;   /* size limit of a message */
    char *all;
    bool *missing;
    long left; /* ranks below this one that are missing */
    bool done; /* 'all' is complete */
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

static void drain_peer (struct boot_peer *p, double deadline)
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

    drain_peer (&t->parent, deadline);
    for (long i = 0; i < t->nchildren; i++)
        drain_peer (&t->children[i], deadline);
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

/* After an error, all later exchanges fail in the same way. */
static int fail_tree (struct boot_tree *t, const struct boot_peer *from, int error)
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
                   "a message from rank %ld (%s) was altered in transit (wrong MAC): "
                   "connection closed",
                   from->rank, *from->host ? from->host : from->from);
}

static int lose_peer (struct boot_exchange *x, struct boot_peer *p)
{
    int error = errno;

    if (error == EBADMSG)
        boot_say_altered (p, &x->t->why);
    else if (error == EPROTO)
        errorf (&x->t->why, "rank %ld (%s) is in another exchange", p->rank, p->host);
    else
        errorf (&x->t->why, "rank %ld (%s) has ended or lost its connection", p->rank, p->host);
    return fail_tree (x->t, error == EPROTO ? NULL : p, error);
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
    return lose_peer (x, p);
}

static int take_message (struct boot_exchange *x, struct boot_peer *p)
{
    enum stream_read got = net_stream_read (&p->stream, x->most);

    if (got != STREAM_WHOLE)
        return got == STREAM_FAILED ? lose_peer (x, p) : 0;
    if (p->stream.head.kind == BOOT_FAILED) {
        errorf (&x->t->why, "%s", boot_tree_reason (&p->stream));
        return fail_tree (x->t, p, errno);
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
        return lose_peer (x, p);
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

enum exchange_event { EXCHANGE_FAILED = -1, EXCHANGE_TIMED_OUT, EXCHANGE_GOES_ON };

static enum exchange_event exchange_step (struct boot_exchange *x, double deadline)
{
    int n = poll_peers (x, deadline);

    if (n < 0) {
        errorf (&x->t->why, "poll: %s", strerror (errno));
        return fail_tree (x->t, NULL, errno);
    }
    for (long i = 0; n > 0 && i <= x->t->nchildren; i++)
        if (x->poll[i].revents && take_message (x, peer_at (x->t, i)) < 0)
            return EXCHANGE_FAILED;
    return n > 0 || monotonic () < deadline ? EXCHANGE_GOES_ON : EXCHANGE_TIMED_OUT;
}

static int send_block_up (struct boot_exchange *x, double deadline)
{
    struct boot_tree *t = x->t;
    char *body, *to;
    size_t n = 0;
    int rv;

    for (long r = 0; r < t->size; r++)
        n += !x->missing[r];
    if (!(body = to = malloc (n * x->record + 1))) {
        errorf (&t->why, "rank %ld: %s", t->rank, strerror (errno));
        return fail_tree (t, NULL, ENOMEM);
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
    return rv < 0 ? lose_peer (x, &t->parent) : 0;
}

static int send_block_down (struct boot_exchange *x, double deadline)
{
    struct boot_tree *t = x->t;

    for (long i = 0; i < t->nchildren; i++)
        if (net_stream_send (&t->children[i].stream, BOOT_ALL, x->all, (size_t)t->size * x->bytes,
                             deadline)
            < 0)
            return lose_peer (x, &t->children[i]);
    return 0;
}

static int fail_late_exchange (struct boot_exchange *x)
{
    struct boot_tree *t = x->t;
    char names[160];

    boot_name_ranks (names, sizeof (names), x->missing, t->size, t->layout);
    errorf (&t->why, "rank %ld has waited for %g s for an exchange with %s", t->rank, t->timeout,
            names);
    return fail_tree (t, NULL, ETIMEDOUT);
}

static int run_exchange (struct boot_exchange *x)
{
    struct boot_tree *t = x->t;
    double deadline = monotonic () + t->timeout;
    double slack = 2;
    enum exchange_event event = EXCHANGE_GOES_ON;

    while (x->left > 0 && event == EXCHANGE_GOES_ON)
        event = exchange_step (x, deadline);
    if (event == EXCHANGE_FAILED)
        return -1;
    if (t->rank == 0)
        return x->left > 0 ? fail_late_exchange (x) : send_block_down (x, deadline + slack);
    if (send_block_up (x, deadline + slack) < 0)
        return -1;
    event = EXCHANGE_GOES_ON;
    while (!x->done && event == EXCHANGE_GOES_ON)
        event = exchange_step (x, deadline + slack);
    if (event == EXCHANGE_FAILED)
        return -1;
    if (!x->done) {
        memset (x->missing, 0, (size_t)t->size * sizeof (*x->missing));
        x->missing[0] = true;
        return fail_late_exchange (x);
    }
    return send_block_down (x, deadline + slack);
}

static int prepare_exchange (struct boot_exchange *x, const void *mine)
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
    if (prepare_exchange (&x, mine) < 0)
        errorf (err, "rank %ld: %s", t->rank, strerror (errno));
    else if ((rv = run_exchange (&x)) < 0)
        errorf (err, "%s", t->why.text);
    free (x.missing);
    free (x.poll);
    return rv;
}
