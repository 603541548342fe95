/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of nodes with several ranks each. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/flat/flat.h"
#include "runtime/comm/hierarchical/hierarchical.h"
#include "runtime/comm/reduce/reduce.h"

/* Up to so many bytes one rank of a node talks to the others: a message costs
 * more than what is in it. */
enum { LITTLE = 64 << 10 };

static bool in_parts (const struct hier *h, size_t bytes)
{
    return h->shape == HIER_RAILS && bytes > LITTLE;
}

/* The local rank that talks for its node where one does; 'r' if it can. */
static long speaker (const struct hier *h, long r)
{
    return h->shape == HIER_RAILS ? mesh_local_rank (h->mesh, r) : 0;
}

static double factor_of (const struct hier *h, enum slurmdl_op op)
{
    return op == SLURMDL_AVERAGE ? 1.0 / (double)mesh_size (h->mesh) : 1;
}

static enum slurmdl_op sum_of (enum slurmdl_op op)
{
    return op == SLURMDL_AVERAGE ? SLURMDL_SUM : op;
}

static int no_memory (struct slurmdl_error *err)
{
    return errorf (err, "out of memory");
}

/* ---- each local rank has a share ---- */

/* One block for each local rank, of 'n' elements together, begun at multiples
 * of 64 bytes; freed by the caller. */
static size_t *shares (const struct hier *h, size_t n, struct node_layout *l)
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

/* The same in bytes. */
static void to_bytes (const struct hier *h, size_t *at, size_t size)
{
    for (long i = 0; i < 2 * h->local_size; i++)
        at[i] *= size;
}

static int allreduce_parts (struct hier *h,
                            const void *in,
                            char *out,
                            size_t n,
                            enum slurmdl_type type,
                            enum slurmdl_op op,
                            struct slurmdl_error *err)
{
    size_t size = slurmdl_type_size (type), count, *at;
    struct node_layout l;
    char *own;
    int rv;

    if (!(at = shares (h, n, &l)))
        return no_memory (err);
    own = out + l.starts[h->local_rank] * size;
    count = l.counts[h->local_rank];
    rv = node_reduce_scatter (h->node, in, own, &l, type, sum_of (op), 1, err);
    if (rv == 0 && count > 0)
        rv = flat_allreduce (h->rail, own, own, count, type, sum_of (op), err);
    if (rv == 0 && op == SLURMDL_AVERAGE)
        reduce_scale (own, count, type, factor_of (h, op));
    if (rv == 0) {
        to_bytes (h, at, size);
        rv = node_allgather (h->node, own, out, &l, err);
    }
    free (at);
    return rv;
}

/* ---- one rank talks for its node ---- */

static int node_part_reduce (struct hier *h,
                             const void *in,
                             void *out,
                             size_t n,
                             enum slurmdl_type type,
                             enum slurmdl_op op,
                             long root,
                             struct slurmdl_error *err)
{
    if (h->node)
        return node_reduce (h->node, in, out, n, type, op, 1, root, err);
    if (in != out)
        memcpy (out, in, n * slurmdl_type_size (type));
    return 0;
}

static int node_part_broadcast (struct hier *h,
                                void *data,
                                size_t bytes,
                                long root,
                                struct slurmdl_error *err)
{
    return h->node ? node_broadcast (h->node, data, bytes, root, err) : 0;
}

int hier_allreduce (struct hier *h,
                    const void *in,
                    void *out,
                    size_t n,
                    enum slurmdl_type type,
                    enum slurmdl_op op,
                    struct slurmdl_error *err)
{
    size_t bytes = n * slurmdl_type_size (type);

    if (in_parts (h, bytes))
        return allreduce_parts (h, in, out, n, type, op, err);
    if (node_part_reduce (h, in, out, n, type, sum_of (op), 0, err) < 0)
        return -1;
    if (h->local_rank == 0) {
        if (flat_allreduce (h->rail, out, out, n, type, sum_of (op), err) < 0)
            return -1;
        if (op == SLURMDL_AVERAGE)
            reduce_scale (out, n, type, factor_of (h, op));
    }
    return node_part_broadcast (h, out, bytes, 0, err);
}

/* From the root's node's speaker to the root. */
static int hand_over (struct hier *h,
                      const void *from,
                      void *out,
                      size_t bytes,
                      long root,
                      struct slurmdl_error *err)
{
    long local = speaker (h, root), node = mesh_node_of (h->mesh, root);
    long by = h->members[local * h->nodes + node], own = mesh_rank (h->mesh);

    if (own == by && own != root)
        return mesh_send (h->mesh, root, from, bytes, err);
    if (own == root && own != by)
        return mesh_recv (h->mesh, by, out, bytes, err);
    if (own == root)
        memcpy (out, from, bytes);
    return 0;
}

int hier_reduce (struct hier *h,
                 const void *in,
                 void *out,
                 size_t n,
                 enum slurmdl_type type,
                 enum slurmdl_op op,
                 long root,
                 struct slurmdl_error *err)
{
    long by = speaker (h, root), node = mesh_node_of (h->mesh, root);
    bool speaks = h->local_rank == by, rooted = mesh_rank (h->mesh) == root;
    size_t bytes = n * slurmdl_type_size (type);
    char *sum = speaks ? malloc (bytes) : NULL;
    int rv = -1;

    if (speaks && !sum)
        return no_memory (err);
    if (node_part_reduce (h, in, sum, n, type, sum_of (op), by, err) < 0)
        goto out;
    if (speaks
        && flat_reduce (h->rail, sum, sum, n, type, sum_of (op), node, err) < 0)
        goto out;
    rv = hand_over (h, sum, out, bytes, root, err);
    if (rv == 0 && rooted && op == SLURMDL_AVERAGE)
        reduce_scale (out, n, type, factor_of (h, op));
out:
    free (sum);
    return rv;
}

/* All ranks of the root's node have it; each rail takes a share along. */
static int broadcast_parts (struct hier *h,
                            char *data,
                            size_t bytes,
                            long root,
                            struct slurmdl_error *err)
{
    long node = mesh_node_of (h->mesh, root);
    struct node_layout l;
    size_t *at, count;
    char *own;
    int rv = 0;

    if (!(at = shares (h, bytes, &l)))
        return no_memory (err);
    own = data + l.starts[h->local_rank];
    count = l.counts[h->local_rank];
    if (h->own == node)
        rv = node_part_broadcast (
            h, data, bytes, mesh_local_rank (h->mesh, root), err);
    if (rv == 0 && count > 0)
        rv = flat_broadcast (h->rail, own, count, node, err);
    if (rv == 0 && h->own != node)
        rv = node_allgather (h->node, own, data, &l, err);
    free (at);
    return rv;
}

int hier_broadcast (struct hier *h,
                    void *data,
                    size_t bytes,
                    long root,
                    struct slurmdl_error *err)
{
    long node = mesh_node_of (h->mesh, root), by = speaker (h, root);
    long local = mesh_local_rank (h->mesh, root);

    if (in_parts (h, bytes))
        return broadcast_parts (h, data, bytes, root, err);
    /* the speaker gets it first where it is not the root */
    if (by != local && h->own == node
        && node_part_broadcast (h, data, bytes, local, err) < 0)
        return -1;
    if (h->local_rank == by
        && flat_broadcast (h->rail, data, bytes, node, err) < 0)
        return -1;
    if (by != local && h->own == node)
        return 0;
    return node_part_broadcast (h, data, bytes, by, err);
}

int hier_barrier (struct hier *h, struct slurmdl_error *err)
{
    if (h->node && node_barrier (h->node, err) < 0)
        return -1;
    if (h->local_rank == 0 && flat_barrier (h->rail, err) < 0)
        return -1;
    return h->node ? node_barrier (h->node, err) : 0;
}

/* ---- parts of given sizes ---- */

/* Of the whole world's parts: those of our rail, by node, and of all our
 * node's ranks' rails. */
struct world_parts {
    struct node_layout layout; /* of 'size' units */
    size_t *memory;
    size_t *rail; /* units on each node */
    size_t total; /* of them */
};

static int
divide (const struct hier *h, const size_t *counts, struct world_parts *p)
{
    size_t nodes = (size_t)h->nodes, rails = (size_t)h->local_size;
    size_t size = (size_t)mesh_size (h->mesh), at = 0;
    size_t *places = calloc (size, sizeof (*places));

    *p = (struct world_parts){ .memory = calloc (2 * nodes * rails + 1,
                                                 sizeof (*p->memory)) };
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
    p->layout =
        (struct node_layout){ nodes, p->memory, p->memory + nodes * rails };
    p->rail = p->memory + nodes * rails + (size_t)h->local_rank * nodes;
    for (size_t k = 0; k < nodes; k++)
        p->total += p->rail[k];
    free (places);
    return 0;
}

int hier_reduce_scatter (struct hier *h,
                         const void *in,
                         void *out,
                         const size_t *counts,
                         enum slurmdl_type type,
                         enum slurmdl_op op,
                         struct slurmdl_error *err)
{
    struct world_parts p;
    char *row = NULL;
    int rv = -1;

    if (h->shape == HIER_LEADERS)
        return flat_reduce_scatter (h->mesh, in, out, counts, type, op, err);
    if (divide (h, counts, &p) < 0)
        return no_memory (err);
    if (h->nodes > 1
        && !(row = malloc (p.total * slurmdl_type_size (type) + 1))) {
        no_memory (err);
        goto out;
    }
    rv = node_reduce_scatter (h->node,
                              in,
                              row ? row : out,
                              &p.layout,
                              type,
                              sum_of (op),
                              row ? 1 : factor_of (h, op),
                              err);
    if (rv < 0 || !row)
        goto out;
    if (p.total > 0)
        rv = flat_reduce_scatter (
            h->rail, row, out, p.rail, type, sum_of (op), err);
    if (rv == 0 && op == SLURMDL_AVERAGE)
        reduce_scale (out, p.rail[h->own], type, factor_of (h, op));
out:
    free (row);
    free (p.memory);
    return rv;
}

int hier_allgather (struct hier *h,
                    const void *in,
                    void *out,
                    const size_t *bytes,
                    struct slurmdl_error *err)
{
    struct world_parts p;
    char *row = NULL;
    int rv = -1;

    if (h->shape == HIER_LEADERS)
        return flat_allgather (h->mesh, in, out, bytes, err);
    if (divide (h, bytes, &p) < 0)
        return no_memory (err);
    if (h->nodes > 1 && !(row = malloc (p.total + 1))) {
        no_memory (err);
        goto out;
    }
    rv =
        row && p.total > 0 ? flat_allgather (h->rail, in, row, p.rail, err) : 0;
    if (rv == 0)
        rv = node_allgather (h->node, row ? row : in, out, &p.layout, err);
out:
    free (row);
    free (p.memory);
    return rv;
}
