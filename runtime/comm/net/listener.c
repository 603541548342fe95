/* SPDX-License-Identifier: Apache-2.0 */
/* Listen, accept, and find out who calls; strangers are bounded. */
#include "runtime/comm/net/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/socket.h"

enum { HEAD = sizeof (struct handshake), STRANGER_S = 10 };

static int listen_at (const struct sockaddr *a, socklen_t n)
{
    int fd = socket_new (a->sa_family);
    int one = 1, zero = 0;

    if (fd < 0)
        return -1;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    if (a->sa_family == AF_INET6)
        setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof (zero));
    return socket_keep (fd,
                        bind (fd, a, n) < 0 || listen (fd, 4096) < 0 ? -1 : 0);
}

static int listen_everywhere (int port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6,
                                .sin6_port = htons ((uint16_t)port),
                                .sin6_addr = in6addr_any };
    struct sockaddr_in four = { .sin_family = AF_INET,
                                .sin_port = htons ((uint16_t)port) };
    int fd = listen_at ((struct sockaddr *)&six, sizeof (six));

    /* a kernel without IPv6 */
    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        fd = listen_at ((struct sockaddr *)&four, sizeof (four));
    return fd;
}

int listener_bind (const char *host, int port)
{
    struct addrinfo *list = NULL;
    int fd = -1;

    if (host)
        list = address_look_up (strcmp (host, "localhost") ? host : "127.0.0.1",
                                port,
                                AI_NUMERICHOST);

    if (list && address_is_loopback (list->ai_addr))
        fd = listen_at (list->ai_addr, list->ai_addrlen);
    else
        fd = listen_everywhere (port);
    if (list)
        freeaddrinfo (list);
    return fd;
}

static int bind_range (struct slurmdl_error *err)
{
    const char *range = getenv ("DL_COMM_PORTS");
    int first = 0;
    int last = 0;
    int fd = -1;

    if (range && *range
        && (sscanf (range, "%d-%d", &first, &last) != 2 || first < 1
            || last < first || last > 65535)) {
        errno = EINVAL;
        return errorf (err, "DL_COMM_PORTS=%s: not FIRST-LAST", range);
    }
    for (int i = 0; fd < 0 && i <= last - first; i++)
        fd = listener_bind (
            NULL, first ? first + (i + getpid ()) % (last - first + 1) : 0);
    if (fd < 0)
        errorf (err, "no port to listen at: %s", strerror (errno));
    return fd;
}

int listener_bind_range (struct slurmdl_error *err)
{
    int fd = bind_range (err);

    if (fd < 0)
        return -1;
    if (socket_congestion (fd, err) < 0) {
        close (fd);
        return -1;
    }
    return fd;
}

int listener_port (int fd)
{
    struct sockaddr_in6 a;
    socklen_t n = sizeof (a);

    if (getsockname (fd, (struct sockaddr *)&a, &n) < 0)
        return -1;
    return ntohs (a.sin6_port); /* at the same place for both */
}

bool listener_is_mine (int fd)
{
    struct ucred c;
    socklen_t n = sizeof (c);
    int domain = 0;
    socklen_t nd = sizeof (domain);

    if (getsockopt (fd, SOL_SOCKET, SO_DOMAIN, &domain, &nd) < 0)
        return false;
    if (domain != AF_UNIX)
        return true;
    return getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0
           && c.uid == getuid ();
}

static int accept_one (int listener)
{
    int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        socket_no_delay (fd);
    return fd;
}

/* ---- who calls ---- */

static void drop (struct listener *l, size_t i)
{
    close (l->pending[i].fd);
    free (l->pending[i].body);
    l->pending[i] = l->pending[--l->n];
}

static int make_room (struct listener *l)
{
    size_t room = 2 * l->room + 16;
    struct listener_pending *p;

    if (l->n < l->room)
        return 0;
    if (!(p = realloc (l->pending, room * sizeof (*p))))
        return -1;
    l->pending = p;
    l->room = room;
    return 0;
}

/* The one that has been silent for longest goes. */
static void drop_oldest (struct listener *l, size_t most)
{
    size_t oldest = 0;
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct listener_pending *p = &l->pending[i];
        if (!p->body && (!n++ || p->until < l->pending[oldest].until))
            oldest = i;
    }
    if (n > most)
        drop (l, oldest);
}

static void accept_all (struct listener *l)
{
    int fd;

    while ((fd = accept_one (l->fd)) >= 0) {
        if (!listener_is_mine (fd) || make_room (l) < 0) {
            close (fd);
            continue;
        }
        l->pending[l->n++] =
            (struct listener_pending){ .fd = fd,
                                       .until = monotonic () + STRANGER_S };
        drop_oldest (l, l->strangers);
    }
    if (errno == EMFILE || errno == ENFILE)
        drop_oldest (l, 0);
}

/* Where to put what comes next, at most '*n' bytes. */
static char *next_of (struct listener_pending *p, size_t *n)
{
    if (p->got < HEAD) {
        *n = HEAD - p->got;
        return (char *)&p->head + p->got;
    }
    if (p->got < HEAD + p->head.length) {
        *n = HEAD + p->head.length - p->got;
        return p->body + (p->got - HEAD);
    }
    *n = 1;
    return &p->go;
}

/* Its body has come: 1: that is all, 0: it is to confirm. */
static int answer (struct listener *l, struct listener_pending *p)
{
    const unsigned char *token;

    p->body[p->head.length] = '\0';
    if (!l->answer)
        return 1;
    token = l->answer (l->arg, p->body, p->head.length);
    if (!token
        || send (p->fd, token, HANDSHAKE_TOKEN, MSG_DONTWAIT | MSG_NOSIGNAL)
               != HANDSHAKE_TOKEN)
        return -1;
    p->confirmed = true;
    /* it may be stopped as long as any rank may */
    p->until = monotonic () + l->timeout;
    return 0;
}

/* 1: all was said, 0: there is more to come, -1: it is not welcome. */
static int check (struct listener *l, struct listener_pending *p)
{
    if (p->got < HEAD)
        return 0;
    if (!p->body
        && !handshake_is_good (&p->head, l->service, l->token, l->most)) {
        l->refused++;
        return -1;
    }
    if (!p->body && !(p->body = malloc ((size_t)p->head.length + 1)))
        return -1;
    if (p->got < HEAD + p->head.length)
        return 0;
    return p->confirmed ? p->go != 0 : answer (l, p);
}

static int hear (struct listener *l, struct listener_pending *p)
{
    while (!p->whole) {
        size_t n;
        char *to = next_of (p, &n);
        ssize_t got = recv (p->fd, to, n, MSG_DONTWAIT);
        int rv;
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (got <= 0)
            return -1;
        p->got += (size_t)got;
        if ((rv = check (l, p)) < 0)
            return -1;
        p->whole = rv == 1;
    }
    return 0;
}

struct pollfd *listener_poll (struct listener *l, size_t more)
{
    size_t room = 1 + l->n + more;
    struct pollfd *p;

    if (room > l->poll_room) {
        if (!(p = realloc (l->poll, 2 * room * sizeof (*p))))
            return NULL;
        l->poll = p;
        l->poll_room = 2 * room;
    }
    l->poll[0] = (struct pollfd){ .fd = l->fd, .events = POLLIN };
    for (size_t i = 0; i < l->n; i++)
        l->poll[i + 1] =
            (struct pollfd){ .fd = l->pending[i].fd, .events = POLLIN };
    return l->poll;
}

void listener_serve (struct listener *l)
{
    double now = l->n > 0 ? monotonic () : 0;

    for (size_t i = l->n; i-- > 0;) {
        struct listener_pending *p = &l->pending[i];
        bool said = l->poll[i + 1].revents && hear (l, p) < 0;
        if (said || (!p->whole && now > p->until))
            drop (l, i);
    }
    if (l->poll[0].revents)
        accept_all (l);
}

bool listener_take (struct listener *l, struct listener_arrival *a)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct listener_pending *p = &l->pending[i];
        if (!p->whole)
            continue;
        *a = (struct listener_arrival){ p->fd, p->head, p->body };
        l->pending[i] = l->pending[--l->n];
        return true;
    }
    return false;
}

void listener_close (struct listener *l)
{
    while (l->n > 0)
        drop (l, l->n - 1);
    if (l->fd >= 0)
        close (l->fd);
    free (l->pending);
    free (l->poll);
    l->fd = -1;
    l->pending = NULL;
    l->poll = NULL;
    l->room = l->poll_room = 0;
}
