/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives in which all ranks of a mesh are alike: nodes do not matter. */
#ifndef RUNTIME_COMM_FLAT_FLAT_H
#define RUNTIME_COMM_FLAT_FLAT_H

#include "runtime/comm/mesh/mesh.h"

/* As the functions of struct comm_backend, which see; of one rank, too. */
int flat_allreduce (struct mesh *m,
                    const void *in,
                    void *out,
                    size_t n,
                    enum slurmdl_type type,
                    enum slurmdl_op op,
                    struct slurmdl_error *err);
int flat_reduce (struct mesh *m,
                 const void *in,
                 void *out,
                 size_t n,
                 enum slurmdl_type type,
                 enum slurmdl_op op,
                 long root,
                 struct slurmdl_error *err);
int flat_reduce_scatter (struct mesh *m,
                         const void *in,
                         void *out,
                         const size_t *counts,
                         enum slurmdl_type type,
                         enum slurmdl_op op,
                         struct slurmdl_error *err);
int flat_allgather (struct mesh *m,
                    const void *in,
                    void *out,
                    const size_t *bytes,
                    struct slurmdl_error *err);
int flat_broadcast (struct mesh *m,
                    void *data,
                    size_t bytes,
                    long root,
                    struct slurmdl_error *err);
int flat_alltoall (struct mesh *m,
                   const void *in,
                   const size_t *to,
                   void *out,
                   const size_t *from,
                   struct slurmdl_error *err);
int flat_barrier (struct mesh *m, struct slurmdl_error *err);

#endif
