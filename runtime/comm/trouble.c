/* SPDX-License-Identifier: Apache-2.0 */
/* When a rank of the mesh fails: who it was, and that all are told. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/comm/channel.h"
#include "runtime/error.h"

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

static void deliver_abort (struct mesh *m, int code, const char *text, int fd)
{
    close (fd);
    if (atomic_load (&m->aborted))
        return;
    m->code = code > 0 ? code : ECONNRESET;
    snprintf (m->why, sizeof (m->why), "%s", text);
    atomic_store (&m->aborted, true);
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

void mesh_deliver (struct mesh *m,
                   const struct hello *hello,
                   int fd,
                   const char *text)
{
    long peer = rank_of (m, hello->from);

    if (hello->kind == DIAL_LINK)
        deliver_link (m, peer, fd);
    else if (hello->kind == DIAL_ABORT)
        deliver_abort (m, hello->code, text, fd);
    else if (hello->kind == DIAL_SOCKET)
        deliver_socket (m, hello, fd);
    else
        close (fd);
    eventfd_write (m->event, 1);
}

void mesh_state (struct mesh *m, struct mesh_report *s)
{
    long peer = atomic_load (&m->waits);

    s->waits = peer < 0 ? -1 : m->world[peer];
    s->calls = atomic_load (&m->calls);
    s->seconds = (int64_t)(monotonic () - atomic_load (&m->since));
}

static struct hello hello_to (const struct mesh *m, long peer, uint32_t kind)
{
    return (struct hello){ .kind = kind,
                           .from = m->home->rank,
                           .to = m->world[peer],
                           .channel = m->channel };
}

static const struct card *card_of (const struct mesh *m, long peer)
{
    return &m->home->cards[m->world[peer]];
}

static const struct card *own_card (const struct mesh *m)
{
    return &m->home->cards[m->home->rank];
}

int mesh_dial (struct mesh *m, long peer, struct slurmdl_error *err)
{
    struct hello w = hello_to (m, peer, DIAL_LINK);
    int fd = m->links[peer].out;

    if (fd >= 0)
        return fd;
    fd = dial_rank (
        own_card (m), card_of (m, peer), &w, NULL, monotonic () + m->timeout);
    if (fd < 0)
        return errno == ETIMEDOUT ? mesh_late (m, peer, err)
                                  : mesh_lost (m, peer, err);
    return m->links[peer].out = fd;
}

/* Those with whom there is a connection, and so many more that all are
 * reached when each tells its own. */
static bool is_told (const struct mesh *m, long peer)
{
    unsigned long bits = (unsigned long)(peer ^ m->rank);

    return peer != m->rank
           && ((bits & (bits - 1)) == 0 || m->links[peer].out >= 0
               || atomic_load (&m->links[peer].in) >= 0);
}

static void tell (struct mesh *m)
{
    for (long r = 0; r < m->size; r++) {
        struct hello w = hello_to (m, r, DIAL_ABORT);
        int fd;
        if (!is_told (m, r))
            continue;
        w.code = m->code;
        fd = dial_rank (
            own_card (m), card_of (m, r), &w, m->why, monotonic () + 0.5);
        if (fd >= 0)
            close (fd);
    }
}

/* The first reason is the cause. */
static void set_reason (struct mesh *m, int code, const char *why)
{
    pthread_mutex_lock (&m->home->mutex);
    if (!atomic_load (&m->aborted)) {
        m->code = code;
        snprintf (m->why, sizeof (m->why), "%s", why);
        atomic_store (&m->aborted, true);
    }
    pthread_mutex_unlock (&m->home->mutex);
}

static int report (struct mesh *m, struct slurmdl_error *err)
{
    if (!m->failed) {
        m->failed = true;
        tell (m);
    }
    atomic_store (&m->waits, -1);
    errno = m->code;
    return errorf (err, "%s", m->why);
}

int mesh_fail (
    struct mesh *m, int code, struct slurmdl_error *err, const char *fmt, ...)
{
    char text[DIAL_TEXT];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    set_reason (m, code, text);
    return report (m, err);
}

int mesh_usable (struct mesh *m, struct slurmdl_error *err)
{
    if (home_is_foreign (m->home)) {
        errno = ENOTCONN;
        return errorf (err, "the communicator is the parent process's");
    }
    if (!atomic_load (&m->aborted))
        return 0;
    return report (m, err);
}

int mesh_lost (struct mesh *m, long peer, struct slurmdl_error *err)
{
    double until = monotonic () + 0.2;
    struct pollfd p = { .fd = m->event, .events = POLLIN };
    eventfd_t value;

    while (!atomic_load (&m->aborted) && monotonic () < until) {
        poll (&p, 1, 20);
        eventfd_read (m->event, &value);
    }
    return mesh_fail (m,
                      ECONNRESET,
                      err,
                      "rank %ld on %s has gone: its process or host has "
                      "ended, or the network between",
                      mesh_world_rank (m, peer),
                      mesh_host (m, peer));
}

int mesh_late (struct mesh *m, long peer, struct slurmdl_error *err)
{
    return mesh_fail (m,
                      ETIMEDOUT,
                      err,
                      "rank %ld on %s did not come within %g s",
                      mesh_world_rank (m, peer),
                      mesh_host (m, peer),
                      m->timeout);
}

void mesh_abort (struct mesh *m, const char *why)
{
    char text[DIAL_TEXT];

    if (home_is_foreign (m->home))
        return;
    snprintf (text,
              sizeof (text),
              "rank %ld on %s gave up: %s",
              mesh_world_rank (m, m->rank),
              mesh_host (m, m->rank),
              why ? why : "no reason given");
    set_reason (m, ECONNRESET, text);
    report (m, NULL);
}

static long first_ended (const struct mesh *m)
{
    const struct member *self = &own_card (m)->member;

    for (long r = 0; r < m->size; r++)
        if (r != m->rank && m->node[r] == m->node[m->rank]
            && member_has_ended (&card_of (m, r)->member, self))
            return r;
    return -1;
}

int mesh_check (struct mesh *m, struct slurmdl_error *err)
{
    long before = m->suspect;

    if (mesh_usable (m, err) < 0)
        return -1;
    m->suspect = first_ended (m);
    return m->suspect >= 0 && m->suspect == before
               ? mesh_lost (m, m->suspect, err)
               : 0;
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
        if (p[1].revents && (fd = take_socket (m, peer)) >= 0)
            return fd;
        if (p[1].revents)
            return mesh_lost (m, peer, err);
        eventfd_read (m->event, &value);
    }
}

int mesh_socket (struct mesh *m, long peer, struct slurmdl_error *err)
{
    struct hello w = hello_to (m, peer, DIAL_SOCKET);
    int fd;

    if (mesh_usable (m, err) < 0)
        return -1;
    if (peer > m->rank)
        return await_socket (m, peer, err);
    fd = dial_rank (
        own_card (m), card_of (m, peer), &w, NULL, monotonic () + m->timeout);
    if (fd >= 0)
        return fd;
    return errno == ETIMEDOUT ? mesh_late (m, peer, err)
                              : mesh_lost (m, peer, err);
}
