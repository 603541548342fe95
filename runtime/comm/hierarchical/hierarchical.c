/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks share a node, and which exchange data with other nodes. */
#include "runtime/comm/hierarchical/hierarchical.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/flat/flat.h"

/* Of the mesh that rails and leaders make; no other has these numbers. */
enum { CHANNEL_RAIL = 0x40000000, CHANNEL_LEADERS };

struct hierarchy *hierarchy_open (struct mesh *m, struct slurmdl_error *err)
{
    struct hierarchy *h = calloc (1, sizeof (*h));

    if (!h) {
        errorf (err, "out of memory");
        return NULL;
    }
    h->pid = getpid ();
    h->mesh = m;
    h->nodes = mesh_nodes (m);
    h->own = mesh_node_of (m, mesh_rank (m));
    h->local_rank = mesh_local_rank (m, mesh_rank (m));
    h->local_size = mesh_local_size (m, h->own);
    return h;
}

void hierarchy_close (struct hierarchy *h)
{
    if (!h)
        return;
    node_close (h->node);
    mesh_close (h->rail);
    free (h->members);
    free (h);
}

void hierarchy_abort (struct hierarchy *h, const char *why)
{
    if (h->pid != getpid ())
        return;
    if (h->node)
        node_abort (h->node, why);
    if (h->rail)
        mesh_abort (h->rail, why);
}

/* The least and the greatest number of ranks on a node. */
static void measure (const struct hierarchy *h, long *least, long *most)
{
    *least = *most = h->local_size;
    for (long k = 0; k < h->nodes; k++) {
        long size = mesh_local_size (h->mesh, k);

        *least = size < *least ? size : *least;
        *most = size > *most ? size : *most;
    }
}

/* Whether all nodes' ranks have shared memory. */
static int share (struct hierarchy *h, bool *all, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    struct node_group *node = NULL;
    int8_t ok = 1;

    if (h->local_size > 1 && !(node = node_open (h->mesh, &why))) {
        if (errno != ENOTSUP)
            return errorf (err, "%s", why.text);
        ok = 0;
    }
    h->node = node;
    if (h->nodes > 1
        && flat_run (h->mesh,
                     &(struct collective){ .what = COMM_ALLREDUCE,
                                           .type = SLURMDL_I8,
                                           .op = SLURMDL_MIN,
                                           .n = 1,
                                           .in = &ok,
                                           .out = &ok },
                     err)
               < 0)
        return -1;
    *all = ok;
    return 0;
}

static int list_members (struct hierarchy *h, long rails)
{
    size_t n = (size_t)(rails * h->nodes);

    if (!(h->members = calloc (n, sizeof (*h->members))))
        return -1;
    for (long r = 0; r < mesh_size (h->mesh); r++) {
        long local = mesh_local_rank (h->mesh, r);

        if (local < rails)
            h->members[local * h->nodes + mesh_node_of (h->mesh, r)] = r;
    }
    return 0;
}

/* Rails, or one for the leaders, where there are several nodes. */
static int lay_rails (struct hierarchy *h, long rails, struct slurmdl_error *err)
{
    if (list_members (h, rails) < 0)
        return errorf (err, "out of memory");
    if (h->nodes == 1 || h->local_rank >= rails)
        return 0;
    h->rail = mesh_subset (h->mesh, h->members + h->local_rank * h->nodes, h->nodes,
                           rails > 1 ? CHANNEL_RAIL : CHANNEL_LEADERS, err);
    return h->rail ? 0 : -1;
}

int hierarchy_prepare (struct hierarchy *h, struct slurmdl_error *err)
{
    long least, most;
    bool all = false;

    if (mesh_usable (h->mesh, err) < 0)
        return -1;
    if (h->shape != HIERARCHY_UNKNOWN)
        return 0;
    measure (h, &least, &most);
    if (most > 1 && share (h, &all, err) < 0)
        return -1;
    if (!all) {
        node_close (h->node);
        h->node = NULL;
        h->shape = HIERARCHY_FLAT;
        return 0;
    }
    if (lay_rails (h, least == most ? most : 1, err) < 0)
        return -1;
    h->shape = h->nodes == 1 ? HIERARCHY_NODE : least == most ? HIERARCHY_RAILS : HIERARCHY_LEADERS;
    return 0;
}
