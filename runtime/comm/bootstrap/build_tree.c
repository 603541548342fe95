/* SPDX-License-Identifier: Apache-2.0 */
/* Build a tree of the ranks that have come, so that none has many children. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/socket.h"

/* Those who have come have the places 1 to n in the order of ranks, rank 0 has
 * place 0; children of place i are at BOOT_FANOUT * i + 1 and after it.
 */
struct boot_plan {
    struct boot_tree *t;
    const struct boot_place *p;
    long n;
    uint32_t *below; /* ranks at and below a place */
    char *message;
};

static long parent_of (long place)
{
    return (place - 1) / BOOT_FANOUT;
}

static int lost (const struct boot_peer *p, struct slurmdl_error *err)
{
    return errorf (err, "rank %ld (%s) has ended or lost its connection", p->rank, p->host);
}

/* "" of who is on rank 0's machine: others know it as they know rank 0. */
static const char *address_of (const struct boot_peer *p)
{
    return !strncmp (p->from, "127.", 4) || !strcmp (p->from, "::1") ? "" : p->from;
}

static size_t compose (struct boot_plan *x, long place)
{
    const struct boot_peer *peers = x->t->children - 1;
    struct boot_welcome w = { .parent = -1 };
    struct boot_child c;
    size_t n = sizeof (w);

    snprintf (w.host, sizeof (w.host), "%s", x->p->own);
    if (x->n > BOOT_STAR && parent_of (place) > 0) {
        const struct boot_peer *parent = &peers[parent_of (place)];
        w.parent = parent->rank;
        w.parent_port = parent->port;
        memcpy (w.parent_host, parent->host, sizeof (w.parent_host));
        snprintf (w.parent_from, sizeof (w.parent_from), "%s", address_of (parent));
    }
    for (long i = BOOT_FANOUT * place + 1; x->n > BOOT_STAR && i <= x->n && parent_of (i) == place;
         i++, w.nchildren++) {
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
        size_t n = compose (x, i);
        if (net_stream_send (&p->stream, BOOT_WELCOME, x->message, n, deadline) < 0)
            return lost (p, err);
    }
    return 0;
}

/* The others have parents of their own. */
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
        x.below[parent_of (i)] += x.below[i];
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
        return errorf (err,
                       "rank %ld (%s) does not reach rank %ld (%s) at %s:%d: "
                       "%s",
                       p->rank, p->own, (long)w->parent, w->parent_host, at, w->parent_port,
                       strerror (errno));
    boot_peer_init (&parent, fd, NULL);
    parent.rank = w->parent;
    memcpy (parent.host, w->parent_host, sizeof (parent.host));
    boot_peer_close (&t->parent);
    t->parent = parent;
    return boot_introduce (t, p, 0, true, deadline) < 0 ? lost (&t->parent, err) : 0;
}

/* Rank 0 has said who comes here, and how many each of them represents. */
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
        errorf (err, "rank %ld (%s) was not reached within %g s by %s", p->rank, p->own, p->timeout,
                names);
    } else if (boot_accept_end (&m, t) == 0)
        rv = 0;
    for (uint32_t i = 0; i < n && rv == 0; i++)
        t->children[before + i].nranks = c[i].nranks;
out:
    boot_accept_close (&m);
    return rv;
}

/* Those of this node stay with their leader. */
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
        return errorf (err, "rank 0 at %s is of another release", p->host);
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
