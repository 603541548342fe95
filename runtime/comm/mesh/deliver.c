/* SPDX-License-Identifier: Apache-2.0 */
/* What a mesh gets from the listener: links, sockets, reasons to give up. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mesh/channel.h"

static long rank_of (const struct mesh *m, int64_t world)
{
    for (long r = 0; r < m->size; r++)
        if (m->world[r] == world)
            return r;
    return -1;
}

static void deliver_link (struct mesh *m, long peer, int fd)
{
    int none = -1;

    if (peer < 0
        || !atomic_compare_exchange_strong (&m->links[peer].in, &none, fd))
        close (fd);
}

/* All parts of what has failed. */
static void deliver_abort (struct mesh *m, int code, const char *text)
{
    for (struct mesh *p = m->home->meshes; p; p = p->next) {
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
    pthread_mutex_lock (&m->home->mutex);
    deliver_abort (m, code, why);
    pthread_mutex_unlock (&m->home->mutex);
}

static void deliver_socket (struct mesh *m, const struct hello *w, int fd)
{
    struct parked **end = &m->sockets;
    struct parked *p = calloc (1, sizeof (*p));

    if (!p) {
        close (fd);
        return;
    }
    p->hello = *w;
    p->fd = fd;
    while (*end)
        end = &(*end)->next;
    *end = p;
}

void mesh_found_silent (struct mesh *m, long rank)
{
    long none = -1;

    if (rank < m->home->size)
        atomic_compare_exchange_strong (&m->home->silent, &none, rank);
}

void mesh_deliver (struct mesh *m,
                   const struct hello *hello,
                   int fd,
                   const char *text)
{
    long peer = rank_of (m, hello->from);

    if (hello->kind == DIAL_LINK)
        deliver_link (m, peer, fd);
    else if (hello->kind == DIAL_SOCKET)
        deliver_socket (m, hello, fd);
    else
        close (fd);
    if (hello->kind == DIAL_ABORT && hello->silent >= 0)
        mesh_found_silent (m, hello->silent);
    if (hello->kind == DIAL_ABORT)
        deliver_abort (m, hello->code, text);
    eventfd_write (m->event, 1);
}

void mesh_state (struct mesh *m, struct mesh_report *s)
{
    s->waits = atomic_load (&m->root->waits);
    s->calls = (uint32_t)atomic_load (&m->root->calls);
    s->tag = atomic_load (&m->root->tag);
}

/* The first that this peer has made, or -1. */
static int take_socket (struct mesh *m, long peer)
{
    struct parked **p = &m->sockets;
    int fd = -1;

    pthread_mutex_lock (&m->home->mutex);
    while (*p && (*p)->hello.from != m->world[peer])
        p = &(*p)->next;
    if (*p) {
        struct parked *this = *p;
        *p = this->next;
        fd = this->fd;
        free (this);
    }
    pthread_mutex_unlock (&m->home->mutex);
    return fd;
}

static int await_socket (struct mesh *m, long peer, struct slurmdl_error *err)
{
    double until = monotonic () + m->timeout;
    struct pollfd p[2] = { { .fd = m->event, .events = POLLIN } };
    eventfd_t value;
    int gone = 0;

    for (;;) {
        int fd = take_socket (m, peer);
        if (fd >= 0)
            return fd;
        if (mesh_usable (m, err) < 0)
            return -1;
        if (monotonic () > until)
            return mesh_late (m, peer, err);
        if ((p[1].fd = mesh_dial (m, peer, err)) < 0)
            return -1;
        p[1].events = POLLRDHUP;
        poll (p, 2, 100);
        /* it may have called before it closed */
        if (p[1].revents && gone++ > 10)
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

int mesh_socket_now (struct mesh *m, long peer, struct slurmdl_error *err)
{
    struct pollfd p = { .events = POLLRDHUP };
    eventfd_t value;
    int fd;

    eventfd_read (m->event, &value);
    if ((fd = take_socket (m, peer)) >= 0)
        return fd;
    if (mesh_usable (m, err) < 0 || (p.fd = mesh_dial (m, peer, err)) < 0)
        return -1;
    if (mesh_is_silent (m, peer, p.fd))
        return mesh_lost (m, peer, err);
    /* it may have called before it closed */
    if (poll (&p, 1, 0) > 0)
        return await_socket (m, peer, err);
    errno = EAGAIN;
    return -1;
}

int mesh_socket (struct mesh *m, long peer, struct slurmdl_error *err)
{
    int fd;

    if (mesh_usable (m, err) < 0)
        return -1;
    if (peer > m->rank)
        return await_socket (m, peer, err);
    fd = mesh_call (m, peer, DIAL_SOCKET, m->timeout);
    if (fd >= 0)
        return fd;
    return errno == ETIMEDOUT ? mesh_late (m, peer, err)
                              : mesh_lost (m, peer, err);
}
