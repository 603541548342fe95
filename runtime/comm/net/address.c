/* SPDX-License-Identifier: Apache-2.0 */
/* Names and numeric addresses of hosts. */
#include "runtime/comm/net/address.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "runtime/base/process_id.h"

/* Room for a numeric address. */
enum { ADDRESS_NUMBER = 48 };

int address_split (const char *address, char *host, size_t size, int *port)
{
    const char *colon = strrchr (address, ':');
    size_t n = colon ? (size_t)(colon - address) : 0;
    char *stop;
    long p = colon ? strtol (colon + 1, &stop, 10) : 0;

    if (n > 2 && address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
    }
    if (n == 0 || n >= size || p < 1 || p > 65535 || *stop) {
        errno = EINVAL;
        return -1;
    }
    memcpy (host, address, n);
    host[n] = '\0';
    *port = (int)p;
    return 0;
}

struct addrinfo *address_look_up (const char *host, int port, int flags)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags };
    struct addrinfo *list = NULL;
    char text[16];

    snprintf (text, sizeof (text), "%d", port);
    if (getaddrinfo (host, text, &hints, &list) != 0) {
        errno = EHOSTUNREACH;
        return NULL;
    }
    return list;
}

const char *address_name (const char *host)
{
    return strcasecmp (host, "localhost") ? host : "127.0.0.1";
}

bool address_is_loopback (const struct sockaddr *a)
{
    if (a->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK (&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
    return a->sa_family == AF_INET
           && ntohl (((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
}

static bool is_numeric_host (const char *host)
{
    struct addrinfo *list = address_look_up (host, 1, 0);

    if (list)
        freeaddrinfo (list);
    return list;
}

static bool is_listen_address (const struct sockaddr *a)
{
    return a->sa_family == AF_INET
           || (a->sa_family == AF_INET6
               && !IN6_IS_ADDR_LINKLOCAL (
                   &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr));
}

static int add_number (const struct sockaddr *a, char *to)
{
    socklen_t n =
        a->sa_family == AF_INET ? sizeof (struct sockaddr_in) : sizeof (struct sockaddr_in6);

    return is_listen_address (a)
           && getnameinfo (a, n, to, ADDRESS_NUMBER, NULL, 0, NI_NUMERICHOST) == 0;
}

static int own_numbers (char (*to)[ADDRESS_NUMBER], int room)
{
    struct ifaddrs *list = NULL;
    int n = 0;

    if (getifaddrs (&list) < 0)
        return -1;
    for (const struct ifaddrs *i = list; i && n < room; i = i->ifa_next)
        if (i->ifa_addr && (i->ifa_flags & IFF_UP) && !address_is_loopback (i->ifa_addr))
            n += add_number (i->ifa_addr, to[n]);
    freeifaddrs (list);
    return n;
}

static void append_host (char *buf, size_t size, const char *host)
{
    size_t n = strlen (buf);

    if (n + strlen (host) + 2 <= size)
        snprintf (buf + n, size - n, "%s%s", n ? "," : "", host);
}

void address_own (const char *name, char *buf, size_t size)
{
    char number[16][ADDRESS_NUMBER];
    int n = own_numbers (number, 16);

    *buf = '\0';
    if (name && *name && is_numeric_host (name))
        append_host (buf, size, name);
    for (int i = 0; i < n; i++)
        append_host (buf, size, number[i]);
}

void address_machine (char *buf, size_t size)
{
    struct process_id self = { 0 };
    struct stat st = { 0 };

    process_id_describe (&self);
    *buf = '\0';
    if (*self.boot && stat ("/proc/self/ns/net", &st) == 0)
        snprintf (buf, size, "%.40s.%lu", self.boot, (unsigned long)st.st_ino);
}

void address_of_peer (int fd, char *buf, size_t size)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof (a);
    char host[NI_MAXHOST];

    snprintf (buf, size, "an unknown address");
    if (getpeername (fd, (struct sockaddr *)&a, &n) < 0)
        return;
    if (a.ss_family == AF_UNIX)
        snprintf (buf, size, "this node");
    else if (getnameinfo ((struct sockaddr *)&a, n, host, sizeof (host), NULL, 0, NI_NUMERICHOST)
             == 0)
        snprintf (buf, size, "%s", strncmp (host, "::ffff:", 7) ? host : host + 7);
}
