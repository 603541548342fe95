/* SPDX-License-Identifier: Apache-2.0 */
/* The back end that is always there: host memory, shared or over the mesh. */
#include <errno.h>

#include "runtime/comm/backend/backend.h"
#include "runtime/comm/flat/flat.h"
#include "runtime/comm/hierarchical/hierarchical.h"

static int native_probe (struct slurmdl_error *err)
{
    (void)err;
    return 0;
}

static int native_open (struct mesh *m, void **self, struct slurmdl_error *err)
{
    *self = hier_open (m, err);
    return *self ? 0 : -1;
}

static void native_close (void *self)
{
    hier_close (self);
}

static void native_abort (void *self)
{
    struct hier *h = self;

    mesh_abort (h->mesh, "aborted");
    hier_abort (h, "aborted");
}

/* Those that wait for us elsewhere are to know why we do not come. */
static int end (struct hier *h, int rv, const struct slurmdl_error *err)
{
    int number = errno;

    if (rv < 0)
        hier_abort (h, err && *err->text ? err->text : "it met an error");
    errno = number;
    return rv;
}

static double factor_of (const struct hier *h, enum slurmdl_op op)
{
    return op == SLURMDL_AVERAGE ? 1.0 / (double)mesh_size (h->mesh) : 1;
}

static int native_allreduce (void *self,
                             const void *in,
                             void *out,
                             size_t n,
                             enum slurmdl_type type,
                             enum slurmdl_op op,
                             struct slurmdl_error *err)
{
    struct hier *h = self;
    int rv = hier_prepare (h, err);

    if (rv == 0 && h->shape == HIER_FLAT)
        rv = flat_allreduce (h->mesh, in, out, n, type, op, err);
    else if (rv == 0 && h->shape == HIER_NODE)
        rv = node_allreduce (
            h->node, in, out, n, type, op, factor_of (h, op), err);
    else if (rv == 0)
        rv = hier_allreduce (h, in, out, n, type, op, err);
    return end (h, rv, err);
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
    struct hier *h = self;
    int rv = hier_prepare (h, err);

    if (rv == 0 && h->shape == HIER_FLAT)
        rv = flat_reduce (h->mesh, in, out, n, type, op, root, err);
    else if (rv == 0 && h->shape == HIER_NODE)
        rv = node_reduce (
            h->node, in, out, n, type, op, factor_of (h, op), root, err);
    else if (rv == 0)
        rv = hier_reduce (h, in, out, n, type, op, root, err);
    return end (h, rv, err);
}

static int native_reduce_scatter (void *self,
                                  const void *in,
                                  void *out,
                                  const size_t *counts,
                                  enum slurmdl_type type,
                                  enum slurmdl_op op,
                                  struct slurmdl_error *err)
{
    struct hier *h = self;
    int rv = hier_prepare (h, err);

    if (rv == 0 && h->shape == HIER_FLAT)
        rv = flat_reduce_scatter (h->mesh, in, out, counts, type, op, err);
    else if (rv == 0)
        rv = hier_reduce_scatter (h, in, out, counts, type, op, err);
    return end (h, rv, err);
}

static int native_allgather (void *self,
                             const void *in,
                             void *out,
                             const size_t *bytes,
                             struct slurmdl_error *err)
{
    struct hier *h = self;
    int rv = hier_prepare (h, err);

    if (rv == 0 && h->shape == HIER_FLAT)
        rv = flat_allgather (h->mesh, in, out, bytes, err);
    else if (rv == 0)
        rv = hier_allgather (h, in, out, bytes, err);
    return end (h, rv, err);
}

static int native_broadcast (
    void *self, void *data, size_t bytes, long root, struct slurmdl_error *err)
{
    struct hier *h = self;
    int rv = hier_prepare (h, err);

    if (rv == 0 && h->shape == HIER_FLAT)
        rv = flat_broadcast (h->mesh, data, bytes, root, err);
    else if (rv == 0 && h->shape == HIER_NODE)
        rv = node_broadcast (h->node, data, bytes, root, err);
    else if (rv == 0)
        rv = hier_broadcast (h, data, bytes, root, err);
    return end (h, rv, err);
}

static int native_alltoall (void *self,
                            const void *in,
                            const size_t *to,
                            void *out,
                            const size_t *from,
                            struct slurmdl_error *err)
{
    struct hier *h = self;
    int rv = hier_prepare (h, err);

    if (rv == 0 && h->shape == HIER_NODE)
        rv = node_alltoall (h->node, in, to, out, from, err);
    else if (rv == 0)
        rv = flat_alltoall (h->mesh, in, to, out, from, err);
    return end (h, rv, err);
}

static int native_barrier (void *self, struct slurmdl_error *err)
{
    struct hier *h = self;
    int rv = hier_prepare (h, err);

    if (rv == 0 && h->shape == HIER_FLAT)
        rv = flat_barrier (h->mesh, err);
    else if (rv == 0 && h->shape == HIER_NODE)
        rv = node_barrier (h->node, err);
    else if (rv == 0)
        rv = hier_barrier (h, err);
    return end (h, rv, err);
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
