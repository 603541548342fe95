/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms over a mesh, for those that choose between them. */
#include "runtime/comm/flat/parts.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/reduce/reduce.h"

void parts_even (size_t *at, long ranks, size_t n)
{
    size_t size = (size_t)ranks;

    at[0] = 0;
    for (size_t r = 0; r < size; r++)
        at[r + 1] = at[r] + n / size + (r < n % size);
}

/* Parts 'first' to 'last' - 1 counted from ours, in one piece of memory, or in
 * two. */
static void span (const struct parts *p, char *base, long rank, long first, long last,
                  struct iovec v[2])
{
    long a = (rank + first) % p->n;
    long b = a + (last - first);
    size_t begin = p->at[a] * p->size;
    size_t end = p->at[b < p->n ? b : p->n] * p->size;

    v[0] = (struct iovec){ base + begin, end - begin };
    v[1] = (struct iovec){ base, b > p->n ? p->at[b - p->n] * p->size : 0 };
}

/* What comes is added to 'from', which gives 'to', multiplied by the factor
 * while it is in the cache. */
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

/* The part that is in the middle of an odd number waits for the next step. */
static void keep_middle (const struct parts *p, long rank, long i)
{
    long r = (rank + i) % p->n;
    size_t begin = p->at[r] * p->size;

    if (p->in != p->out)
        memcpy (p->out + begin, p->in + begin, (p->at[r + 1] - p->at[r]) * p->size);
}

int parts_reduce_scatter (struct mesh *m, const struct parts *p, struct slurmdl_error *err)
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
        span (p, from, rank, half, s, t.out);
        span (p, from, rank, 0, s - half, f.from);
        span (p, p->out, rank, 0, s - half, f.to);
        t.reduce_n = f.to[0].iov_len + f.to[1].iov_len;
        rv = mesh_sendrecv (m, &t, err);
        if (s == p->n && s % 2 == 1)
            keep_middle (p, rank, half - 1);
        from = p->out;
    }
    return rv;
}

int parts_allgather (struct mesh *m, const struct parts *p, struct slurmdl_error *err)
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
        span (p, p->out, rank, 0, s - half, t.out);
        span (p, p->out, rank, half, s, t.in);
        rv = mesh_sendrecv (m, &t, err);
    }
    return rv;
}

/* all[i] becomes what the i-th rank after this one has. */
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

int parts_gather_reduce (struct mesh *m, const void *in, void *out, size_t n,
                         enum slurmdl_type type, enum slurmdl_op op, struct slurmdl_error *err)
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

/* Give one segment while the next one comes. */
int parts_chain (struct mesh *m, char *data, size_t bytes, long root, struct slurmdl_error *err)
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
