/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in two stages: among the ranks of a node, then between nodes through
 * one or more ranks of each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/native/native.h"
#include "runtime/comm/reduce/reduce.h"

/* Channel numbers of the meshes of rails and leaders; no other mesh uses them. */
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

/* The smallest and largest number of ranks on a node. */
static void measure (const struct hierarchy *h, long *least, long *most)
{
    *least = *most = h->local_size;
    for (long k = 0; k < h->nodes; k++) {
        long size = mesh_local_size (h->mesh, k);

        *least = size < *least ? size : *least;
        *most = size > *most ? size : *most;
    }
}

/* Whether the ranks of every node have shared memory. */
static int all_nodes_share (struct hierarchy *h, bool *all, struct slurmdl_error *err)
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

/* With several nodes, create our rail, or one for the leaders. */
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
    if (most > 1 && all_nodes_share (h, &all, err) < 0)
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

/* Up to this size, the leader of a node exchanges for all its ranks: a message
 * costs more than its contents.
 */
enum { EAGER_MAX = 64 << 10 };

static bool reduces_in_parts (const struct hierarchy *h, size_t bytes)
{
    return h->shape == HIERARCHY_RAILS && bytes > EAGER_MAX;
}

/* The local rank that leads its node.  This is the local rank of 'r' if it can be. */
static long leader_of (const struct hierarchy *h, long r)
{
    return h->shape == HIERARCHY_RAILS ? mesh_local_rank (h->mesh, r) : 0;
}

/* The same call with other memory, without the division for an average. */
static struct collective part_call (const struct collective *c, const void *in, void *out, size_t n)
{
    struct collective p = *c;

    p.in = in;
    p.out = out;
    p.n = n;
    if (p.op == SLURMDL_AVERAGE)
        p.op = SLURMDL_SUM;
    return p;
}

static void divide_average (const struct hierarchy *h, const struct collective *c, void *sum,
                            size_t n)
{
    if (c->op == SLURMDL_AVERAGE)
        reduce_scale (sum, n, c->type, 1.0 / (double)mesh_size (h->mesh));
}

static int fail_hierarchy_memory (struct slurmdl_error *err)
{
    return errorf (err, "out of memory");
}

/* ---- each local rank has a share ---- */

/* Divide 'n' elements into one block for each local rank, starting at multiples of
 * 64 elements.  The caller frees the result.
 */
static size_t *divide_elements (const struct hierarchy *h, size_t n, struct node_layout *l)
{
    size_t size = (size_t)h->local_size, each = (n / size + 64) / 64 * 64;
    size_t *at = calloc (2 * size, sizeof (*at));

    if (!at)
        return NULL;
    for (size_t r = 0; r < size; r++) {
        at[r] = r * each < n ? r * each : n;
        at[size + r] = n - at[r] < each ? n - at[r] : each;
    }
    *l = (struct node_layout){ 1, at, at + size };
    return at;
}

/* Convert the shares to bytes. */
static void to_bytes (const struct hierarchy *h, size_t *at, size_t size)
{
    for (long i = 0; i < 2 * h->local_size; i++)
        at[i] *= size;
}

static int allreduce_parts (struct hierarchy *h, const struct collective *c,
                            struct slurmdl_error *err)
{
    size_t size = slurmdl_type_size (c->type), count, *at;
    struct collective p = part_call (c, c->in, c->out, c->n);
    struct node_layout l;
    char *own;
    int rv;

    if (!(at = divide_elements (h, c->n, &l)))
        return fail_hierarchy_memory (err);
    own = (char *)c->out + l.starts[h->local_rank] * size;
    count = l.counts[h->local_rank];
    rv = node_reduce_scatter (h->node, &p, own, &l, err);
    p = part_call (c, own, own, count);
    if (rv == 0 && count > 0)
        rv = flat_run (h->rail, &p, err);
    if (rv == 0) {
        divide_average (h, c, own, count);
        to_bytes (h, at, size);
        rv = node_allgather (h->node, own, c->out, &l, err);
    }
    free (at);
    return rv;
}

/* ---- the leader exchanges for its node ---- */

static int node_part_reduce (struct hierarchy *h, const struct collective *c, void *out, long root,
                             struct slurmdl_error *err)
{
    struct collective p = part_call (c, c->in, out, c->n);

    p.what = COMM_REDUCE;
    p.root = root;
    if (h->node)
        return node_run (h->node, &p, err);
    if (c->in != out)
        memcpy (out, c->in, c->n * slurmdl_type_size (c->type));
    return 0;
}

static int node_part_broadcast (struct hierarchy *h, void *data, size_t bytes, long root,
                                struct slurmdl_error *err)
{
    struct collective c = { .what = COMM_BROADCAST, .out = data, .n = bytes, .root = root };

    return h->node ? node_run (h->node, &c, err) : 0;
}

static int hierarchy_allreduce (struct hierarchy *h, const struct collective *c,
                                struct slurmdl_error *err)
{
    struct collective p = part_call (c, c->out, c->out, c->n);
    size_t bytes = c->n * slurmdl_type_size (c->type);

    if (reduces_in_parts (h, bytes))
        return allreduce_parts (h, c, err);
    if (node_part_reduce (h, c, c->out, 0, err) < 0)
        return -1;
    if (h->local_rank == 0) {
        if (flat_run (h->rail, &p, err) < 0)
            return -1;
        divide_average (h, c, c->out, c->n);
    }
    return node_part_broadcast (h, c->out, bytes, 0, err);
}

/* Pass the result from the leader of the root's node to the root. */
static int send_to_root (struct hierarchy *h, const void *from, void *out, size_t bytes, long root,
                         struct slurmdl_error *err)
{
    long local = leader_of (h, root), node = mesh_node_of (h->mesh, root);
    long by = h->members[local * h->nodes + node], own = mesh_rank (h->mesh);

    if (own == by && own != root)
        return mesh_send (h->mesh, root, from, bytes, err);
    if (own == root && own != by)
        return mesh_recv (h->mesh, by, out, bytes, err);
    if (own == root)
        memcpy (out, from, bytes);
    return 0;
}

static int hierarchy_reduce (struct hierarchy *h, const struct collective *c,
                             struct slurmdl_error *err)
{
    long by = leader_of (h, c->root);
    bool leads = h->local_rank == by;
    size_t bytes = c->n * slurmdl_type_size (c->type);
    char *sum = leads ? malloc (bytes) : NULL;
    struct collective p = part_call (c, sum, sum, c->n);
    int rv = -1;

    if (leads && !sum)
        return fail_hierarchy_memory (err);
    p.root = mesh_node_of (h->mesh, c->root);
    if (node_part_reduce (h, c, sum, by, err) == 0 && (!leads || flat_run (h->rail, &p, err) == 0))
        rv = send_to_root (h, sum, c->out, bytes, c->root, err);
    if (rv == 0 && mesh_rank (h->mesh) == c->root)
        divide_average (h, c, c->out, c->n);
    free (sum);
    return rv;
}

/* All ranks of the root's node get the data; each rail then carries a share. */
static int broadcast_parts (struct hierarchy *h, const struct collective *c,
                            struct slurmdl_error *err)
{
    struct collective p = *c;
    struct node_layout l;
    size_t *at;
    int rv = 0;

    if (!(at = divide_elements (h, c->n, &l)))
        return fail_hierarchy_memory (err);
    p.root = mesh_node_of (h->mesh, c->root);
    p.out = (char *)c->out + l.starts[h->local_rank];
    p.n = l.counts[h->local_rank];
    if (h->own == p.root)
        rv = node_part_broadcast (h, c->out, c->n, mesh_local_rank (h->mesh, c->root), err);
    if (rv == 0 && p.n > 0)
        rv = flat_run (h->rail, &p, err);
    if (rv == 0 && h->own != p.root)
        rv = node_allgather (h->node, p.out, c->out, &l, err);
    free (at);
    return rv;
}

static int hierarchy_broadcast (struct hierarchy *h, const struct collective *c,
                                struct slurmdl_error *err)
{
    long by = leader_of (h, c->root);
    long local = mesh_local_rank (h->mesh, c->root);
    struct collective p = *c;

    if (reduces_in_parts (h, c->n))
        return broadcast_parts (h, c, err);
    p.root = mesh_node_of (h->mesh, c->root);
    /* the leader gets the data first if it is not the root */
    if (by != local && h->own == p.root && node_part_broadcast (h, c->out, c->n, local, err) < 0)
        return -1;
    if (h->local_rank == by && flat_run (h->rail, &p, err) < 0)
        return -1;
    if (by != local && h->own == p.root)
        return 0;
    return node_part_broadcast (h, c->out, c->n, by, err);
}

static int hierarchy_barrier (struct hierarchy *h, const struct collective *c,
                              struct slurmdl_error *err)
{
    if (h->node && node_run (h->node, c, err) < 0)
        return -1;
    if (h->local_rank == 0 && flat_run (h->rail, c, err) < 0)
        return -1;
    return h->node ? node_run (h->node, c, err) : 0;
}

/* ---- parts of given sizes ---- */

/* The parts of all ranks: those of our rail by node, and those of the rails of all
 * ranks of our node.
 */
struct all_parts {
    struct node_layout layout; /* parts of the node's ranks */
    size_t *memory;
    size_t *rail; /* units of our rail on each node */
    size_t total; /* sum of 'rail' */
};

static int divide (const struct hierarchy *h, const size_t *counts, struct all_parts *p)
{
    size_t nodes = (size_t)h->nodes, rails = (size_t)h->local_size;
    size_t size = (size_t)mesh_size (h->mesh), at = 0;
    size_t *places = calloc (size, sizeof (*places));

    *p = (struct all_parts){ .memory = calloc (2 * nodes * rails + 1, sizeof (*p->memory)) };
    if (!places || !p->memory) {
        free (places);
        free (p->memory);
        return -1;
    }
    for (size_t r = 0; r < size; r++) {
        places[r] = at;
        at += counts[r];
    }
    for (size_t i = 0; i < nodes * rails; i++) {
        p->memory[i] = places[h->members[i]];
        p->memory[nodes * rails + i] = counts[h->members[i]];
    }
    p->layout = (struct node_layout){ nodes, p->memory, p->memory + nodes * rails };
    p->rail = p->memory + nodes * rails + (size_t)h->local_rank * nodes;
    for (size_t k = 0; k < nodes; k++)
        p->total += p->rail[k];
    free (places);
    return 0;
}

static int hierarchy_reduce_scatter (struct hierarchy *h, const struct collective *c,
                                     struct slurmdl_error *err)
{
    struct collective part = part_call (c, c->in, c->out, 0);
    struct all_parts p;
    char *row = NULL;
    int rv = -1;

    if (h->shape == HIERARCHY_LEADERS)
        return flat_run (h->mesh, c, err);
    if (divide (h, c->counts, &p) < 0)
        return fail_hierarchy_memory (err);
    if (h->nodes > 1 && !(row = malloc (p.total * slurmdl_type_size (c->type) + 1))) {
        fail_hierarchy_memory (err);
        goto out;
    }
    rv = node_reduce_scatter (h->node, row ? &part : c, row ? row : c->out, &p.layout, err);
    if (rv < 0 || !row)
        goto out;
    part.in = row;
    part.counts = p.rail;
    if (p.total > 0)
        rv = flat_run (h->rail, &part, err);
    if (rv == 0)
        divide_average (h, c, c->out, p.rail[h->own]);
out:
    free (row);
    free (p.memory);
    return rv;
}

static int hierarchy_allgather (struct hierarchy *h, const struct collective *c,
                                struct slurmdl_error *err)
{
    struct collective part = *c;
    struct all_parts p;
    char *row = NULL;
    int rv = 0;

    if (h->shape == HIERARCHY_LEADERS)
        return flat_run (h->mesh, c, err);
    if (divide (h, c->counts, &p) < 0)
        return fail_hierarchy_memory (err);
    if (h->nodes > 1 && !(row = malloc (p.total + 1)))
        rv = fail_hierarchy_memory (err);
    part.out = row;
    part.counts = p.rail;
    if (row && p.total > 0)
        rv = flat_run (h->rail, &part, err);
    if (rv == 0)
        rv = node_allgather (h->node, row ? row : c->in, c->out, &p.layout, err);
    free (row);
    free (p.memory);
    return rv;
}

static int hierarchy_alltoall (struct hierarchy *h, const struct collective *c,
                               struct slurmdl_error *err)
{
    return flat_run (h->mesh, c, err);
}

int hierarchy_run (struct hierarchy *h, const struct collective *c, struct slurmdl_error *err)
{
    static int (*const run[COMM_KINDS]) (struct hierarchy *, const struct collective *,
                                         struct slurmdl_error *) = {
        [COMM_ALLREDUCE] = hierarchy_allreduce,
        [COMM_REDUCE] = hierarchy_reduce,
        [COMM_REDUCE_SCATTER] = hierarchy_reduce_scatter,
        [COMM_ALLGATHER] = hierarchy_allgather,
        [COMM_BROADCAST] = hierarchy_broadcast,
        [COMM_ALLTOALL] = hierarchy_alltoall,
        [COMM_BARRIER] = hierarchy_barrier,
    };

    return run[c->what](h, c, err);
}
