/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks meet at a port of rank 0's. */
#include "runtime/comm/boottcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/comm/socket.h"
#include "runtime/error.h"

enum {
    TEXT_MAX = 1024,
    STRANGER_S = 10, /* to say who it is */
    ATTEMPT_S = 5,   /* to connect */
    TAKEN_S = 2,     /* for an older step to give the port back */
    SPARE_FILES = 64
};

/* Rank 0 waits as long as the others, who have to hear from it. */
static const double slack = 2;

struct hello {
    uint64_t key;
    int64_t rank, size;
    char host[64];
    uint32_t nranks; /* that follow, itself first */
    int32_t port;    /* where it listens to its children */
};

struct meeting {
    const struct boot_place *place;
    int listener;
    struct peer *peers;
    long n, room;
    bool *missing;
    long left; /* ranks that have not come */
    struct pollfd *poll;
};

void peer_init (struct peer *p, int fd)
{
    memset (p, 0, sizeof (*p));
    wire_init (&p->wire, fd);
    p->since = monotonic ();
    p->rank = -1;
    if (fd >= 0)
        socket_peer (fd, p->from, sizeof (p->from));
}

void peer_close (struct peer *p)
{
    wire_close (&p->wire);
    free (p->ranks);
    p->ranks = NULL;
    p->nranks = 0;
}

/* Each peer is an open file of rank 0's. */
static void raise_limit (long files)
{
    struct rlimit l;

    if (getrlimit (RLIMIT_NOFILE, &l) < 0)
        return;
    if (l.rlim_cur >= (rlim_t)files + SPARE_FILES)
        return;
    l.rlim_cur = (rlim_t)files + SPARE_FILES;
    if (l.rlim_cur > l.rlim_max)
        l.rlim_cur = l.rlim_max;
    setrlimit (RLIMIT_NOFILE, &l);
}

static void pause_ms (long ms)
{
    struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep (&ts, NULL);
}

/* ---- rank 0 ---- */

static void drop (struct meeting *m, long i)
{
    struct peer *p = &m->peers[i];

    for (long k = 0; k < p->nranks; k++)
        m->missing[p->ranks[k]] = true;
    m->left += p->nranks;
    peer_close (p);
    m->peers[i] = m->peers[--m->n];
}

static int admit (struct meeting *m)
{
    int fd = socket_accept (m->listener);

    if (fd < 0)
        return -1;
    if (m->n == m->room) {
        long room = m->room * 2;
        struct peer *peers =
            realloc (m->peers, (size_t)room * sizeof (*m->peers));
        if (peers)
            m->peers = peers;
        if (peers)
            m->room = room;
    }
    if (m->n == m->room) {
        close (fd);
        return -1;
    }
    peer_init (&m->peers[m->n++], fd);
    return 0;
}

static void refuse (struct peer *p, const char *why)
{
    wire_send (&p->wire, BOOT_REFUSED, why, strlen (why), monotonic () + 1);
}

/* Whether each of its ranks is one that is waited for. */
static bool are_missing (const struct meeting *m,
                         const uint32_t *ranks,
                         uint32_t n,
                         char *why,
                         size_t size)
{
    for (uint32_t i = 0; i < n; i++) {
        if (ranks[i] >= m->place->size || ranks[i] == 0)
            snprintf (why,
                      size,
                      "rank %u is not one of 1 to %ld",
                      ranks[i],
                      m->place->size - 1);
        else if (!m->missing[ranks[i]])
            snprintf (why,
                      size,
                      "rank %u has come twice: are two processes given the "
                      "same rank?",
                      ranks[i]);
        else
            continue;
        return false;
    }
    return true;
}

static int introduce (struct meeting *m, struct peer *p)
{
    char why[TEXT_MAX] = "";
    struct hello h;
    uint32_t *ranks = NULL;
    size_t n;

    if (p->wire.head.kind != BOOT_HELLO || p->wire.head.length < sizeof (h))
        return -1;
    memcpy (&h, p->wire.body, sizeof (h));
    h.host[sizeof (h.host) - 1] = '\0';
    n = h.nranks;
    if (h.key != m->place->key || n < 1
        || p->wire.head.length != sizeof (h) + n * sizeof (*ranks))
        return -1;
    if (!(ranks = malloc (n * sizeof (*ranks))))
        return -1;
    memcpy (ranks, p->wire.body + sizeof (h), n * sizeof (*ranks));
    if (h.size != m->place->size)
        snprintf (why,
                  sizeof (why),
                  "rank %ld is one of %ld ranks, and rank 0 one of %ld",
                  (long)h.rank,
                  (long)h.size,
                  m->place->size);
    else
        are_missing (m, ranks, h.nranks, why, sizeof (why));
    if (*why) {
        free (ranks);
        refuse (p, why);
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        m->missing[ranks[i]] = false;
    m->left -= (long)n;
    p->rank = ranks[0];
    p->ranks = ranks;
    p->nranks = (long)n;
    memcpy (p->host, h.host, sizeof (p->host));
    wire_next (&p->wire);
    return 0;
}

/* Someone who has come has nothing to say until the meeting ends. */
static int listen_to (struct meeting *m, struct peer *p)
{
    size_t most =
        sizeof (struct hello) + (size_t)m->place->size * sizeof (uint32_t);
    int rv = wire_read (&p->wire, most);

    if (rv == 0)
        return p->rank < 0 && monotonic () > p->since + STRANGER_S ? -1 : 0;
    return rv < 0 || p->rank >= 0 ? -1 : introduce (m, p);
}

static int poll_all (struct meeting *m, double deadline)
{
    struct pollfd *p =
        realloc (m->poll, (size_t)(m->n + 1) * sizeof (*m->poll));
    int left = socket_left (deadline);

    if (!p)
        return -1;
    m->poll = p;
    p[0] = (struct pollfd){ .fd = m->listener, .events = POLLIN };
    for (long i = 0; i < m->n; i++)
        p[i + 1] =
            (struct pollfd){ .fd = m->peers[i].wire.fd, .events = POLLIN };
    return poll (p, (nfds_t)m->n + 1, left > 1000 ? 1000 : left);
}

static int meet (struct meeting *m, double deadline)
{
    while (m->left > 0) {
        int n = poll_all (m, deadline);
        if (n < 0 && errno != EINTR)
            return -1;
        if (monotonic () > deadline) {
            errno = ETIMEDOUT;
            return -1;
        }
        for (long i = m->n - 1; i >= 0; i--)
            if (listen_to (m, &m->peers[i]) < 0)
                drop (m, i);
        while (n > 0 && admit (m) == 0)
            continue;
    }
    return 0;
}

static int compare_peers (const void *a, const void *b)
{
    const struct peer *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Strangers who are still there leave. */
static void keep_ranks (struct meeting *m)
{
    for (long i = m->n - 1; i >= 0; i--)
        if (m->peers[i].rank < 0)
            drop (m, i);
    qsort (m->peers, (size_t)m->n, sizeof (*m->peers), compare_peers);
}

static int say_missing (const struct meeting *m, struct slurmdl_error *err)
{
    const struct boot_place *p = m->place;
    char names[160];

    boot_name_ranks (names, sizeof (names), m->missing, p->size, p->layout);
    errorf (err,
            "%ld of %ld ranks did not come within %g s: %s",
            m->left,
            p->size,
            p->timeout,
            names);
    errno = ETIMEDOUT;
    return -1;
}

static void end_meeting (struct meeting *m, struct tree *t)
{
    if (m->listener >= 0)
        close (m->listener);
    m->listener = -1;
    keep_ranks (m);
    t->children = m->peers;
    t->nchildren = m->n;
    m->peers = NULL;
    free (m->poll);
}

static int welcome (struct tree *t, struct slurmdl_error *err)
{
    double deadline = monotonic () + t->timeout;

    for (long i = 0; i < t->nchildren; i++)
        if (wire_send (&t->children[i].wire, BOOT_WELCOME, NULL, 0, deadline)
            < 0)
            return errorf (err,
                           "rank %ld (%s) has ended or lost its connection",
                           t->children[i].rank,
                           t->children[i].host);
    return 0;
}

/* The port of a step that has just ended may still be in use. */
static int open_listener (const struct boot_place *p, struct slurmdl_error *err)
{
    double deadline = monotonic () + TAKEN_S;
    int fd;

    if (p->listener >= 0)
        return p->listener;
    while ((fd = socket_listen (p->host, p->port)) < 0 && errno == EADDRINUSE
           && monotonic () < deadline)
        pause_ms (50);
    if (fd < 0)
        errorf (err,
                "rank 0 (%s) cannot listen on port %d: %s: set "
                "DL_COMM_ADDRESS to HOST:PORT with another port",
                p->own,
                p->port,
                strerror (errno));
    return fd;
}

static int host_meeting (struct tree *t,
                         const struct boot_place *p,
                         struct slurmdl_error *err)
{
    struct meeting m = { .place = p,
                         .listener = -1,
                         .room = p->size + SPARE_FILES,
                         .left = p->size - 1 };
    int rv = -1;

    raise_limit (p->size);
    m.peers = malloc ((size_t)m.room * sizeof (*m.peers));
    m.missing = malloc ((size_t)p->size * sizeof (*m.missing));
    if (!m.peers || !m.missing) {
        errorf (err, "rank 0: %s", strerror (errno));
        goto out;
    }
    memset (m.missing, 1, (size_t)p->size * sizeof (*m.missing));
    m.missing[0] = false;
    if ((m.listener = open_listener (p, err)) < 0)
        goto out;
    rv = meet (&m, monotonic () + p->timeout);
    if (rv < 0 && errno == ETIMEDOUT)
        say_missing (&m, err);
    else if (rv < 0)
        errorf (err, "rank 0: poll: %s", strerror (errno));
    end_meeting (&m, t);
    if (rv == 0)
        rv = welcome (t, err);
out:
    free (m.peers);
    free (m.missing);
    return rv;
}

/* ---- the others ---- */

static int
say_hello (struct peer *p, const struct boot_place *place, double deadline)
{
    struct {
        struct hello h;
        uint32_t rank;
    } m;

    memset (&m, 0, sizeof (m));
    m.h.key = place->key;
    m.h.rank = place->rank;
    m.h.size = place->size;
    m.h.nranks = 1;
    m.rank = (uint32_t)place->rank;
    memcpy (m.h.host, place->own, sizeof (m.h.host));
    return wire_send (
        &p->wire, BOOT_HELLO, &m, sizeof (m.h) + sizeof (m.rank), deadline);
}

/* Returns 0, 1: try again, or -1: told not to. */
static int
hear_answer (struct peer *p, double deadline, struct slurmdl_error *err)
{
    if (wire_wait (&p->wire, TEXT_MAX, deadline) < 0)
        return 1;
    switch (p->wire.head.kind) {
    case BOOT_WELCOME:
        wire_next (&p->wire);
        return 0;
    case BOOT_REFUSED:
        errno = EEXIST;
        return errorf (err, "rank 0 (%s): %s", p->from, p->wire.body);
    case BOOT_FAILED:
        errno = ETIMEDOUT;
        return errorf (err, "%s", p->wire.body);
    }
    return 1;
}

static int attempt (struct tree *t,
                    const struct boot_place *p,
                    double deadline,
                    struct slurmdl_error *err)
{
    double soon = monotonic () + ATTEMPT_S;
    int rv = 1;
    int fd;

    fd = socket_connect (p->host, p->port, soon < deadline ? soon : deadline);
    if (fd < 0)
        return 1;
    peer_init (&t->parent, fd);
    t->parent.rank = 0;
    snprintf (t->parent.host, sizeof (t->parent.host), "%s", p->host);
    if (say_hello (&t->parent, p, deadline) == 0)
        rv = hear_answer (&t->parent, monotonic () + p->timeout + slack, err);
    if (rv != 0)
        peer_close (&t->parent);
    return rv;
}

static int join_meeting (struct tree *t,
                         const struct boot_place *p,
                         struct slurmdl_error *err)
{
    double deadline = monotonic () + p->timeout;
    long wait = 5;
    int rv;

    /* rank 0 may not listen yet; not all ranks come back at once */
    while ((rv = attempt (t, p, deadline, err)) == 1
           && monotonic () < deadline) {
        int saved = errno;
        pause_ms (wait + (p->rank * 7) % (wait + 1));
        wait = wait < 200 ? wait * 2 : wait;
        errno = saved;
    }
    if (rv == 1) {
        errorf (err,
                "rank 0 did not answer at %s:%d within %g s: %s",
                p->host,
                p->port,
                p->timeout,
                strerror (errno));
        errno = ETIMEDOUT;
    }
    return rv == 0 ? 0 : -1;
}

int tree_open (struct tree *t,
               const struct boot_place *p,
               struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    int rv;

    memset (t, 0, sizeof (*t));
    peer_init (&t->parent, -1);
    t->rank = p->rank;
    t->size = p->size;
    t->timeout = p->timeout;
    t->layout = p->layout;
    rv = p->rank == 0 ? host_meeting (t, p, &why) : join_meeting (t, p, &why);
    if (rv < 0) {
        int saved = errno;
        tree_tell (t, NULL, why.text);
        tree_close (t);
        errno = saved;
        return errorf (err, "%s", why.text);
    }
    return 0;
}

void tree_close (struct tree *t)
{
    for (long i = 0; i < t->nchildren; i++)
        peer_close (&t->children[i]);
    free (t->children);
    peer_close (&t->parent);
    t->children = NULL;
    t->nchildren = 0;
}
