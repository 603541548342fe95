/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that other ranks have made to a mesh, and queries to their listeners. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/net/socket.h"

static void deliver_link (struct mesh *m, long peer, int fd, struct net_seal *seal)
{
    if (peer < 0 || atomic_load (&m->links[peer].in) >= 0) {
        close (fd);
        seal_destroy (seal);
        return;
    }
    m->links[peer].in_seal = seal;
    atomic_store (&m->links[peer].in, fd);
}

/* Abort all parts of the mesh that has failed. */
static void deliver_abort (struct mesh *m, int code, const char *text)
{
    for (struct mesh *p = m->endpoint->meshes; p; p = p->next) {
        if (p->root != m->root || atomic_load (&p->aborted))
            continue;
        p->code = code > 0 ? code : ECONNRESET;
        snprintf (p->why, sizeof (p->why), "%s", text);
        atomic_store (&p->aborted, true);
        eventfd_write (p->event, 1);
    }
}

void mesh_reason (struct mesh *m, int code, const char *why)
{
    pthread_mutex_lock (&m->endpoint->mutex);
    deliver_abort (m, code, why);
    pthread_mutex_unlock (&m->endpoint->mutex);
}

void mesh_pending_add (struct mesh_pending **end, const struct mesh_hello *w, int fd,
                       struct net_seal *seal)
{
    struct mesh_pending *p = calloc (1, sizeof (*p));

    if (!p) {
        close (fd);
        seal_destroy (seal);
        return;
    }
    p->hello = *w;
    p->fd = fd;
    p->seal = seal;
    while (*end)
        end = &(*end)->next;
    *end = p;
}

void mesh_found_unreachable (struct mesh *m, long rank)
{
    long none = -1;

    if (rank < m->endpoint->size)
        atomic_compare_exchange_strong (&m->endpoint->unreachable, &none, rank);
}

void mesh_deliver (struct mesh *m, const struct mesh_hello *hello, int fd, struct net_seal *seal)
{
    long peer = mesh_rank_of (m, hello->from);

    if (hello->kind == DIAL_LINK)
        deliver_link (m, peer, fd, seal);
    else if (hello->kind == DIAL_SOCKET)
        mesh_pending_add (&m->sockets, hello, fd, seal);
    else {
        close (fd);
        seal_destroy (seal);
    }
    if (hello->kind == DIAL_ABORT && hello->unreachable >= 0)
        mesh_found_unreachable (m, hello->unreachable);
    if (hello->kind == DIAL_ABORT)
        deliver_abort (m, hello->code, hello->text);
    eventfd_write (m->event, 1);
}

void mesh_state (struct mesh *m, struct mesh_report *s)
{
    s->waits = atomic_load (&m->root->waits);
    s->calls = (uint32_t)atomic_load (&m->root->calls);
    s->tag = atomic_load (&m->root->tag);
}

void mesh_close_links (struct mesh *m)
{
    for (long r = 0; r < m->size; r++) {
        int in = atomic_load (&m->links[r].in);
        if (in >= 0)
            close (in);
        if (m->links[r].out >= 0)
            close (m->links[r].out);
    }
    for (struct mesh_pending *p = m->sockets; p; p = p->next)
        if (p->fd >= 0)
            close (p->fd);
}

void mesh_forked (struct mesh *m)
{
    mesh_close_links (m);
    close (m->event);
    m->event = -1;
    for (long r = 0; r < m->size; r++) {
        atomic_store (&m->links[r].in, -1);
        m->links[r].out = -1;
    }
}

static struct dial_caller caller_of (const struct mesh *m)
{
    return (struct dial_caller){ mesh_self (m), m->endpoint->key, m->endpoint->plain, m->timeout };
}

int mesh_call (const struct mesh *m, long peer, enum dial_kind kind, double seconds,
               struct net_seal **seal)
{
    struct mesh_hello w = { .kind = kind,
                            .from = m->endpoint->rank,
                            .to = m->world[peer],
                            .code = m->code,
                            .unreachable = atomic_load (&m->endpoint->unreachable),
                            .channel = m->channel };
    struct dial_caller caller = caller_of (m);

    if (kind == DIAL_ABORT)
        snprintf (w.text, sizeof (w.text), "%s", m->why);
    return dial_rank (&caller, mesh_peer (m, peer), &w, monotonic () + seconds, seal);
}

/* Probe again only after a while: a stopped process keeps connections open. */
bool mesh_is_unreachable (struct mesh *m, long peer, int fd)
{
    struct dial_caller caller = caller_of (m);
    long now = (long)monotonic ();
    long before;

    if (fd < 0 || !dial_is_silent (fd, m->timeout))
        return false;
    before = atomic_exchange (&m->links[peer].asked, now);
    if ((before && now - before < 10) || dial_reaches (&caller, mesh_peer (m, peer)))
        return false;
    mesh_found_unreachable (m, m->world[peer]);
    return true;
}

long mesh_unreachable (const struct mesh *m)
{
    return atomic_load (&m->endpoint->unreachable);
}

void mesh_set_waits (struct mesh *m, long peer)
{
    atomic_store (&m->root->waits, peer < 0 ? -1 : m->world[peer]);
}

double mesh_answer_seconds (const struct mesh *m)
{
    double t = m->timeout / 4;

    return t < 0.5 ? 0.5 : t > 2 ? 2 : t;
}

int mesh_query (const struct mesh *m, long peer, struct mesh_report *r)
{
    char answer[sizeof (*r) + SEAL_TAG];
    struct net_seal *seal = NULL;
    int fd = mesh_call (m, peer, DIAL_QUERY, mesh_answer_seconds (m), &seal);
    int rv;

    if (fd < 0)
        return -1;
    rv = socket_recv (fd, answer, sizeof (*r) + seal_size (seal),
                      monotonic () + mesh_answer_seconds (m));
    if (rv == 0)
        rv = seal_check (seal, answer, sizeof (*r), answer + sizeof (*r));
    if (rv == 0)
        memcpy (r, answer, sizeof (*r));
    seal_destroy (seal);
    close (fd);
    return rv;
}
