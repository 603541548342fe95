/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in which all ranks of a mesh are alike: which algorithm when. */
#include "runtime/comm/flat/flat.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/flat/parts.h"
#include "runtime/comm/reduce/reduce.h"

/* Bytes of all ranks together up to which each rank reduces them itself; bytes
 * a rank from which a broadcast goes along a chain. */
enum { GATHER_MOST = 64 * 1024, CHAIN_LEAST = 256 * 1024 };

static int no_memory (size_t bytes, struct slurmdl_error *err)
{
    return errorf (err, "out of memory: %zu bytes", bytes);
}

/* Where each rank's part begins, NULL: out of memory. */
static size_t *places (const struct mesh *m)
{
    return calloc ((size_t)mesh_size (m) + 1, sizeof (size_t));
}

static size_t *places_of (const struct mesh *m, const size_t *counts)
{
    size_t *at = places (m);

    for (long r = 0; at && r < mesh_size (m); r++)
        at[r + 1] = at[r] + counts[r];
    return at;
}

static struct parts parts_of (struct mesh *m, const struct collective *c, void *out,
                              const size_t *at)
{
    return (struct parts){ c->in,   out,  at, mesh_size (m), slurmdl_type_size (c->type),
                           c->type, c->op };
}

static size_t bytes_of (const struct collective *c)
{
    return c->n * slurmdl_type_size (c->type);
}

static int small_allreduce (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    int rv = parts_gather_reduce (m, c->in, c->out, c->n, c->type, c->op, err);

    if (rv == 0 && c->op == SLURMDL_AVERAGE)
        reduce_scale (c->out, c->n, c->type, 1.0 / (double)mesh_size (m));
    return rv;
}

static int large_allreduce (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    size_t *at = places (m);
    struct parts p = parts_of (m, c, c->out, at);
    int rv;

    if (!at)
        return no_memory (sizeof (*at), err);
    parts_even (at, p.n, c->n);
    rv = parts_reduce_scatter (m, &p, err);
    if (rv == 0)
        rv = parts_allgather (m, &p, err);
    free (at);
    return rv;
}

static int allreduce (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    size_t bytes = bytes_of (c);
    size_t size = (size_t)mesh_size (m);

    if (size == 1) {
        if (c->in != c->out)
            memcpy (c->out, c->in, bytes);
        return 0;
    }
    return bytes <= GATHER_MOST / size ? small_allreduce (m, c, err) : large_allreduce (m, c, err);
}

/* Each rank's part of 'data', reduced, goes to 'root'. */
static int collect (struct mesh *m, char *data, const size_t *at, char *out, long root,
                    struct slurmdl_error *err)
{
    long me = mesh_rank (m);
    int rv = 0;

    if (me != root)
        return mesh_send (m, root, data + at[me], at[me + 1] - at[me], err);
    for (long r = 0; r < mesh_size (m) && rv == 0; r++) {
        if (r == root)
            memcpy (out + at[r], data + at[r], at[r + 1] - at[r]);
        else
            rv = mesh_recv (m, r, out + at[r], at[r + 1] - at[r], err);
    }
    return rv;
}

static int large_reduce (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    size_t bytes = bytes_of (c);
    size_t *at = places (m);
    char *work = malloc (bytes);
    struct parts p = parts_of (m, c, work, at);
    int rv = at && work ? 0 : no_memory (bytes, err);

    if (rv == 0) {
        parts_even (at, p.n, c->n);
        rv = parts_reduce_scatter (m, &p, err);
    }
    if (rv == 0) {
        for (long r = 0; r <= p.n; r++)
            at[r] *= p.size;
        rv = collect (m, work, at, c->out, c->root, err);
    }
    free (work);
    free (at);
    return rv;
}

static int reduce (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    struct collective all = *c;
    size_t bytes = bytes_of (c);
    int rv;

    if (bytes > GATHER_MOST / (size_t)mesh_size (m))
        return large_reduce (m, c, err);
    if (mesh_rank (m) == c->root)
        return allreduce (m, c, err);
    if (!(all.out = malloc (bytes + 1)))
        return no_memory (bytes, err);
    rv = allreduce (m, &all, err);
    free (all.out);
    return rv;
}

static int reduce_scatter (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    long me = mesh_rank (m);
    size_t *at = places_of (m, c->counts);
    struct parts p = parts_of (m, c, NULL, at);
    size_t bytes = at ? at[p.n] * p.size : 0;
    int rv = 0;

    if (!at || !(p.out = malloc (bytes + 1)))
        rv = no_memory (bytes, err);
    if (rv == 0)
        rv = parts_reduce_scatter (m, &p, err);
    if (rv == 0) {
        const char *from = p.n > 1 ? p.out : p.in;
        memcpy (c->out, from + at[me] * p.size, c->counts[me] * p.size);
    }
    free (p.out);
    free (at);
    return rv;
}

static int allgather (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    long me = mesh_rank (m);
    size_t *at = places_of (m, c->counts);
    char *out = c->out;
    struct parts p = { out, out, at, mesh_size (m), 1, SLURMDL_U8, SLURMDL_SUM };
    int rv;

    if (!at)
        return no_memory (sizeof (*at), err);
    if (c->counts[me] && c->in != out + at[me])
        memmove (out + at[me], c->in, c->counts[me]);
    rv = parts_allgather (m, &p, err);
    free (at);
    return rv;
}

/* A binomial tree: a rank that has it gives it to the one 2^k after it. */
static int tree_broadcast (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    long n = mesh_size (m);
    long v = (mesh_rank (m) - c->root + n) % n;
    long bit = 1;
    int rv = 0;

    while (bit < n && !(v & bit))
        bit <<= 1;
    if (v)
        rv = mesh_recv (m, (v - bit + c->root) % n, c->out, c->n, err);
    for (bit >>= 1; bit > 0 && rv == 0; bit >>= 1)
        if (v + bit < n)
            rv = mesh_send (m, (v + bit + c->root) % n, c->out, c->n, err);
    return rv;
}

static int broadcast (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    if (mesh_size (m) > 2 && c->n / (size_t)mesh_size (m) >= CHAIN_LEAST)
        return parts_chain (m, c->out, c->n, c->root, err);
    return tree_broadcast (m, c, err);
}

static int alltoall (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    long n = mesh_size (m);
    long me = mesh_rank (m);
    size_t *give = places_of (m, c->counts);
    size_t *get = places_of (m, c->from);
    int rv = give && get ? 0 : no_memory ((size_t)n * sizeof (*give), err);

    for (long s = 0; s < n && rv == 0; s++) {
        long dst = (me + s) % n;
        long src = (me - s + n) % n;
        rv = mesh_exchange (m, dst, (const char *)c->in + give[dst], c->counts[dst], src,
                            (char *)c->out + get[src], c->from[src], err);
    }
    free (give);
    free (get);
    return rv;
}

/* Dissemination: after step k a rank knows of the 2^k after it. */
static int barrier (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    long n = mesh_size (m);
    long me = mesh_rank (m);
    int rv = 0;

    (void)c;
    for (long d = 1; d < n && rv == 0; d <<= 1)
        rv = mesh_exchange (m, (me - d + n) % n, NULL, 0, (me + d) % n, NULL, 0, err);
    return rv;
}

int flat_run (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    static int (*const run[COMM_KINDS]) (struct mesh *, const struct collective *,
                                         struct slurmdl_error *) = {
        [COMM_ALLREDUCE] = allreduce,
        [COMM_REDUCE] = reduce,
        [COMM_REDUCE_SCATTER] = reduce_scatter,
        [COMM_ALLGATHER] = allgather,
        [COMM_BROADCAST] = broadcast,
        [COMM_ALLTOALL] = alltoall,
        [COMM_BARRIER] = barrier,
    };

    return run[c->what](m, c, err);
}
