/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of the parameter server, and where a parameter is. */
#include "runtime/comm/ps/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/comm/mesh/socket.h"

/* ---- where a parameter is ---- */

/* The finaliser of MurmurHash3. */
uint64_t ps_mix (uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

/* FNV-1a, 64 bits. */
uint64_t ps_key (const char *name)
{
    uint64_t h = 0xcbf29ce484222325ULL;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3ULL;
    return h;
}

void ps_shard (uint64_t key,
               uint64_t n,
               long server,
               long servers,
               uint64_t *lo,
               uint64_t *count)
{
    uint64_t all = (uint64_t)servers;
    uint64_t s = ((uint64_t)server + ps_mix (key) % all) % all;
    uint64_t blocks = n / PS_BLOCK + (n % PS_BLOCK > 0);
    uint64_t each = blocks / all;
    uint64_t more = blocks % all;
    uint64_t hi;

    *lo = (each * s + (s < more ? s : more)) * PS_BLOCK;
    hi = *lo + (each + (s < more)) * PS_BLOCK;
    *count = hi <= n ? hi - *lo : *lo < n ? n - *lo : 0;
}

/* ---- sockets ---- */

static void add_address (struct ps_entry *e, int *n, const struct sockaddr *a)
{
    const void *at = NULL;

    if (a->sa_family == AF_INET)
        at = &((const struct sockaddr_in *)(const void *)a)->sin_addr;
    else if (a->sa_family == AF_INET6
             && !((const struct sockaddr_in6 *)(const void *)a)->sin6_scope_id)
        at = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    if (at && *n < PS_ADDRESSES
        && inet_ntop (
            a->sa_family, at, e->address[*n], sizeof (e->address[*n])))
        ++*n;
}

/* Those that other machines reach before that of this one. */
static void own_addresses (struct ps_entry *e)
{
    struct ifaddrs *all;
    int n = 0;

    if (getifaddrs (&all) < 0)
        return;
    for (unsigned loop = 0; loop < 2; loop++)
        for (struct ifaddrs *i = all; i; i = i->ifa_next)
            if (i->ifa_addr && (i->ifa_flags & IFF_UP)
                && !(i->ifa_flags & IFF_LOOPBACK) == !loop)
                add_address (e, &n, i->ifa_addr);
    freeifaddrs (all);
}

static int listen_on (int family, struct ps_entry *e)
{
    int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int fd = socket (family, type, 0);
    struct sockaddr_storage a = { .ss_family = (sa_family_t)family };
    socklen_t len = family == AF_INET ? sizeof (struct sockaddr_in)
                                      : sizeof (struct sockaddr_in6);
    int off = 0;

    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof (off));
    if (bind (fd, (struct sockaddr *)&a, len) < 0 || listen (fd, 1024) < 0
        || getsockname (fd, (struct sockaddr *)&a, &len) < 0) {
        close (fd);
        return -1;
    }
    e->port = ntohs (family == AF_INET
                         ? ((struct sockaddr_in *)(void *)&a)->sin_port
                         : ((struct sockaddr_in6 *)(void *)&a)->sin6_port);
    return fd;
}

static int name_address (const char *address, struct ps_entry *e)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *all;
    int n = 0;

    if (getaddrinfo (address, NULL, &hints, &all)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    for (struct addrinfo *i = all; i; i = i->ai_next)
        add_address (e, &n, i->ai_addr);
    freeaddrinfo (all);
    return 0;
}

int pswire_listen (const char *address, struct ps_entry *e)
{
    int fd;

    if (address && *address) {
        if (name_address (address, e) < 0)
            return -1;
    } else
        own_addresses (e);
    fd = listen_on (AF_INET6, e);
    return fd >= 0 ? fd : listen_on (AF_INET, e);
}

void pswire_tune (int fd, double grace)
{
    int seconds = grace < 3 ? 1 : (int)(grace / 3);

    socket_tune (fd, seconds, seconds, 3);
}

/* TCP_USER_TIMEOUT would also end a connection whose peer only does not read
 * for a while; and when something was last sent says nothing, as what is sent
 * again counts.
 */
bool pswire_is_dead (int fd, double grace, struct ps_pulse *pulse)
{
    double now = monotonic ();
    bool slept = now - pulse->looked > PS_LOOK_MAX;
    struct tcp_info i;
    socklen_t len = sizeof (i);

    if (now - pulse->looked < 0.3
        || getsockopt (fd, IPPROTO_TCP, TCP_INFO, &i, &len) < 0)
        return false;
    pulse->looked = now;
    if (slept || i.tcpi_unacked == 0
        || now - i.tcpi_last_ack_recv / 1000.0 > pulse->alive)
        pulse->alive = now;
    return now - pulse->alive > grace;
}

static int wait_for (int fd, short events, double until)
{
    struct pollfd p = { .fd = fd, .events = events };
    double left = until - monotonic ();
    int n = left > 0 ? poll (&p, 1, (int)(left * 1000) + 1) : 0;

    if (n == 0)
        errno = ETIMEDOUT;
    return n > 0 || (n < 0 && errno == EINTR) ? 0 : -1;
}

static int connect_to (const char *address, unsigned port)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct addrinfo *a = NULL;
    char service[16];
    int fd = -1;
    int e = 0;
    socklen_t len = sizeof (e);

    snprintf (service, sizeof (service), "%u", port);
    if (getaddrinfo (address, service, &hints, &a))
        return -1;
    fd = socket (a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect (fd, a->ai_addr, a->ai_addrlen) < 0
        && errno != EINPROGRESS)
        e = errno;
    else if (fd >= 0
             && (wait_for (fd, POLLOUT, monotonic () + 2) < 0
                 || getsockopt (fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0))
        e = errno;
    freeaddrinfo (a);
    if (fd >= 0 && e) {
        close (fd);
        fd = -1;
        errno = e;
    }
    return fd;
}

int pswire_connect (const struct ps_entry *e)
{
    int fd = -1;

    errno = EADDRNOTAVAIL;
    for (int i = 0; fd < 0 && i < PS_ADDRESSES && *e->address[i]; i++)
        fd = connect_to (e->address[i], e->port);
    return fd;
}

int pswire_send (int fd, const void *data, size_t n, double seconds)
{
    double until = monotonic () + seconds;
    const char *p = data;

    while (n > 0) {
        ssize_t k = send (fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (k < 0 && wait_for (fd, POLLOUT, until) < 0)
            return -1;
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return 0;
}

int pswire_recv (int fd, void *data, size_t n, double seconds)
{
    double until = monotonic () + seconds;
    char *p = data;

    while (n > 0) {
        ssize_t k = recv (fd, p, n, 0);
        if (k == 0)
            errno = ECONNRESET;
        if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
            return -1;
        if (k < 0 && wait_for (fd, POLLIN, until) < 0)
            return -1;
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return 0;
}
