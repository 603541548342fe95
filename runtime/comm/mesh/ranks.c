/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a mesh, and their nodes. */
#include "runtime/comm/mesh/channel.h"

long mesh_rank (const struct mesh *m)
{
    return m->rank;
}

long mesh_size (const struct mesh *m)
{
    return m->size;
}

double mesh_timeout (const struct mesh *m)
{
    return m->timeout;
}

void mesh_set_timeout (struct mesh *m, double seconds)
{
    m->timeout = seconds;
}

const char *mesh_host (const struct mesh *m, long rank)
{
    return m->endpoint->peers[m->world[rank]].host;
}

long mesh_world_rank (const struct mesh *m, long rank)
{
    return m->world[rank];
}

long mesh_node_of (const struct mesh *m, long rank)
{
    return m->node[rank];
}

long mesh_nodes (const struct mesh *m)
{
    return m->nodes;
}

long mesh_local_rank (const struct mesh *m, long rank)
{
    long n = 0;

    for (long r = 0; r < rank; r++)
        n += m->node[r] == m->node[rank];
    return n;
}

long mesh_local_size (const struct mesh *m, long node)
{
    long n = 0;

    for (long r = 0; r < m->size; r++)
        n += m->node[r] == node;
    return n;
}

uint32_t mesh_called (const struct mesh *m)
{
    return atomic_load (&m->root->tag);
}

void mesh_tag (struct mesh *m, uint32_t tag)
{
    atomic_store (&m->root->tag, tag);
    atomic_fetch_add (&m->root->calls, 1);
}

const struct mesh_peer_info *mesh_peer (const struct mesh *m, long peer)
{
    return &m->endpoint->peers[m->world[peer]];
}

const struct mesh_peer_info *mesh_self (const struct mesh *m)
{
    return &m->endpoint->peers[m->endpoint->rank];
}

long mesh_root_rank (const struct mesh *m, long peer)
{
    for (long r = 0; r < m->root->size; r++)
        if (m->root->world[r] == m->world[peer])
            return r;
    return peer;
}

long mesh_rank_of (const struct mesh *m, int64_t world)
{
    for (long r = 0; r < m->size; r++)
        if (m->world[r] == world)
            return r;
    return -1;
}
