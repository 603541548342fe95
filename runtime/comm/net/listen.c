/* SPDX-License-Identifier: Apache-2.0 */
/* Listen on a port of this machine's addresses. */
#include "runtime/comm/net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/comm/net/address.h"
#include "runtime/comm/net/socket.h"

enum { BACKLOG = 4096, TRIES = 100 };

static int listen_at (const struct sockaddr *a, socklen_t n)
{
    int fd = socket_new (a->sa_family);
    int one = 1;

    if (fd < 0)
        return -1;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    if (a->sa_family == AF_INET6)
        setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof (one));
    return socket_keep (fd, bind (fd, a, n) < 0 || listen (fd, BACKLOG) < 0 ? -1 : 0);
}

static int socket_port (int fd)
{
    union interface_socket a;
    socklen_t n = sizeof (a);

    if (getsockname (fd, &a.any, &n) < 0)
        return -1;
    return ntohs (a.v6.sin6_port); /* at the same offset for both families */
}

static int add_socket (struct listen_sockets *s, const struct sockaddr *a, socklen_t n)
{
    int fd = listen_at (a, n);

    if (fd < 0)
        return -1;
    s->fd[s->n++] = fd;
    s->port = socket_port (fd);
    return 0;
}

void listen_close (struct listen_sockets *s)
{
    int saved = errno;

    while (s->n > 0)
        close (s->fd[--s->n]);
    errno = saved;
}

static bool is_repeated_address (const struct interface_address *list, int i)
{
    for (int j = 0; j < i; j++)
        if (!memcmp (&list[i], &list[j], sizeof (*list)))
            return true;
    return false;
}

/* Skip addresses that are not usable now (such as an interface without a cable),
 * but open at least one.
 */
static int open_sockets (struct listen_sockets *s, const struct interface_address *list, int n,
                         int port)
{
    union interface_socket a;

    s->n = 0;
    s->port = port;
    for (int i = 0; i < n; i++) {
        socklen_t size = interface_socket (&list[i], s->port, &a);
        if (is_repeated_address (list, i) || add_socket (s, &a.any, size) == 0
            || errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)
            continue;
        listen_close (s);
        return -1;
    }
    return s->n > 0 ? 0 : -1;
}

/* A port that is free at one address may be taken at the next. */
static int open_one (struct listen_sockets *s, const struct interface_address *list, int n,
                     int port)
{
    int rv = -1;

    for (int i = 0; rv < 0 && i < (port ? 1 : TRIES); i++)
        if ((rv = open_sockets (s, list, n, port)) < 0 && errno != EADDRINUSE)
            break;
    return rv;
}

/* All addresses of this machine: loopback, where some systems use the second
 * address for the host name, and interfaces.
 */
static int own_addresses (struct interface_address *list)
{
    list[0] = (struct interface_address){ 4, 8, { 127, 0, 0, 1 } };
    list[1] = (struct interface_address){ 4, 8, { 127, 0, 1, 1 } };
    return 2 + interface_addresses (NULL, list + 2, LISTEN_ADDRESSES);
}

int listen_open (struct listen_sockets *s, const char *host, int port)
{
    struct interface_address own[LISTEN_SOCKETS];
    struct addrinfo *list = NULL;
    int rv;

    *s = (struct listen_sockets){ .port = port };
    if (host)
        list = address_look_up (address_name (host), port, AI_NUMERICHOST);
    if (list && address_is_loopback (list->ai_addr))
        rv = add_socket (s, list->ai_addr, list->ai_addrlen);
    else
        rv = open_one (s, own, own_addresses (own), port);
    if (list)
        freeaddrinfo (list);
    return rv;
}

static int open_range (struct listen_sockets *s, const struct interface_address *list, int n,
                       struct slurmdl_error *err)
{
    const char *range = getenv ("DL_COMM_PORTS");
    int first = 0;
    int last = 0;
    int rv = -1;

    if (range && *range
        && (sscanf (range, "%d-%d", &first, &last) != 2 || first < 1 || last < first
            || last > 65535)) {
        errno = EINVAL;
        return errorf (err, "DL_COMM_PORTS=%s: not FIRST-LAST", range);
    }
    for (int i = 0; rv < 0 && i <= last - first; i++)
        rv = open_one (s, list, n, first ? first + (i + getpid ()) % (last - first + 1) : 0);
    return rv < 0 ? errorf (err, "no port to listen on: %s", strerror (errno)) : 0;
}

int listen_open_range (struct listen_sockets *s, const struct interface_address *list, int n,
                       struct slurmdl_error *err)
{
    struct interface_address own[LISTEN_SOCKETS];

    *s = (struct listen_sockets){ 0 };
    if (!list)
        n = own_addresses (own);
    if (open_range (s, list ? list : own, n, err) < 0)
        return -1;
    if (socket_congestion (s->fd[0], err) == 0)
        return 0;
    listen_close (s);
    return -1;
}
