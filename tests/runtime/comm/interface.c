/* SPDX-License-Identifier: Apache-2.0 */
/* The order and the prefixes of this machine's addresses, with a made-up getifaddrs(). */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "runtime/comm/net/interface.h"
#include "tests/unit.h"

/* ---- the interfaces ---- */

static const struct made_up {
    char name[8];
    unsigned flags;
    const char *address; /* NULL: none */
    const char *mask;    /* NULL: none */
} machine[] = {
    { "lo", IFF_UP | IFF_LOOPBACK, "127.0.0.1", "255.0.0.0" },
    { "docker0", IFF_UP, "172.17.0.1", "255.255.0.0" },
    { "eth0", IFF_UP, NULL, NULL },
    { "eth0", IFF_UP, "fe80::1", "ffff:ffff:ffff:ffff::" },
    { "eth0", IFF_UP, "2001:db8::1", "ffff:ffff:ffff:fff0::" },
    { "eth0", IFF_UP, "10.1.2.3", "255.255.240.0" },
    { "eth1", 0, "10.9.9.9", "255.255.255.0" },
    { "docker0", IFF_UP, "fd00::1", "ffff:ffff:ffff::" },
    { "tun0", IFF_UP, "2001:db8::2", NULL },
    { "tun0", IFF_UP, "10.8.0.1", NULL },
};

static union made_up_socket {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} sockets[COUNT (machine)][2];
static struct ifaddrs list[COUNT (machine)];

static struct sockaddr *fill_socket (union made_up_socket *s, const char *text)
{
    if (!text)
        return NULL;
    s->any.sa_family = strchr (text, ':') ? AF_INET6 : AF_INET;
    assert_int_equal (inet_pton (s->any.sa_family, text,
                                 s->any.sa_family == AF_INET ? (void *)&s->v4.sin_addr
                                                             : (void *)&s->v6.sin6_addr),
                      1);
    return &s->any;
}

int __wrap_getifaddrs (struct ifaddrs **to);
int __wrap_getifaddrs (struct ifaddrs **to)
{
    for (size_t i = 0; i < COUNT (machine); i++)
        list[i] = (struct ifaddrs){
            .ifa_next = i + 1 < COUNT (machine) ? &list[i + 1] : NULL,
            .ifa_name = (char *)machine[i].name,
            .ifa_flags = machine[i].flags,
            .ifa_addr = fill_socket (&sockets[i][0], machine[i].address),
            .ifa_netmask = fill_socket (&sockets[i][1], machine[i].mask),
        };
    *to = list;
    return 0;
}

void __wrap_freeifaddrs (struct ifaddrs *from);
void __wrap_freeifaddrs (struct ifaddrs *from)
{
    assert_ptr_equal (from, list);
}

/* ---- the cases ---- */

/* Check the first 'room' addresses of the interfaces 'wanted'. */
static void check_addresses (const char *wanted, int room, const char *expected)
{
    struct interface_address found[16];
    char text[512] = "", one[INET6_ADDRSTRLEN];
    int n = interface_addresses (wanted, found, room);

    assert_in_range (n, 0, room);
    for (int i = 0; i < n; i++) {
        const struct interface_address *a = &found[i];
        inet_ntop (a->family == 4 ? AF_INET : AF_INET6, a->bytes, one, sizeof (one));
        snprintf (text + strlen (text), sizeof (text) - strlen (text), "%s%s/%d", i ? " " : "", one,
                  a->prefix);
    }
    assert_string_equal (text, expected);
}

CASE (real_before_virtual)
{
    static const char *const all = "10.1.2.3/20 10.8.0.1/32 2001:db8::1/60 2001:db8::2/128 "
                                   "172.17.0.1/16 fd00::1/48";

    check_addresses (NULL, 16, all);
    check_addresses ("", 16, all);
    check_addresses (NULL, 3, "10.1.2.3/20 10.8.0.1/32 2001:db8::1/60");
}

CASE (listed_interfaces_only)
{
    check_addresses ("docker0,tun0", 16, "172.17.0.1/16 10.8.0.1/32 fd00::1/48 2001:db8::2/128");
    check_addresses ("eth", 16, "");
    check_addresses ("lo,eth1", 16, "");
    check_addresses ("ib0,eth0", 16, "10.1.2.3/20 2001:db8::1/60");
}

RUN_CASES ()
