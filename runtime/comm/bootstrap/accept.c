/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks come to a listener; strangers are sent away. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/socket.h"

enum {
    STRANGER_S = 10, /* to say who it is */
    SPARE = 64       /* of them at a time */
};

void peer_init (struct peer *p, int fd)
{
    memset (p, 0, sizeof (*p));
    net_stream_init (&p->stream, fd);
    p->since = monotonic ();
    p->rank = -1;
    if (fd >= 0)
        address_of_peer (fd, p->from, sizeof (p->from));
}

void peer_close (struct peer *p)
{
    net_stream_close (&p->stream);
    free (p->ranks);
    p->ranks = NULL;
    p->nranks = 0;
}

static int tree_adopt (struct tree *t, struct peer *p)
{
    struct peer *children = realloc (
        t->children, (size_t)(t->nchildren + 1) * sizeof (*t->children));

    if (!children) {
        peer_close (p);
        return -1;
    }
    t->children = children;
    t->children[t->nchildren++] = *p;
    return 0;
}

int meeting_open (struct meeting *m, const struct boot_place *p, int listener)
{
    memset (m, 0, sizeof (*m));
    m->place = p;
    m->listener = listener;
    m->missing = calloc ((size_t)p->size, sizeof (*m->missing));
    return m->missing ? 0 : -1;
}

void meeting_expect (struct meeting *m, long rank)
{
    m->left += !m->missing[rank];
    m->missing[rank] = true;
}

void meeting_close (struct meeting *m)
{
    for (long i = 0; i < m->n; i++)
        peer_close (&m->peers[i]);
    if (m->listener >= 0)
        close (m->listener);
    free (m->peers);
    free (m->missing);
}

static void drop (struct meeting *m, long i)
{
    struct peer *p = &m->peers[i];

    for (long k = 0; k < p->nranks; k++)
        m->missing[p->ranks[k]] = true;
    m->left += p->nranks;
    peer_close (p);
    m->peers[i] = m->peers[--m->n];
}

static int make_room (struct meeting *m)
{
    long room = m->room * 2 + SPARE;
    struct peer *peers;

    if (m->n < m->room)
        return 0;
    if (!(peers = realloc (m->peers, (size_t)room * sizeof (*peers))))
        return -1;
    m->peers = peers;
    m->room = room;
    return 0;
}

/* So many can be strangers; the one that has been silent for longest goes. */
static void make_way (struct meeting *m)
{
    long oldest = -1;
    long n = 0;

    for (long i = 0; i < m->n; i++) {
        if (m->peers[i].rank >= 0)
            continue;
        n++;
        if (oldest < 0 || m->peers[i].since < m->peers[oldest].since)
            oldest = i;
    }
    if (n > m->left + SPARE)
        drop (m, oldest);
}

static int admit (struct meeting *m)
{
    int fd = socket_accept (m->listener);

    if (fd < 0)
        return -1;
    if (!socket_is_mine (fd) || make_room (m) < 0)
        close (fd);
    else
        peer_init (&m->peers[m->n++], fd);
    make_way (m);
    return 0;
}

static int refuse (struct peer *p, const char *why)
{
    net_stream_send (
        &p->stream, BOOT_REFUSED, why, strlen (why), monotonic () + 1);
    return -1;
}

/* Whether the rank is one that is waited for; else why not. */
static bool is_expected (const struct meeting *m, uint32_t rank, char *why)
{
    if (rank < m->place->size && m->missing[rank])
        return true;
    if (rank == 0 || rank >= m->place->size)
        snprintf (why,
                  BOOT_TEXT,
                  "rank %u is not one of 1 to %ld",
                  rank,
                  m->place->size - 1);
    else
        snprintf (why,
                  BOOT_TEXT,
                  "rank %u has come twice: are there two processes with the "
                  "same rank?",
                  rank);
    return false;
}

static int take_ranks (struct meeting *m, struct peer *p, uint32_t n)
{
    uint32_t *ranks = malloc (n * sizeof (*ranks));
    char why[BOOT_TEXT] = "";

    if (!ranks)
        return -1;
    memcpy (ranks,
            p->stream.body + sizeof (struct boot_hello),
            n * sizeof (*ranks));
    p->ranks = ranks;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_expected (m, ranks[i], why))
            return refuse (p, why);
        m->missing[ranks[i]] = false;
        m->left--;
        p->nranks++; /* what drop() gives back */
    }
    p->rank = ranks[0];
    return 0;
}

static int introduce (struct meeting *m, struct peer *p)
{
    char why[BOOT_TEXT];
    struct boot_hello h;

    if (p->stream.head.kind != BOOT_HELLO || p->stream.head.length < sizeof (h))
        return -1;
    memcpy (&h, p->stream.body, sizeof (h));
    h.host[sizeof (h.host) - 1] = '\0';
    if (h.key != m->place->key || h.nranks < 1
        || p->stream.head.length
               != sizeof (h) + (size_t)h.nranks * sizeof (uint32_t))
        return -1;
    if (h.size != m->place->size) {
        snprintf (why,
                  sizeof (why),
                  "rank %ld is one of %ld ranks, and rank %ld one of %ld",
                  (long)h.rank,
                  (long)h.size,
                  m->place->rank,
                  m->place->size);
        return refuse (p, why);
    }
    memcpy (p->host, h.host, sizeof (p->host));
    p->port = h.port;
    if (take_ranks (m, p, h.nranks) < 0)
        return -1;
    net_stream_next (&p->stream);
    return 0;
}

/* What one who has come says next is for after the meeting. */
static int listen_to (struct meeting *m, struct peer *p)
{
    size_t most =
        sizeof (struct boot_hello) + (size_t)m->place->size * sizeof (uint32_t);
    int rv;

    if (p->rank >= 0)
        return p->ready ? -1 : 0;
    rv = net_stream_read (&p->stream, most);
    if (rv == 0)
        return monotonic () > p->since + STRANGER_S ? -1 : 0;
    return rv < 0 ? -1 : introduce (m, p);
}

static int wait_for_any (struct meeting *m, double deadline)
{
    struct pollfd *p = calloc ((size_t)m->n + 1, sizeof (*p));
    int left = socket_left (deadline);
    int n;

    if (!p)
        return -1;
    p[0] = (struct pollfd){ .fd = m->listener, .events = POLLIN };
    for (long i = 0; i < m->n; i++) {
        p[i + 1].fd = m->peers[i].stream.fd;
        p[i + 1].events = m->peers[i].rank < 0 ? POLLIN : POLLRDHUP;
    }
    n = poll (p, (nfds_t)m->n + 1, left > 1000 ? 1000 : left);
    for (long i = 0; i < m->n; i++)
        m->peers[i].ready = n > 0 ? p[i + 1].revents : 0;
    if (n < 0 && errno == EINTR)
        n = 0;
    free (p);
    return n;
}

int meeting_run (struct meeting *m, double deadline)
{
    while (m->left > 0) {
        int n = wait_for_any (m, deadline);
        if (n < 0)
            return -1;
        for (long i = m->n - 1; i >= 0; i--)
            if (listen_to (m, &m->peers[i]) < 0)
                drop (m, i);
        while (n > 0 && admit (m) == 0)
            continue;
        if (m->left > 0 && monotonic () > deadline) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

static int compare_peers (const void *a, const void *b)
{
    const struct peer *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

int meeting_end (struct meeting *m, struct tree *t)
{
    int rv = 0;

    /* whoever comes now comes for the next meeting at this port */
    close (m->listener);
    m->listener = -1;
    for (long i = m->n - 1; i >= 0; i--)
        if (m->peers[i].rank < 0)
            drop (m, i);
    if (m->n > 0)
        qsort (m->peers, (size_t)m->n, sizeof (*m->peers), compare_peers);
    for (long i = 0; i < m->n; i++)
        if (tree_adopt (t, &m->peers[i]) < 0)
            rv = -1;
    m->n = 0;
    return rv;
}
