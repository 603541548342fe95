/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the module slurmdl-nccl.so share. */
#ifndef RUNTIME_COMM_NCCL_MODULE_H
#define RUNTIME_COMM_NCCL_MODULE_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdatomic.h>

#include "runtime/comm/backend.h"

struct nccl_self {
    struct mesh *mesh;
    ncclComm_t comm;
    cudaStream_t own;  /* ordered after the default one */
    cudaStream_t user; /* NULL: calls wait for their results */
    void *token;       /* of a barrier: 4 bytes of the device */
    int device;
    int rank, size;
    double timeout;
    atomic_bool aborted;
    bool failed;
};

extern const struct comm_services *nccl_lib;

/* The calling thread's device, for the time of a call: returns what it was. */
int nccl_enter (const struct nccl_self *s);
void nccl_leave (const struct nccl_self *s, int before);

/* Of a call on a non-blocking communicator that has returned 'r': wait until it
 * is on its way.  'what' is waited for.
 */
int nccl_settle (struct nccl_self *s,
                 ncclResult_t r,
                 const char *what,
                 struct slurmdl_error *err);

/* Until what was queued in 'stream' is done. */
int nccl_drain (struct nccl_self *s,
                cudaStream_t stream,
                const char *what,
                struct slurmdl_error *err);

/* The functions of struct comm_backend (calls.c). */
bool nccl_takes (enum slurmdl_type type, enum slurmdl_op op);
int nccl_allreduce (void *self,
                    const void *in,
                    void *out,
                    size_t n,
                    enum slurmdl_type type,
                    enum slurmdl_op op,
                    struct slurmdl_error *err);
int nccl_reduce (void *self,
                 const void *in,
                 void *out,
                 size_t n,
                 enum slurmdl_type type,
                 enum slurmdl_op op,
                 long root,
                 struct slurmdl_error *err);
int nccl_reduce_scatter (void *self,
                         const void *in,
                         void *out,
                         const size_t *counts,
                         enum slurmdl_type type,
                         enum slurmdl_op op,
                         struct slurmdl_error *err);
int nccl_allgather (void *self,
                    const void *in,
                    void *out,
                    const size_t *bytes,
                    struct slurmdl_error *err);
int nccl_broadcast (
    void *self, void *data, size_t bytes, long root, struct slurmdl_error *err);
int nccl_alltoall (void *self,
                   const void *in,
                   const size_t *to,
                   void *out,
                   const size_t *from,
                   struct slurmdl_error *err);
int nccl_barrier (void *self, struct slurmdl_error *err);

#endif
