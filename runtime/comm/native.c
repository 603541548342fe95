/* SPDX-License-Identifier: Apache-2.0 */
/* The back end that is always there: host memory, over the mesh. */
#include "runtime/comm/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/backend.h"
#include "runtime/comm/reduce.h"
#include "runtime/error.h"

struct native {
    struct mesh *m;
    long rank, size;
    size_t *at; /* size + 1 numbers */
};

static int native_probe (struct slurmdl_error *err)
{
    (void)err;
    return 0;
}

static void native_close (void *self)
{
    struct native *b = self;

    if (b)
        free (b->at);
    free (b);
}

static int native_open (struct mesh *m, void **self, struct slurmdl_error *err)
{
    struct native *b = calloc (1, sizeof (*b));

    if (!b || !(b->at = calloc ((size_t)mesh_size (m) + 1, sizeof (*b->at)))) {
        free (b);
        return errorf (err, "out of memory");
    }
    b->m = m;
    b->rank = mesh_rank (m);
    b->size = mesh_size (m);
    *self = b;
    return 0;
}

static void native_abort (void *self)
{
    struct native *b = self;

    mesh_abort (b->m, "aborted");
}

static struct parts parts_of (struct native *b,
                              void *data,
                              size_t n,
                              enum slurmdl_type type,
                              enum slurmdl_op op)
{
    parts_even (b->at, b->size, n);
    return (struct parts){ data, b->at, b->size, type, slurmdl_type_size (type),
                           op };
}

static void average (const struct native *b, const struct parts *p)
{
    long r = b->rank;

    if (p->op == SLURMDL_AVERAGE)
        reduce_scale (p->data + p->at[r] * p->size,
                      p->at[r + 1] - p->at[r],
                      p->type,
                      1.0 / (double)b->size);
}

static void to_bytes (size_t *at, long size, size_t element)
{
    for (long r = 0; r <= size; r++)
        at[r] *= element;
}

static int native_allreduce (void *self,
                             const void *in,
                             void *out,
                             size_t n,
                             enum slurmdl_type type,
                             enum slurmdl_op op,
                             struct slurmdl_error *err)
{
    struct native *b = self;
    struct parts p = parts_of (b, out, n, type, op);

    if (in != out)
        memcpy (out, in, n * p.size);
    if (ring_reduce_scatter (b->m, &p, err) < 0)
        return -1;
    average (b, &p);
    to_bytes (b->at, b->size, p.size);
    return ring_allgather (b->m, out, b->at, err);
}

/* Each rank's part of 'data', reduced, goes to 'root'. */
static int collect (struct native *b,
                    char *data,
                    char *out,
                    long root,
                    struct slurmdl_error *err)
{
    size_t *at = b->at;
    int rv = 0;

    if (b->rank != root)
        return mesh_send (
            b->m, root, data + at[b->rank], at[b->rank + 1] - at[b->rank], err);
    for (long r = 0; r < b->size && rv == 0; r++) {
        if (r == root)
            memcpy (out + at[r], data + at[r], at[r + 1] - at[r]);
        else
            rv = mesh_recv (b->m, r, out + at[r], at[r + 1] - at[r], err);
    }
    return rv;
}

static int native_reduce (void *self,
                          const void *in,
                          void *out,
                          size_t n,
                          enum slurmdl_type type,
                          enum slurmdl_op op,
                          long root,
                          struct slurmdl_error *err)
{
    struct native *b = self;
    size_t bytes = n * slurmdl_type_size (type);
    char *work = malloc (bytes);
    struct parts p = parts_of (b, work, n, type, op);
    int rv = work ? 0 : errorf (err, "out of memory: %zu bytes", bytes);

    if (rv == 0) {
        memcpy (work, in, bytes);
        rv = ring_reduce_scatter (b->m, &p, err);
    }
    if (rv == 0) {
        average (b, &p);
        to_bytes (b->at, b->size, p.size);
        rv = collect (b, work, out, root, err);
    }
    free (work);
    return rv;
}

static int native_reduce_scatter (void *self,
                                  const void *in,
                                  void *out,
                                  const size_t *counts,
                                  enum slurmdl_type type,
                                  enum slurmdl_op op,
                                  struct slurmdl_error *err)
{
    struct native *b = self;
    struct parts p = {
        NULL, b->at, b->size, type, slurmdl_type_size (type), op
    };
    size_t bytes;
    int rv;

    b->at[0] = 0;
    for (long r = 0; r < b->size; r++)
        b->at[r + 1] = b->at[r] + counts[r];
    bytes = b->at[b->size] * p.size;
    if (!(p.data = malloc (bytes)))
        return errorf (err, "out of memory: %zu bytes", bytes);
    memcpy (p.data, in, bytes);
    rv = ring_reduce_scatter (b->m, &p, err);
    average (b, &p);
    if (rv == 0)
        memcpy (
            out, p.data + b->at[b->rank] * p.size, counts[b->rank] * p.size);
    free (p.data);
    return rv;
}

static int native_allgather (void *self,
                             const void *in,
                             void *out,
                             const size_t *bytes,
                             struct slurmdl_error *err)
{
    struct native *b = self;
    char *own;

    b->at[0] = 0;
    for (long r = 0; r < b->size; r++)
        b->at[r + 1] = b->at[r] + bytes[r];
    own = (char *)out + b->at[b->rank];
    if (in != own)
        memmove (own, in, bytes[b->rank]);
    return ring_allgather (b->m, out, b->at, err);
}

/* A binomial tree: a rank that has it gives it to the one 2^k after it. */
static int native_broadcast (
    void *self, void *data, size_t bytes, long root, struct slurmdl_error *err)
{
    struct native *b = self;
    long n = b->size;
    long v = (b->rank - root + n) % n;
    long bit = 1;
    int rv = 0;

    while (bit < n && !(v & bit))
        bit <<= 1;
    if (v)
        rv = mesh_recv (b->m, (v - bit + root) % n, data, bytes, err);
    for (bit >>= 1; bit > 0 && rv == 0; bit >>= 1)
        if (v + bit < n)
            rv = mesh_send (b->m, (v + bit + root) % n, data, bytes, err);
    return rv;
}

static size_t sum (const size_t *a, long n)
{
    size_t s = 0;

    for (long i = 0; i < n; i++)
        s += a[i];
    return s;
}

static int native_alltoall (void *self,
                            const void *in,
                            const size_t *to,
                            void *out,
                            const size_t *from,
                            struct slurmdl_error *err)
{
    struct native *b = self;
    int rv = 0;

    for (long s = 0; s < b->size && rv == 0; s++) {
        long dst = (b->rank + s) % b->size;
        long src = (b->rank - s + b->size) % b->size;
        rv = mesh_exchange (b->m,
                            dst,
                            (const char *)in + sum (to, dst),
                            to[dst],
                            src,
                            (char *)out + sum (from, src),
                            from[src],
                            err);
    }
    return rv;
}

/* Dissemination: after step k a rank knows of the 2^k before it. */
static int native_barrier (void *self, struct slurmdl_error *err)
{
    struct native *b = self;
    int rv = 0;

    for (long d = 1; d < b->size && rv == 0; d <<= 1)
        rv = mesh_exchange (b->m,
                            (b->rank + d) % b->size,
                            NULL,
                            0,
                            (b->rank - d + b->size) % b->size,
                            NULL,
                            0,
                            err);
    return rv;
}

const struct comm_backend comm_backend_native = {
    .name = "native",
    .probe = native_probe,
    .open = native_open,
    .close = native_close,
    .abort = native_abort,
    .allreduce = native_allreduce,
    .reduce = native_reduce,
    .reduce_scatter = native_reduce_scatter,
    .allgather = native_allgather,
    .broadcast = native_broadcast,
    .alltoall = native_alltoall,
    .barrier = native_barrier,
};
