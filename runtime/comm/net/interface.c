/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of this machine's network interfaces. */
#include "runtime/comm/net/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>

static int bits_of (const uint8_t *mask, int n)
{
    int bits = 0;

    for (int i = 0; i < n; i++)
        bits += __builtin_popcount (mask[i]);
    return bits;
}

static bool interface_address_of (const struct ifaddrs *i, struct interface_address *a)
{
    const struct sockaddr_in *v4 = (const void *)i->ifa_addr;
    const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

    memset (a, 0, sizeof (*a));
    if (i->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *m = (const void *)i->ifa_netmask;
        a->family = 4;
        memcpy (a->bytes, &v4->sin_addr, 4);
        a->prefix = m ? (uint8_t)bits_of ((const void *)&m->sin_addr, 4) : 32;
        return true;
    }
    if (i->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL (&v6->sin6_addr)) {
        const struct sockaddr_in6 *m = (const void *)i->ifa_netmask;
        a->family = 6;
        memcpy (a->bytes, &v6->sin6_addr, 16);
        a->prefix = m ? (uint8_t)bits_of ((const void *)&m->sin6_addr, 16) : 128;
        return true;
    }
    return false;
}

/* The addresses of such interfaces are often the same on all hosts. */
static bool is_virtual (const char *name)
{
    static const char *const heads[] = {
        "docker", "virbr", "br-", "cni", "lxc", "podman", "vmnet"
    };

    for (size_t i = 0; i < sizeof (heads) / sizeof (*heads); i++)
        if (strncmp (name, heads[i], strlen (heads[i])) == 0)
            return true;
    return false;
}

static bool listed (const char *list, const char *name)
{
    size_t n = strlen (name);

    for (const char *c = list; c; c = strchr (c, ',')) {
        c += *c == ',';
        if (strncmp (c, name, n) == 0 && (c[n] == ',' || c[n] == '\0'))
            return true;
    }
    return false;
}

/* The pass in which to take an address: IPv4 before IPv6, real before virtual. */
static int pass_of (const struct ifaddrs *i, const char *wanted)
{
    int pass = i->ifa_addr->sa_family == AF_INET6;

    if (wanted && *wanted)
        return listed (wanted, i->ifa_name) ? pass : -1;
    return pass + 2 * is_virtual (i->ifa_name);
}

int interface_addresses (const char *wanted, struct interface_address *to, int room)
{
    struct ifaddrs *all = NULL;
    int n = 0;

    if (getifaddrs (&all) < 0)
        return 0;
    for (int pass = 0; pass < 4; pass++)
        for (const struct ifaddrs *i = all; i && n < room; i = i->ifa_next)
            if (i->ifa_addr && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK)
                && pass_of (i, wanted) == pass && interface_address_of (i, &to[n]))
                n++;
    freeifaddrs (all);
    return n;
}

socklen_t interface_socket (const struct interface_address *a, int port, union interface_socket *to)
{
    memset (to, 0, sizeof (*to));
    if (a->family == 4) {
        to->v4.sin_family = AF_INET;
        to->v4.sin_port = htons ((uint16_t)port);
        memcpy (&to->v4.sin_addr, a->bytes, 4);
        return sizeof (to->v4);
    }
    to->v6.sin6_family = AF_INET6;
    to->v6.sin6_port = htons ((uint16_t)port);
    memcpy (&to->v6.sin6_addr, a->bytes, 16);
    return sizeof (to->v6);
}
