/* SPDX-License-Identifier: Apache-2.0 */
/* What all meshes of a communicator's ranks share: cards, and a listener. */
#include "runtime/comm/mesh/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/mesh/channel.h"

enum { GUESTS = 64 };

/* Someone who has connected and not yet said all that is to be said. */
struct guest {
    int fd;
    size_t got;
    double until;
    bool answered;
    struct hello hello;
    char text[DIAL_TEXT];
    char go;
};

static struct endpoint *homes;
static pthread_mutex_t homes_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t homes_once = PTHREAD_ONCE_INIT;

static void before_fork (void)
{
    pthread_mutex_lock (&homes_mutex);
    for (struct endpoint *h = homes; h; h = h->next)
        pthread_mutex_lock (&h->mutex);
}

static void after_fork (void)
{
    for (struct endpoint *h = homes; h; h = h->next)
        pthread_mutex_unlock (&h->mutex);
    pthread_mutex_unlock (&homes_mutex);
}

/* The others must see that a rank has gone though its children live. */
static void in_child (void)
{
    for (struct endpoint *h = homes; h; h = h->next) {
        if (h->listener >= 0)
            close (h->listener);
        close (h->wake);
        h->listener = h->wake = -1;
        for (struct mesh_pending *p = h->pending; p; p = p->next)
            if (p->fd >= 0)
                close (p->fd);
        for (struct mesh *m = h->meshes; m; m = m->next)
            mesh_forked (m);
    }
    after_fork ();
}

static void watch_forks (void)
{
    pthread_atfork (before_fork, after_fork, in_child);
}

static void list_home (struct endpoint *h)
{
    pthread_once (&homes_once, watch_forks);
    pthread_mutex_lock (&homes_mutex);
    h->next = homes;
    homes = h;
    pthread_mutex_unlock (&homes_mutex);
}

static void unlist_home (struct endpoint *h)
{
    struct endpoint **p = &homes;

    pthread_mutex_lock (&homes_mutex);
    while (*p && *p != h)
        p = &(*p)->next;
    if (*p)
        *p = h->next;
    pthread_mutex_unlock (&homes_mutex);
}

static struct mesh *endpoint_find (struct endpoint *h, uint64_t channel)
{
    struct mesh *m = h->meshes;

    while (m && m->channel != channel)
        m = m->next;
    return m;
}

static void park (struct endpoint *h, const struct guest *g)
{
    struct mesh_pending **end = &h->pending;
    struct mesh_pending *p = calloc (1, sizeof (*p));

    if (!p) {
        close (g->fd);
        return;
    }
    p->hello = g->hello;
    p->fd = g->fd;
    memcpy (p->text, g->text, sizeof (p->text));
    while (*end)
        end = &(*end)->next;
    *end = p;
}

static void answer_query (struct endpoint *h, const struct guest *g)
{
    struct mesh_report s = { .waits = -1 };
    struct mesh *m = endpoint_find (h, g->hello.channel);

    if (m)
        mesh_state (m, &s);
    if (send (g->fd, &s, sizeof (s), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        errno = 0;
    close (g->fd);
}

static bool is_one_of_us (const struct endpoint *h, const struct hello *w)
{
    return w->magic == DIAL_MAGIC && w->to == h->rank && w->from >= 0
           && w->from < h->size && w->text < DIAL_TEXT
           && memcmp (w->token, h->peers[h->rank].token, sizeof (w->token))
                  == 0;
}

/* It has said all; its socket is no longer the listener's. */
static void admit (struct endpoint *h, struct guest *g)
{
    struct mesh *m;

    pthread_mutex_lock (&h->mutex);
    m = endpoint_find (h, g->hello.channel);
    if (g->hello.kind == DIAL_QUERY)
        answer_query (h, g);
    else if (m)
        mesh_deliver (m, &g->hello, g->fd, g->text);
    else
        park (h, g);
    pthread_mutex_unlock (&h->mutex);
    g->fd = -1;
}

/* Where to put what comes next of it, at most '*n' bytes. */
static char *next_of (struct guest *g, size_t *n)
{
    size_t head = sizeof (g->hello);

    if (g->got < head) {
        *n = head - g->got;
        return (char *)&g->hello + g->got;
    }
    if (g->got < head + g->hello.text) {
        *n = head + g->hello.text - g->got;
        return g->text + (g->got - head);
    }
    *n = 1;
    return &g->go;
}

/* Whether it is to be heard further: the first bytes have come, or the text,
 * or that it will use the connection.
 */
static bool is_welcome (struct endpoint *h, struct guest *g)
{
    const uint64_t *token;

    if (g->got < sizeof (g->hello))
        return true;
    if (g->got == sizeof (g->hello) && !is_one_of_us (h, &g->hello))
        return false;
    if (g->answered || g->got < sizeof (g->hello) + g->hello.text)
        return true;
    token = h->peers[g->hello.from].token;
    g->answered = send (g->fd, token, 16, MSG_DONTWAIT | MSG_NOSIGNAL) == 16;
    /* it may be stopped as long as any rank may */
    g->until = monotonic () + h->timeout;
    return g->answered;
}

/* Returns whether it stays a guest. */
static bool hear (struct endpoint *h, struct guest *g)
{
    size_t n;
    char *to = next_of (g, &n);
    ssize_t got = recv (g->fd, to, n, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return monotonic () < g->until;
    if (got <= 0)
        return false;
    g->got += (size_t)got;
    if (!is_welcome (h, g))
        return false;
    if (!g->answered || (dial_needs_go (&g->hello) && !g->go))
        return hear (h, g);
    admit (h, g);
    return false;
}

static void welcome (struct endpoint *h, struct guest *guests, int *n)
{
    int fd = accept4 (h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    dial_watch (fd, h->timeout);
    memset (&guests[*n], 0, sizeof (*guests));
    guests[*n].fd = fd;
    guests[(*n)++].until = monotonic () + 10;
}

static void hear_all (struct endpoint *h, struct guest *guests, int *n)
{
    int kept = 0;

    for (int i = 0; i < *n; i++) {
        if (hear (h, &guests[i]))
            guests[kept++] = guests[i];
        else if (guests[i].fd >= 0)
            close (guests[i].fd);
    }
    *n = kept;
}

static void *listen_on (void *arg)
{
    struct endpoint *h = arg;
    struct guest *guests = calloc (GUESTS, sizeof (*guests));
    struct pollfd p[2 + GUESTS];
    int n = 0;

    for (;;) {
        p[0] = (struct pollfd){ .fd = h->wake, .events = POLLIN };
        p[1] = (struct pollfd){ .fd = n < GUESTS ? h->listener : -1,
                                .events = POLLIN };
        for (int i = 0; i < n; i++)
            p[2 + i] = (struct pollfd){ .fd = guests[i].fd, .events = POLLIN };
        if (poll (p, (nfds_t)(2 + n), n ? 1000 : -1) < 0 && errno != EINTR)
            break;
        if (p[0].revents)
            break;
        if (p[1].revents)
            welcome (h, guests, &n);
        hear_all (h, guests, &n);
    }
    for (int i = 0; i < n; i++)
        close (guests[i].fd);
    free (guests);
    return NULL;
}

static int start_thread (struct endpoint *h, struct slurmdl_error *err)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t old;
    int code;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &old);
    pthread_attr_init (&attr);
    pthread_attr_setstacksize (&attr, 1 << 20);
    code = pthread_create (&h->thread, &attr, listen_on, h);
    pthread_attr_destroy (&attr);
    pthread_sigmask (SIG_SETMASK, &old, NULL);
    h->threaded = code == 0;
    errno = code;
    return code ? errorf (err, "no thread: %s", strerror (code)) : 0;
}

static int meet (struct endpoint *h, struct boot *b, struct slurmdl_error *err)
{
    struct peer_info mine;
    int port = 0;

    if ((h->wake = eventfd (0, EFD_CLOEXEC)) < 0)
        return errorf (err, "eventfd: %s", strerror (errno));
    if (h->size > 1 && (h->listener = dial_listen (&port, err)) < 0)
        return -1;
    peer_info_fill (&mine, port);
    if (boot_allgather (b, &mine, sizeof (mine), h->peers, err) < 0)
        return -1;
    return h->size > 1 ? start_thread (h, err) : 0;
}

static void end (struct endpoint *h)
{
    uint64_t one = 1;

    unlist_home (h);
    if (h->threaded && !endpoint_is_foreign (h)
        && write (h->wake, &one, sizeof (one)) == sizeof (one))
        pthread_join (h->thread, NULL);
    for (struct mesh_pending *p = h->pending, *next; p; p = next) {
        next = p->next;
        if (p->fd >= 0 && !endpoint_is_foreign (h))
            close (p->fd);
        free (p);
    }
    if (h->listener >= 0)
        close (h->listener);
    if (h->wake >= 0)
        close (h->wake);
    pthread_mutex_destroy (&h->mutex);
    free (h->peers);
    free (h);
}

struct endpoint *endpoint_open (struct boot *b, struct slurmdl_error *err)
{
    struct endpoint *h = calloc (1, sizeof (*h));
    int saved;

    if (!h
        || !(h->peers = calloc ((size_t)boot_size (b), sizeof (*h->peers)))) {
        errorf (err, "out of memory");
        free (h);
        return NULL;
    }
    h->uses = 1;
    h->pid = getpid ();
    h->rank = boot_rank (b);
    h->size = boot_size (b);
    h->timeout = boot_timeout (b);
    h->listener = h->wake = -1;
    atomic_init (&h->unreachable, -1);
    pthread_mutex_init (&h->mutex, NULL);
    list_home (h);
    if (meet (h, b, err) == 0)
        return h;
    saved = errno;
    end (h);
    errno = saved;
    return NULL;
}

void endpoint_use (struct endpoint *h)
{
    pthread_mutex_lock (&h->mutex);
    h->uses++;
    pthread_mutex_unlock (&h->mutex);
}

void endpoint_close (struct endpoint *h)
{
    unsigned left;

    pthread_mutex_lock (&h->mutex);
    left = --h->uses;
    pthread_mutex_unlock (&h->mutex);
    if (left == 0)
        end (h);
}

bool endpoint_is_foreign (const struct endpoint *h)
{
    return h->pid != getpid ();
}

void endpoint_enter (struct endpoint *h, struct mesh *m)
{
    struct mesh_pending **p = &h->pending;

    pthread_mutex_lock (&h->mutex);
    m->next = h->meshes;
    h->meshes = m;
    while (*p) {
        struct mesh_pending *this = *p;
        if (this->hello.channel == m->channel) {
            *p = this->next;
            mesh_deliver (m, &this->hello, this->fd, this->text);
            free (this);
        } else {
            p = &this->next;
        }
    }
    pthread_mutex_unlock (&h->mutex);
}

void endpoint_leave (struct endpoint *h, struct mesh *m)
{
    struct mesh **p = &h->meshes;

    pthread_mutex_lock (&h->mutex);
    while (*p && *p != m)
        p = &(*p)->next;
    if (*p)
        *p = m->next;
    pthread_mutex_unlock (&h->mutex);
}
