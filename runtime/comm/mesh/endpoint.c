/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint of a rank: its listener, and the addresses of its peers. */
#include "runtime/comm/mesh/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/net/clean.h"

static struct endpoint *endpoints;
static pthread_mutex_t endpoints_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t endpoints_once = PTHREAD_ONCE_INIT;

static void before_fork (void)
{
    pthread_mutex_lock (&endpoints_mutex);
    for (struct endpoint *h = endpoints; h; h = h->next)
        pthread_mutex_lock (&h->mutex);
}

static void after_fork (void)
{
    for (struct endpoint *h = endpoints; h; h = h->next)
        pthread_mutex_unlock (&h->mutex);
    pthread_mutex_unlock (&endpoints_mutex);
}

/* Close our copies in a child: other ranks must notice the end of a rank even if
 * its children live on.
 */
static void in_child (void)
{
    for (struct endpoint *h = endpoints; h; h = h->next) {
        listen_close (&h->listener.at); /* the rest belongs to the thread */
        close (h->wake);
        h->wake = -1;
        for (struct mesh_pending *p = h->pending; p; p = p->next)
            if (p->fd >= 0)
                close (p->fd);
        for (struct mesh *m = h->meshes; m; m = m->next)
            mesh_forked (m);
    }
    after_fork ();
}

static void watch_endpoint_forks (void)
{
    pthread_atfork (before_fork, after_fork, in_child);
}

static void list_endpoint (struct endpoint *h)
{
    pthread_once (&endpoints_once, watch_endpoint_forks);
    pthread_mutex_lock (&endpoints_mutex);
    h->next = endpoints;
    endpoints = h;
    pthread_mutex_unlock (&endpoints_mutex);
}

static void unlist_endpoint (struct endpoint *h)
{
    struct endpoint **p = &endpoints;

    pthread_mutex_lock (&endpoints_mutex);
    while (*p && *p != h)
        p = &(*p)->next;
    if (*p)
        *p = h->next;
    pthread_mutex_unlock (&endpoints_mutex);
}

static struct mesh *endpoint_find (struct endpoint *h, uint64_t channel)
{
    struct mesh *m = h->meshes;

    while (m && m->channel != channel)
        m = m->next;
    return m;
}

static void answer_query (struct endpoint *h, uint64_t channel, const struct listener_arrival *a)
{
    struct mesh_report s = { .waits = -1 };
    struct mesh *m = endpoint_find (h, channel);
    unsigned char tag[SEAL_TAG];
    struct iovec v[2] = { { &s, sizeof (s) }, { tag, seal_size (a->seal) } };
    struct msghdr msg = { .msg_iov = v, .msg_iovlen = 2 };

    if (m)
        mesh_state (m, &s);
    seal_make (a->seal, &s, sizeof (s), tag);
    if (sendmsg (a->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        errno = 0;
    seal_destroy (a->seal);
    close (a->fd);
}

static bool is_welcome (void *arg, const void *body, size_t n)
{
    const struct endpoint *h = arg;
    struct mesh_hello w;

    if (n != sizeof (w))
        return false;
    memcpy (&w, body, sizeof (w));
    return w.to == h->rank && w.from >= 0 && w.from < h->size;
}

static void admit_arrival (struct endpoint *h, const struct listener_arrival *a)
{
    struct mesh_hello w;
    struct mesh *m;

    memcpy (&w, a->body, sizeof (w));
    w.text[sizeof (w.text) - 1] = '\0';
    clean_text (w.text);
    free (a->body);
    dial_watch (a->fd, h->timeout);
    pthread_mutex_lock (&h->mutex);
    m = endpoint_find (h, w.channel);
    if (w.kind == DIAL_QUERY)
        answer_query (h, w.channel, a);
    else if (m)
        mesh_deliver (m, &w, a->fd, a->seal);
    else
        mesh_pending_add (&h->pending, &w, a->fd, a->seal);
    pthread_mutex_unlock (&h->mutex);
}

static void *listen_on (void *arg)
{
    struct endpoint *h = arg;
    struct listener *l = &h->listener;
    struct listener_arrival a;
    struct pollfd *p;

    while ((p = listener_poll (l, 1))) {
        size_t wake = listener_fds (l);
        p[wake] = (struct pollfd){ .fd = h->wake, .events = POLLIN };
        if (poll (p, (nfds_t)(wake + 1), l->n ? 1000 : -1) < 0 && errno != EINTR)
            break;
        if (p[wake].revents)
            break;
        listener_serve (l);
        while (listener_take (l, &a))
            admit_arrival (h, &a);
    }
    return NULL;
}

static int start_acceptor (struct endpoint *h, struct slurmdl_error *err)
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
    return code ? errorf (err, "cannot start a thread: %s", strerror (code)) : 0;
}

static int start_listening (struct endpoint *h, const struct mesh_peer_info *self,
                            struct slurmdl_error *err)
{
    h->listener = (struct listener){ .at = h->listener.at,
                                     .handshake = dial_handshake (self, h->key, h->plain),
                                     .most = sizeof (struct mesh_hello),
                                     .expected = (size_t)h->size,
                                     .is_welcome = is_welcome,
                                     .arg = h,
                                     .timeout = h->timeout };
    return start_acceptor (h, err);
}

/* Clean what other ranks sent about themselves, because it is printed. */
static void clean_peers (struct endpoint *h)
{
    for (long r = 0; r < h->size; r++) {
        peer_info_end (&h->peers[r]);
        clean_text (h->peers[r].host);
    }
}

static int exchange_endpoints (struct endpoint *h, struct boot *b, struct slurmdl_error *err)
{
    struct mesh_peer_info mine;
    struct interface_address at[LISTEN_SOCKETS] = { { 4, 8, { 127, 0, 0, 1 } } };
    int n;

    if ((h->wake = eventfd (0, EFD_CLOEXEC)) < 0)
        return errorf (err, "eventfd: %s", strerror (errno));
    peer_info_fill (&mine);
    n = peer_info_addresses (&mine);
    memcpy (at + 1, mine.at, (size_t)n * sizeof (*at));
    if (h->size > 1 && listen_open_range (&h->listener.at, at, 1 + n, err) < 0)
        return -1;
    mine.port = (uint16_t)h->listener.at.port;
    if (boot_allgather (b, &mine, sizeof (mine), h->peers, err) < 0)
        return -1;
    clean_peers (h);
    return h->size > 1 ? start_listening (h, &mine, err) : 0;
}

static void endpoint_end (struct endpoint *h)
{
    uint64_t one = 1;

    unlist_endpoint (h);
    if (h->threaded && !endpoint_is_foreign (h)
        && write (h->wake, &one, sizeof (one)) == sizeof (one))
        pthread_join (h->thread, NULL);
    for (struct mesh_pending *p = h->pending, *next; p; p = next) {
        next = p->next;
        if (p->fd >= 0 && !endpoint_is_foreign (h))
            close (p->fd);
        seal_destroy (p->seal);
        free (p);
    }
    if (!endpoint_is_foreign (h))
        listener_close (&h->listener);
    if (h->wake >= 0)
        close (h->wake);
    pthread_mutex_destroy (&h->mutex);
    handshake_forget (h->key, sizeof (h->key));
    free (h->peers);
    free (h);
}

struct endpoint *endpoint_open (struct boot *b, struct slurmdl_error *err)
{
    struct endpoint *h = calloc (1, sizeof (*h));
    int saved;

    if (!h || !(h->peers = calloc ((size_t)boot_size (b), sizeof (*h->peers)))) {
        errorf (err, "out of memory");
        free (h);
        return NULL;
    }
    h->uses = 1;
    h->pid = getpid ();
    h->rank = boot_rank (b);
    h->size = boot_size (b);
    h->timeout = boot_timeout (b);
    h->wake = -1;
    memcpy (h->key, boot_key (b), sizeof (h->key));
    h->plain = boot_is_plain (b);
    atomic_init (&h->unreachable, -1);
    pthread_mutex_init (&h->mutex, NULL);
    list_endpoint (h);
    if (exchange_endpoints (h, b, err) == 0)
        return h;
    saved = errno;
    endpoint_end (h);
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
        endpoint_end (h);
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
            mesh_deliver (m, &this->hello, this->fd, this->seal);
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
