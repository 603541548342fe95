/* SPDX-License-Identifier: Apache-2.0 */
/* Accept the ranks of a step at a listener, and reject others. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/socket.h"
#include "runtime/rank/layout.h"

void boot_peer_init (struct boot_peer *p, int fd, struct net_seal *seal)
{
    memset (p, 0, sizeof (*p));
    net_stream_init (&p->stream, fd, seal);
    p->rank = -1;
    if (fd >= 0)
        address_of_peer (fd, p->from, sizeof (p->from));
}

/* The handshake with the listener of that rank. */
static struct handshake handshake_with (const struct boot_place *p, long rank)
{
    struct handshake h = { .service = HANDSHAKE_BOOTSTRAP,
                           .version = BOOT_VERSION,
                           .plain = p->plain };

    memcpy (h.key, p->key, sizeof (h.key));
    memcpy (h.token, &rank, sizeof (rank));
    return h;
}

int boot_say_differs (bool plain, long rank, const char *host, struct slurmdl_error *err)
{
    errno = EOPNOTSUPP;
    return errorf (err,
                   "rank %ld (%s) %s DL_COMM_INTEGRITY=handshake, and another "
                   "rank %s: set it on all ranks, or on none",
                   rank, host, plain ? "has" : "has not", plain ? "has not" : "has");
}

int boot_introduce (struct boot_tree *t, const struct boot_place *p, int port, bool alone,
                    double deadline)
{
    struct handshake with = handshake_with (p, t->parent.rank);
    long n = alone ? 0 : t->nchildren;
    size_t size = sizeof (struct boot_hello) + (size_t)(n + 1) * sizeof (uint32_t);
    struct boot_hello *h = calloc (1, size);
    uint32_t *ranks;
    int rv;

    if (!h)
        return -1;
    ranks = (uint32_t *)(h + 1);
    h->rank = p->rank;
    h->size = p->size;
    h->nranks = (uint32_t)n + 1;
    h->port = port;
    memcpy (h->host, p->own, sizeof (h->host));
    ranks[0] = (uint32_t)p->rank;
    for (long i = 0; i < n; i++)
        ranks[i + 1] = (uint32_t)t->children[i].rank;
    rv = handshake_call (t->parent.stream.fd, &with, h, size, deadline, &t->parent.stream.seal);
    handshake_forget (with.key, sizeof (with.key));
    free (h);
    return rv;
}

void boot_peer_close (struct boot_peer *p)
{
    net_stream_close (&p->stream);
    free (p->ranks);
    p->ranks = NULL;
    p->nranks = 0;
}

static int boot_tree_adopt (struct boot_tree *t, struct boot_peer *p)
{
    struct boot_peer *children = array_grow (t->children, t->nchildren, sizeof (*children));

    if (!children) {
        boot_peer_close (p);
        return -1;
    }
    t->children = children;
    t->children[t->nchildren++] = *p;
    return 0;
}

int boot_accept_open (struct boot_accept *m, const struct boot_place *p,
                      const struct listen_sockets *listener)
{
    memset (m, 0, sizeof (*m));
    m->place = p;
    m->listener = (struct listener){ .at = *listener,
                                     .handshake = handshake_with (p, p->rank),
                                     .expected = (size_t)p->size };
    m->listener.most = sizeof (struct boot_hello) + (size_t)p->size * sizeof (uint32_t);
    m->missing = calloc ((size_t)p->size, sizeof (*m->missing));
    return m->missing ? 0 : -1;
}

void boot_accept_expect (struct boot_accept *m, long rank)
{
    m->left += !m->missing[rank];
    m->missing[rank] = true;
}

void boot_accept_close (struct boot_accept *m)
{
    for (long i = 0; i < m->n; i++)
        boot_peer_close (&m->peers[i]);
    listener_close (&m->listener);
    free (m->peers);
    free (m->missing);
}

static void drop_peer (struct boot_accept *m, long i)
{
    struct boot_peer *p = &m->peers[i];

    for (long k = 0; k < p->nranks; k++)
        m->missing[p->ranks[k]] = true;
    m->left += p->nranks;
    boot_peer_close (p);
    m->peers[i] = m->peers[--m->n];
}

static int add_peer (struct boot_accept *m, const struct boot_peer *p)
{
    struct boot_peer *peers = array_grow (m->peers, m->n, sizeof (*peers));

    if (!peers)
        return -1;
    m->peers = peers;
    m->peers[m->n++] = *p;
    return 0;
}

static int refuse_peer (struct boot_peer *p, const char *why)
{
    net_stream_send (&p->stream, BOOT_REFUSED, why, strlen (why), monotonic () + 1);
    return -1;
}

/* Whether we are waiting for the rank.  If not, 'why' says so. */
static bool is_expected (const struct boot_accept *m, uint32_t rank, char *why)
{
    if (rank < m->place->size && m->missing[rank])
        return true;
    if (rank == 0 || rank >= m->place->size)
        snprintf (why, BOOT_TEXT, "rank %u is not one of 1 to %ld", rank, m->place->size - 1);
    else
        snprintf (why, BOOT_TEXT,
                  "rank %u has come twice: are there two processes with the same rank?", rank);
    return false;
}

/* Returns -1 if a rank is not expected; drop_peer() then gives back the others. */
static int take_ranks (struct boot_accept *m, struct boot_peer *p, uint32_t n)
{
    char why[BOOT_TEXT] = "";

    for (uint32_t i = 0; i < n; i++) {
        if (!is_expected (m, p->ranks[i], why))
            return refuse_peer (p, why);
        m->missing[p->ranks[i]] = false;
        m->left--;
        p->nranks++;
    }
    p->rank = p->ranks[0];
    return 0;
}

static int introduce (struct boot_accept *m, struct boot_peer *p, const char *body)
{
    char why[BOOT_TEXT];
    struct boot_hello h;
    size_t n;

    memcpy (&h, body, sizeof (h));
    if (h.size != m->place->size) {
        snprintf (why, sizeof (why), "rank %ld is one of %ld ranks, and rank %ld one of %ld",
                  (long)h.rank, (long)h.size, m->place->rank, m->place->size);
        return refuse_peer (p, why);
    }
    h.host[sizeof (h.host) - 1] = '\0';
    clean_text (h.host);
    memcpy (p->host, h.host, sizeof (p->host));
    p->port = h.port;
    n = h.nranks * sizeof (*p->ranks);
    if (!(p->ranks = malloc (n)))
        return -1;
    memcpy (p->ranks, body + sizeof (h), n);
    return take_ranks (m, p, h.nranks);
}

static bool is_hello (const struct listener_arrival *a)
{
    struct boot_hello h;

    if (a->length < sizeof (h))
        return false;
    memcpy (&h, a->body, sizeof (h));
    return h.nranks > 0 && a->length == sizeof (h) + (size_t)h.nranks * sizeof (uint32_t);
}

static void admit_peer (struct boot_accept *m, const struct listener_arrival *a)
{
    struct boot_hello h;
    struct boot_peer p;

    boot_peer_init (&p, a->fd, a->seal);
    if (is_hello (a) && !a->agrees) {
        memcpy (&h, a->body, sizeof (h));
        h.host[sizeof (h.host) - 1] = '\0';
        boot_say_differs (!m->place->plain, (long)h.rank, clean_text (h.host), &m->differs);
    }
    if (!is_hello (a) || !a->agrees || add_peer (m, &p) < 0)
        boot_peer_close (&p);
    else if (introduce (m, &m->peers[m->n - 1], a->body) < 0)
        drop_peer (m, m->n - 1);
    free (a->body);
}

/* A peer that sends more, or ends, before all ranks have connected counts as gone. */
static int wait_for_any (struct boot_accept *m, double deadline)
{
    struct listener *l = &m->listener;
    size_t first = listener_fds (l);
    struct pollfd *p = listener_poll (l, (size_t)m->n + 1);
    int left = socket_left (deadline);
    int n;

    if (!p)
        return -1;
    for (long i = 0; i < m->n; i++)
        p[first + (size_t)i] = (struct pollfd){ .fd = m->peers[i].stream.fd, .events = POLLRDHUP };
    p[first + (size_t)m->n] = m->post ? board_poll (m->post) : (struct pollfd){ .fd = -1 };
    n = poll (p, (nfds_t)(first + (size_t)m->n + 1), left > 1000 ? 1000 : left);
    if (n < 0)
        return errno == EINTR ? 0 : -1;
    for (long i = m->n - 1; i >= 0; i--)
        if (p[first + (size_t)i].revents)
            drop_peer (m, i);
    return 0;
}

int boot_accept_run (struct boot_accept *m, double deadline)
{
    struct listener_arrival a;

    while (m->left > 0) {
        if (wait_for_any (m, deadline) < 0)
            return -1;
        listener_serve (&m->listener);
        if (m->post)
            board_serve (m->post);
        while (listener_take (&m->listener, &a))
            admit_peer (m, &a);
        if (*m->differs.text) {
            errno = EOPNOTSUPP;
            return -1;
        }
        if (m->left > 0 && monotonic () > deadline) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

static int compare_peers (const void *a, const void *b)
{
    const struct boot_peer *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

int boot_accept_end (struct boot_accept *m, struct boot_tree *t)
{
    int rv = 0;

    /* from now on, ranks that connect to this port belong to the next bootstrap */
    listener_close (&m->listener);
    if (m->n > 0)
        qsort (m->peers, (size_t)m->n, sizeof (*m->peers), compare_peers);
    for (long i = 0; i < m->n; i++)
        if (boot_tree_adopt (t, &m->peers[i]) < 0)
            rv = -1;
    m->n = 0;
    return rv;
}

/* ---- list missing ranks in one line ---- */

static const char *host_of_rank (const struct rank_layout *layout, long rank)
{
    return layout && rank < layout->ranks ? layout_host (layout, rank) : "";
}

/* The first rank after 'from' that does not belong to the same run. */
static long end_of_run (const bool *missing, long n, long from, const struct rank_layout *l)
{
    const char *host = host_of_rank (l, from);
    long to = from + 1;

    while (to < n && missing[to] && !strcmp (host_of_rank (l, to), host))
        to++;
    return to;
}

static void put_run (char *buf, size_t size, long from, long to, const char *host)
{
    char range[48];

    if (to - from == 1)
        snprintf (range, sizeof (range), "%ld", from);
    else
        snprintf (range, sizeof (range), "%ld-%ld", from, to - 1);
    if (*host)
        snprintf (buf, size, "%s (%s)", range, host);
    else
        snprintf (buf, size, "%s", range);
}

void boot_name_ranks (char *buf, size_t size, const bool *missing, long n,
                      const struct rank_layout *layout)
{
    enum { MORE = 24 }; /* room for the number of ranks that do not fit */
    char run[320];
    size_t used = 0;
    long left = 0;
    long to;

    for (long r = 0; r < n; r++)
        left += missing[r];
    *buf = '\0';
    for (long r = 0; r < n; r = to) {
        to = r + 1;
        if (!missing[r])
            continue;
        to = end_of_run (missing, n, r, layout);
        put_run (run, sizeof (run), r, to, host_of_rank (layout, r));
        if (used + strlen (run) + 2 + (left > to - r ? MORE : 1) > size) {
            snprintf (buf + used, size - used, "%s%ld more", used ? " and " : "", left);
            return;
        }
        used += (size_t)snprintf (buf + used, size - used, "%s%s", used ? ", " : "", run);
        left -= to - r;
    }
}
