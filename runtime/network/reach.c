/* SPDX-License-Identifier: Apache-2.0 */
/* Names, addresses and interfaces through which the nodes of a step reach each other. */
#include "runtime/network/reach.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct sockaddr_in *v4 (const struct sockaddr *a)
{
    return (const void *)a;
}

static const struct sockaddr_in6 *v6 (const struct sockaddr *a)
{
    return (const void *)a;
}

static bool is_loopback (const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl (v4 (a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK (&v6 (a)->sin6_addr);
}

/* A link-local address is useless without an interface. */
static bool is_reachable_address (const struct sockaddr *a)
{
    return a->sa_family == AF_INET
           || (a->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL (&v6 (a)->sin6_addr));
}

enum reach_name reach_resolve (const char *name, struct reach_address *to)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    enum reach_name rv = REACH_UNKNOWN;

    to->len = 0;
    if (!*name || getaddrinfo (name, NULL, &hints, &list) != 0)
        return REACH_UNKNOWN;
    for (const struct addrinfo *i = list; i && rv != REACH_FOUND; i = i->ai_next) {
        if (!is_reachable_address (i->ai_addr) || (rv && is_loopback (i->ai_addr)))
            continue;
        memcpy (&to->a, i->ai_addr, i->ai_addrlen);
        to->len = i->ai_addrlen;
        rv = is_loopback (i->ai_addr) ? REACH_LOOPBACK : REACH_FOUND;
    }
    freeaddrinfo (list);
    return rv;
}

int reach_source (const struct reach_address *to, struct reach_address *own)
{
    struct sockaddr_storage there = to->a;
    int fd = socket (there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rv = -1;

    own->len = sizeof (own->a);
    ((struct sockaddr_in *)(void *)&there)->sin_port = htons (9); /* the same for v6 */
    if (fd >= 0 && connect (fd, (struct sockaddr *)&there, to->len) == 0
        && getsockname (fd, (struct sockaddr *)&own->a, &own->len) == 0)
        rv = 0;
    if (fd >= 0)
        close (fd);
    if (rv < 0)
        own->len = 0;
    return rv;
}

static bool is_same_address (const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return v4 (a)->sin_addr.s_addr == v4 (b)->sin_addr.s_addr;
    return a->sa_family == AF_INET6
           && !memcmp (&v6 (a)->sin6_addr, &v6 (b)->sin6_addr, sizeof (struct in6_addr));
}

int reach_interface (const struct reach_address *own, char *buf, size_t size)
{
    const struct sockaddr *a = (const void *)&own->a;
    struct ifaddrs *list = NULL;
    int rv = -1;

    *buf = '\0';
    if (own->len == 0 || getifaddrs (&list) < 0)
        return -1;
    for (const struct ifaddrs *i = list; i && rv < 0; i = i->ifa_next)
        if (is_same_address (i->ifa_addr, a)
            || (i->ifa_addr && i->ifa_flags & IFF_LOOPBACK && is_loopback (a)
                && a->sa_family == i->ifa_addr->sa_family)) {
            snprintf (buf, size, "%s", i->ifa_name);
            rv = 0;
        }
    freeifaddrs (list);
    return rv;
}

void reach_figures (const struct reach_address *a, char *buf, size_t size)
{
    *buf = '\0';
    if (a->len > 0
        && getnameinfo ((const struct sockaddr *)&a->a, a->len, buf, (socklen_t)size, NULL, 0,
                        NI_NUMERICHOST)
               != 0)
        *buf = '\0';
}

static bool is_bridge (const char *name)
{
    char path[64 + IF_NAMESIZE];

    snprintf (path, sizeof (path), "/sys/class/net/%.*s/bridge", IF_NAMESIZE, name);
    return access (path, F_OK) == 0;
}

const char *reach_useless (const char *name, const char *wanted)
{
    struct ifaddrs *list = NULL;
    unsigned flags = 0;
    bool found = false, has_address = false;

    if (getifaddrs (&list) < 0)
        return NULL;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (!strcmp (i->ifa_name, name)) {
            found = true;
            flags = i->ifa_flags;
            has_address |= i->ifa_addr && is_reachable_address (i->ifa_addr);
        }
    freeifaddrs (list);
    if (!found)
        return "is no interface of this node";
    if (flags & IFF_LOOPBACK)
        return "is the loopback interface, which no other node reaches";
    if (!(flags & IFF_UP) || !(flags & IFF_RUNNING))
        return "is down";
    if (!has_address)
        return "has no address";
    if (strcmp (name, wanted) && is_bridge (name))
        return "is a bridge of containers or virtual machines";
    return NULL;
}

bool reach_same_name (const char *a, const char *b)
{
    size_t n = strlen (a), m = strlen (b);

    n -= n > 0 && a[n - 1] == '.';
    m -= m > 0 && b[m - 1] == '.';
    if (n > m) {
        const char *c = a;
        size_t k = n;
        a = b;
        b = c;
        n = m;
        m = k;
    }
    if (n == 0 || strncasecmp (a, b, n))
        return false;
    return m == n || (b[n] == '.' && !memchr (a, '.', n));
}
