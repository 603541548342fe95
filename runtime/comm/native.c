/* SPDX-License-Identifier: Apache-2.0 */
/* The back end that is always there: host memory, over the mesh. */
#include "runtime/comm/backend.h"
#include "runtime/comm/flat.h"

static int native_probe (struct slurmdl_error *err)
{
    (void)err;
    return 0;
}

static int native_open (struct mesh *m, void **self, struct slurmdl_error *err)
{
    (void)err;
    *self = m;
    return 0;
}

static void native_close (void *self)
{
    (void)self;
}

static void native_abort (void *self)
{
    mesh_abort (self, "aborted");
}

static int native_allreduce (void *self,
                             const void *in,
                             void *out,
                             size_t n,
                             enum slurmdl_type type,
                             enum slurmdl_op op,
                             struct slurmdl_error *err)
{
    return flat_allreduce (self, in, out, n, type, op, err);
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
    return flat_reduce (self, in, out, n, type, op, root, err);
}

static int native_reduce_scatter (void *self,
                                  const void *in,
                                  void *out,
                                  const size_t *counts,
                                  enum slurmdl_type type,
                                  enum slurmdl_op op,
                                  struct slurmdl_error *err)
{
    return flat_reduce_scatter (self, in, out, counts, type, op, err);
}

static int native_allgather (void *self,
                             const void *in,
                             void *out,
                             const size_t *bytes,
                             struct slurmdl_error *err)
{
    return flat_allgather (self, in, out, bytes, err);
}

static int native_broadcast (
    void *self, void *data, size_t bytes, long root, struct slurmdl_error *err)
{
    return flat_broadcast (self, data, bytes, root, err);
}

static int native_alltoall (void *self,
                            const void *in,
                            const size_t *to,
                            void *out,
                            const size_t *from,
                            struct slurmdl_error *err)
{
    return flat_alltoall (self, in, to, out, from, err);
}

static int native_barrier (void *self, struct slurmdl_error *err)
{
    return flat_barrier (self, err);
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
