/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in which all ranks of a mesh have the same role: the algorithms, and
 * when to use each.
 */
#include "runtime/comm/native/native.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/mesh/mesh.h"
#include "runtime/comm/reduce/reduce.h"

/* An array in parts, one per rank.  Part r covers elements at[r] to at[r + 1] - 1. */
struct parts {
    const char *in; /* read only; may be 'out' */
    char *out;
    const size_t *at;
    long n;
    size_t size; /* bytes per element */
    enum slurmdl_type type;
    enum slurmdl_op op;
};

/* Reduce-scatter and all-gather both take ceil (log2 (ranks)) steps for any number
 * of ranks.  In total, each rank sends everything except its own part once (the
 * circulant graph of Traeff, "Optimal, Non-pipelined Reduce-scatter and Allreduce
 * Algorithms", 2024, arXiv:2410.14234).  In each step a rank sends half of the
 * parts that it still handles to the rank that many places after it.
 */

/* n / ranks elements each, plus one for each of the first n % ranks. */
static void parts_even (size_t *at, long ranks, size_t n)
{
    size_t size = (size_t)ranks;

    at[0] = 0;
    for (size_t r = 0; r < size; r++)
        at[r + 1] = at[r] + n / size + (r < n % size);
}

/* The parts 'first' to 'last' - 1 counted from ours, in one or two pieces of memory. */
static void part_span (const struct parts *p, char *base, long rank, long first, long last,
                       struct iovec v[2])
{
    long a = (rank + first) % p->n;
    long b = a + (last - first);
    size_t begin = p->at[a] * p->size;
    size_t end = p->at[b < p->n ? b : p->n] * p->size;

    v[0] = (struct iovec){ base + begin, end - begin };
    v[1] = (struct iovec){ base, b > p->n ? p->at[b - p->n] * p->size : 0 };
}

/* Add received data to 'from' and store the result in 'to'.  Multiply it by the
 * factor while it is in the cache.
 */
struct reduction {
    const struct parts *p;
    double factor;
    struct iovec from[2], to[2];
};

static void reduce_piece (const struct reduction *f, int i, size_t offset, const char *data,
                          size_t n)
{
    char *to = (char *)f->to[i].iov_base + offset;

    if (n == 0)
        return;
    reduce_pair (to, (const char *)f->from[i].iov_base + offset, data, n / f->p->size, f->p->type,
                 f->p->op);
    if (f->factor != 1)
        reduce_scale (to, n / f->p->size, f->p->type, f->factor);
}

static void reduce_cb (void *arg, size_t offset, const void *data, size_t n)
{
    const struct reduction *f = arg;
    size_t first = f->to[0].iov_len;
    size_t in_first = offset >= first ? 0 : n > first - offset ? first - offset : n;

    reduce_piece (f, 0, offset, data, in_first);
    reduce_piece (f, 1, offset + in_first - first, (const char *)data + in_first, n - in_first);
}

/* With an odd number of parts, the middle one waits for the next step. */
static void keep_middle (const struct parts *p, long rank, long i)
{
    long r = (rank + i) % p->n;
    size_t begin = p->at[r] * p->size;

    if (p->in != p->out)
        memcpy (p->out + begin, p->in + begin, (p->at[r + 1] - p->at[r]) * p->size);
}

/* Reduce 'in' so that this rank's part of the result ends up in its part of 'out'.
 * The rest of 'out' is overwritten.
 */
static int parts_reduce_scatter (struct mesh *m, const struct parts *p, struct slurmdl_error *err)
{
    long rank = mesh_rank (m);
    char *from = (char *)p->in;
    double factor = p->op == SLURMDL_AVERAGE ? 1.0 / (double)p->n : 1;
    int rv = 0;

    for (long s = p->n, half; s > 1 && rv == 0; s = half) {
        bool last = s == 2;
        struct reduction f = { .p = p, .factor = last ? factor : 1 };
        struct mesh_sendrecv t = { .reduce = reduce_cb, .arg = &f };
        half = (s + 1) / 2;
        t.to = (rank + half) % p->n;
        t.from = (rank - half + p->n) % p->n;
        part_span (p, from, rank, half, s, t.out);
        part_span (p, from, rank, 0, s - half, f.from);
        part_span (p, p->out, rank, 0, s - half, f.to);
        t.reduce_n = f.to[0].iov_len + f.to[1].iov_len;
        rv = mesh_sendrecv (m, &t, err);
        if (s == p->n && s % 2 == 1)
            keep_middle (p, rank, half - 1);
        from = p->out;
    }
    return rv;
}

/* Collect all parts in 'out', where each rank already has its own. */
static int parts_allgather (struct mesh *m, const struct parts *p, struct slurmdl_error *err)
{
    long rank = mesh_rank (m);
    long steps[64];
    int n = 0;
    int rv = 0;

    for (long s = p->n; s > 1; s = (s + 1) / 2)
        steps[n++] = s;
    while (n-- > 0 && rv == 0) {
        long s = steps[n];
        long half = (s + 1) / 2;
        struct mesh_sendrecv t = { .to = (rank - half + p->n) % p->n,
                                   .from = (rank + half) % p->n };
        part_span (p, p->out, rank, 0, s - half, t.out);
        part_span (p, p->out, rank, half, s, t.in);
        rv = mesh_sendrecv (m, &t, err);
    }
    return rv;
}

/* Fill all[i] with the data of the i-th rank after this one. */
static int gather_all (struct mesh *m, char *all, size_t bytes, struct slurmdl_error *err)
{
    long n = mesh_size (m);
    long rank = mesh_rank (m);
    int rv = 0;

    for (long d = 1; d < n && rv == 0; d *= 2) {
        size_t some = (size_t)(d < n - d ? d : n - d) * bytes;
        rv = mesh_exchange (m, (rank - d + n) % n, all, some, (rank + d) % n,
                            all + (size_t)d * bytes, some, err);
    }
    return rv;
}

/* For few bytes, each rank collects the data of all ranks and reduces them itself,
 * in the order of ranks.  This also takes ceil (log2 (ranks)) steps, half as many
 * as the two above together.
 */
static int parts_gather_reduce (struct mesh *m, const void *in, void *out, size_t n,
                                enum slurmdl_type type, enum slurmdl_op op,
                                struct slurmdl_error *err)
{
    long size = mesh_size (m);
    long rank = mesh_rank (m);
    size_t bytes = n * slurmdl_type_size (type);
    char *all = malloc ((size_t)size * (bytes + sizeof (void *)));
    const void **each = (const void **)(void *)all;
    char *data = all + (size_t)size * sizeof (void *);
    int rv;

    if (!all)
        return errorf (err, "out of memory");
    memcpy (data, in, bytes);
    rv = gather_all (m, data, bytes, err);
    for (long r = 0; r < size; r++)
        each[r] = data + (size_t)((r - rank + size) % size) * bytes;
    if (rv == 0)
        reduce_many (out, each, (size_t)size, n, type, op);
    free (all);
    return rv;
}

enum { SEGMENT = 256 * 1024 };

/* For many bytes, each rank passes segments to the next.  It sends one segment
 * while it receives the next.
 */
static int parts_chain (struct mesh *m, char *data, size_t bytes, long root,
                        struct slurmdl_error *err)
{
    long n = mesh_size (m);
    long v = (mesh_rank (m) - root + n) % n;
    long after = v < n - 1 ? (mesh_rank (m) + 1) % n : -1;
    long before = v > 0 ? (mesh_rank (m) - 1 + n) % n : -1;
    size_t have = v > 0 ? 0 : bytes;
    size_t given = after < 0 ? bytes : 0;
    int rv = 0;

    while ((have < bytes || given < bytes) && rv == 0) {
        size_t get = bytes - have < SEGMENT ? bytes - have : SEGMENT;
        size_t give = have - given < SEGMENT ? have - given : SEGMENT;
        rv = mesh_exchange (m, after >= 0 && give > 0 ? after : -1, data + given, give,
                            before >= 0 && get > 0 ? before : -1, data + have, get, err);
        have += before >= 0 ? get : 0;
        given += after >= 0 ? give : 0;
    }
    return rv;
}

/* GATHER_MOST: bytes of all ranks together up to which each rank reduces them
 * itself.  CHAIN_LEAST: bytes per rank from which a broadcast uses a chain.
 */
enum { GATHER_MOST = 64 * 1024, CHAIN_LEAST = 256 * 1024 };

static int fail_no_memory (size_t bytes, struct slurmdl_error *err)
{
    return errorf (err, "out of memory: %zu bytes", bytes);
}

/* An array for the start of each rank's part, or NULL if out of memory. */
static size_t *part_places (const struct mesh *m)
{
    return calloc ((size_t)mesh_size (m) + 1, sizeof (size_t));
}

static size_t *places_of (const struct mesh *m, const size_t *counts)
{
    size_t *at = part_places (m);

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

static size_t collective_bytes (const struct collective *c)
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
    size_t *at = part_places (m);
    struct parts p = parts_of (m, c, c->out, at);
    int rv;

    if (!at)
        return fail_no_memory (sizeof (*at), err);
    parts_even (at, p.n, c->n);
    rv = parts_reduce_scatter (m, &p, err);
    if (rv == 0)
        rv = parts_allgather (m, &p, err);
    free (at);
    return rv;
}

static int flat_allreduce (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    size_t bytes = collective_bytes (c);
    size_t size = (size_t)mesh_size (m);

    if (size == 1) {
        if (c->in != c->out)
            memcpy (c->out, c->in, bytes);
        return 0;
    }
    return bytes <= GATHER_MOST / size ? small_allreduce (m, c, err) : large_allreduce (m, c, err);
}

/* Send each rank's reduced part of 'data' to 'root'. */
static int collect_parts (struct mesh *m, char *data, const size_t *at, char *out, long root,
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
    size_t bytes = collective_bytes (c);
    size_t *at = part_places (m);
    char *work = malloc (bytes);
    struct parts p = parts_of (m, c, work, at);
    int rv = at && work ? 0 : fail_no_memory (bytes, err);

    if (rv == 0) {
        parts_even (at, p.n, c->n);
        rv = parts_reduce_scatter (m, &p, err);
    }
    if (rv == 0) {
        for (long r = 0; r <= p.n; r++)
            at[r] *= p.size;
        rv = collect_parts (m, work, at, c->out, c->root, err);
    }
    free (work);
    free (at);
    return rv;
}

static int flat_reduce (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    struct collective all = *c;
    size_t bytes = collective_bytes (c);
    int rv;

    if (bytes > GATHER_MOST / (size_t)mesh_size (m))
        return large_reduce (m, c, err);
    if (mesh_rank (m) == c->root)
        return flat_allreduce (m, c, err);
    if (!(all.out = malloc (bytes + 1)))
        return fail_no_memory (bytes, err);
    rv = flat_allreduce (m, &all, err);
    free (all.out);
    return rv;
}

static int flat_reduce_scatter (struct mesh *m, const struct collective *c,
                                struct slurmdl_error *err)
{
    long me = mesh_rank (m);
    size_t *at = places_of (m, c->counts);
    struct parts p = parts_of (m, c, NULL, at);
    size_t bytes = at ? at[p.n] * p.size : 0;
    int rv = 0;

    if (!at || !(p.out = malloc (bytes + 1)))
        rv = fail_no_memory (bytes, err);
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

static int flat_allgather (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    long me = mesh_rank (m);
    size_t *at = places_of (m, c->counts);
    char *out = c->out;
    struct parts p = { out, out, at, mesh_size (m), 1, SLURMDL_U8, SLURMDL_SUM };
    int rv;

    if (!at)
        return fail_no_memory (sizeof (*at), err);
    if (c->counts[me] && c->in != out + at[me])
        memmove (out + at[me], c->in, c->counts[me]);
    rv = parts_allgather (m, &p, err);
    free (at);
    return rv;
}

/* Broadcast along a binomial tree: a rank that has the data passes them to the rank
 * 2^k after it.
 */
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

static int flat_broadcast (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    if (mesh_size (m) > 2 && c->n / (size_t)mesh_size (m) >= CHAIN_LEAST)
        return parts_chain (m, c->out, c->n, c->root, err);
    return tree_broadcast (m, c, err);
}

static int flat_alltoall (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
{
    long n = mesh_size (m);
    long me = mesh_rank (m);
    size_t *give = places_of (m, c->counts);
    size_t *get = places_of (m, c->from);
    int rv = give && get ? 0 : fail_no_memory ((size_t)n * sizeof (*give), err);

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

/* Dissemination barrier: after step k, a rank knows about the 2^k ranks after it. */
static int flat_barrier (struct mesh *m, const struct collective *c, struct slurmdl_error *err)
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
        [COMM_ALLREDUCE] = flat_allreduce,
        [COMM_REDUCE] = flat_reduce,
        [COMM_REDUCE_SCATTER] = flat_reduce_scatter,
        [COMM_ALLGATHER] = flat_allgather,
        [COMM_BROADCAST] = flat_broadcast,
        [COMM_ALLTOALL] = flat_alltoall,
        [COMM_BARRIER] = flat_barrier,
    };

    return run[c->what](m, c, err);
}
