/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank tells all others of itself: who, where, and how to reach it.
 */
#include "runtime/comm/mesh/peer_info.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t inode_of (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 ? st.st_ino : 0;
}

static uint64_t device_of (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 ? st.st_dev : 0;
}

static int bits_of (const uint8_t *mask, int n)
{
    int bits = 0;

    for (int i = 0; i < n; i++)
        bits += __builtin_popcount (mask[i]);
    return bits;
}

static bool address_of (const struct ifaddrs *i, struct peer_address *a)
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
    if (i->ifa_addr->sa_family == AF_INET6
        && !IN6_IS_ADDR_LINKLOCAL (&v6->sin6_addr)) {
        const struct sockaddr_in6 *m = (const void *)i->ifa_netmask;
        a->family = 6;
        memcpy (a->bytes, &v6->sin6_addr, 16);
        a->prefix =
            m ? (uint8_t)bits_of ((const void *)&m->sin6_addr, 16) : 128;
        return true;
    }
    return false;
}

/* Addresses of such interfaces are often the same on all hosts. */
static bool is_virtual (const char *name)
{
    static const char *const heads[] = { "docker", "virbr",  "br-",  "cni",
                                         "lxc",    "podman", "vmnet" };

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

/* 4 before 6, real before virtual: the pass in which an address is taken. */
static int pass_of (const struct ifaddrs *i, const char *wanted)
{
    int pass = i->ifa_addr->sa_family == AF_INET6;

    if (wanted && *wanted)
        return listed (wanted, i->ifa_name) ? pass : -1;
    return pass + 2 * is_virtual (i->ifa_name);
}

static void interfaces (struct mesh_peer_info *c)
{
    const char *wanted = getenv ("DL_COMM_INTERFACE");
    struct ifaddrs *all = NULL;
    int n = 0;

    if (getifaddrs (&all) < 0)
        return;
    for (int pass = 0; pass < 4; pass++)
        for (const struct ifaddrs *i = all; i && n < PEER_ADDRESSES;
             i = i->ifa_next)
            if (i->ifa_addr && (i->ifa_flags & IFF_UP)
                && !(i->ifa_flags & IFF_LOOPBACK) && pass_of (i, wanted) == pass
                && address_of (i, &c->at[n]))
                n++;
    freeifaddrs (all);
}

static void cores (struct mesh_peer_info *c)
{
    cpu_set_t set;
    const unsigned char *bytes = (const void *)&set;

    if (sched_getaffinity (0, sizeof (set), &set) < 0)
        return;
    c->cores = CPU_COUNT (&set);
    c->cores_hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < sizeof (set); i++)
        c->cores_hash = (c->cores_hash ^ bytes[i]) * 1099511628211u;
}

void peer_info_fill (struct mesh_peer_info *c, int port)
{
    const char *word = getenv ("DL_COMM_NODE");
    const char *host = getenv ("SLURMD_NODENAME");

    memset (c, 0, sizeof (*c));
    if (host && *host)
        snprintf (c->host, sizeof (c->host), "%s", host);
    else if (gethostname (c->host, sizeof (c->host) - 1) < 0)
        snprintf (c->host, sizeof (c->host), "?");
    snprintf (c->word, sizeof (c->word), "%s", word ? word : "");
    c->shm = device_of ("/dev/shm");
    c->netns = inode_of ("/proc/self/ns/net");
    process_id_describe (&c->member);
    if (getrandom (c->token, sizeof (c->token), 0) != sizeof (c->token))
        memcpy (c->token, &c->member.nonce, sizeof (c->member.nonce));
    c->port = (uint16_t)port;
    cores (c);
    interfaces (c);
}

void peer_info_end (struct mesh_peer_info *c)
{
    c->host[sizeof (c->host) - 1] = '\0';
    c->word[sizeof (c->word) - 1] = '\0';
    c->member.boot[sizeof (c->member.boot) - 1] = '\0';
}

bool peer_info_same_net (const struct mesh_peer_info *a,
                         const struct mesh_peer_info *b)
{
    return *a->member.boot && strcmp (a->member.boot, b->member.boot) == 0
           && a->netns == b->netns;
}

bool peer_info_same_node (const struct mesh_peer_info *a,
                          const struct mesh_peer_info *b)
{
    return peer_info_same_net (a, b) && a->shm && a->shm == b->shm
           && strcmp (a->word, b->word) == 0;
}
