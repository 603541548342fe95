/* SPDX-License-Identifier: Apache-2.0 */
/* Connections between two ranks, established on first use. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mesh/channel.h"

/* Returns -1 with errno set; the mesh remains usable. */
static int reach_peer (struct mesh *m, long peer)
{
    int fd = atomic_load (&m->links[peer].out);

    if (fd >= 0)
        return fd;
    fd = mesh_call (m, peer, DIAL_LINK, m->timeout, &m->links[peer].out_seal);
    if (fd < 0 && errno == EHOSTUNREACH)
        mesh_found_unreachable (m, m->world[peer]);
    if (fd >= 0)
        atomic_store (&m->links[peer].out, fd);
    return fd;
}

static int not_reached (struct mesh *m, long peer, struct slurmdl_error *err)
{
    return errno == ETIMEDOUT ? mesh_timed_out (m, peer, err) : mesh_lost (m, peer, err);
}

int mesh_dial (struct mesh *m, long peer, struct slurmdl_error *err)
{
    int fd = reach_peer (m, peer);

    return fd >= 0 ? fd : not_reached (m, peer, err);
}

enum mesh_presence mesh_probe_peer (struct mesh *m, long peer, struct slurmdl_error *err)
{
    if (reach_peer (m, peer) >= 0)
        return PEER_ALIVE;
    return errno == ETIMEDOUT || errno == EHOSTUNREACH ? not_reached (m, peer, err) : PEER_ENDED;
}

/* Take the first socket that this peer has opened, or -1. */
static int take_socket (struct mesh *m, long peer, struct net_seal **seal)
{
    struct mesh_pending **p = &m->sockets;
    int fd = -1;

    pthread_mutex_lock (&m->endpoint->mutex);
    while (*p && (*p)->hello.from != m->world[peer])
        p = &(*p)->next;
    if (*p) {
        struct mesh_pending *this = *p;
        *p = this->next;
        fd = this->fd;
        *seal = this->seal;
        free (this);
    }
    pthread_mutex_unlock (&m->endpoint->mutex);
    return fd;
}

static int await_socket (struct mesh *m, long peer, struct net_seal **seal,
                         struct slurmdl_error *err)
{
    double until = monotonic () + m->timeout;
    struct pollfd p[2] = { { .fd = m->event, .events = POLLIN } };
    eventfd_t value;
    enum mesh_presence presence;
    int gone = 0;

    for (;;) {
        int fd = take_socket (m, peer, seal);
        if (fd >= 0)
            return fd;
        if (mesh_usable (m, err) < 0)
            return -1;
        if (monotonic () > until)
            return mesh_timed_out (m, peer, err);
        if ((presence = mesh_probe_peer (m, peer, err)) == PEER_FAILED)
            return -1;
        p[1].fd = atomic_load (&m->links[peer].out);
        p[1].events = POLLRDHUP;
        poll (p, 2, 100);
        /* it may have connected before it closed */
        if ((p[1].revents || presence == PEER_ENDED) && gone++ > 10)
            return mesh_lost (m, peer, err);
        if (p[1].revents)
            poll (p, 1, 50);
        eventfd_read (m->event, &value);
    }
}

int mesh_event (const struct mesh *m)
{
    return m->event;
}

int mesh_socket_now (struct mesh *m, long peer, struct net_seal **seal, struct slurmdl_error *err)
{
    struct pollfd p = { .events = POLLRDHUP };
    enum mesh_presence presence;
    eventfd_t value;
    int fd;

    eventfd_read (m->event, &value);
    if ((fd = take_socket (m, peer, seal)) >= 0)
        return fd;
    if (mesh_usable (m, err) < 0 || (presence = mesh_probe_peer (m, peer, err)) == PEER_FAILED)
        return -1;
    p.fd = atomic_load (&m->links[peer].out);
    if (p.fd >= 0 && mesh_is_unreachable (m, peer, p.fd))
        return mesh_lost (m, peer, err);
    /* it may have connected before it closed */
    if (presence == PEER_ENDED || poll (&p, 1, 0) > 0)
        return await_socket (m, peer, seal, err);
    errno = EAGAIN;
    return -1;
}

int mesh_socket (struct mesh *m, long peer, struct net_seal **seal, struct slurmdl_error *err)
{
    int fd;

    if (mesh_usable (m, err) < 0)
        return -1;
    if (peer > m->rank)
        return await_socket (m, peer, seal, err);
    fd = mesh_call (m, peer, DIAL_SOCKET, m->timeout, seal);
    if (fd >= 0)
        return fd;
    return errno == ETIMEDOUT ? mesh_timed_out (m, peer, err) : mesh_lost (m, peer, err);
}
