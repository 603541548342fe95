/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank tells all others of itself: who, where, and how to reach it.
 */
#include "runtime/comm/mesh/peer_info.h"

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

int peer_info_addresses (const struct mesh_peer_info *c)
{
    int n = 0;

    while (n < PEER_ADDRESSES && c->at[n].family)
        n++;
    return n;
}

void peer_info_fill (struct mesh_peer_info *c)
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
        memset (c->token, 0, sizeof (c->token));
    cores (c);
    interface_addresses (getenv ("DL_COMM_INTERFACE"), c->at, PEER_ADDRESSES);
}

void peer_info_end (struct mesh_peer_info *c)
{
    c->host[sizeof (c->host) - 1] = '\0';
    c->word[sizeof (c->word) - 1] = '\0';
    c->member.boot[sizeof (c->member.boot) - 1] = '\0';
}

bool peer_info_same_net (const struct mesh_peer_info *a, const struct mesh_peer_info *b)
{
    return *a->member.boot && strcmp (a->member.boot, b->member.boot) == 0 && a->netns == b->netns;
}

bool peer_info_same_node (const struct mesh_peer_info *a, const struct mesh_peer_info *b)
{
    return peer_info_same_net (a, b) && a->shm && a->shm == b->shm
           && strcmp (a->word, b->word) == 0;
}
