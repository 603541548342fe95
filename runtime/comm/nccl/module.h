/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the module slurmdl-nccl.so share. */
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdatomic.h>

#include "runtime/comm/backend/backend.h"

/* Memory of the device that comm_queue.room() has given. */
struct nccl_room {
    struct nccl_room *smaller; /* given before, kept until the end */
    size_t size;
    void *data;
};

struct nccl_self {
    struct mesh *mesh;
    ncclComm_t comm;
    cudaStream_t own;    /* ordered after the default one */
    cudaStream_t user;   /* NULL: calls wait for their results */
    cudaStream_t beside; /* of struct comm_queue; NULL: not used yet */
    bool queueing;       /* calls go there, and do not wait */
    bool one_by_one;     /* copies: CUDA does not take several at once */
    double factor;       /* of the next reduction */
    struct nccl_room *rooms[2];
    void *token; /* of a barrier: 4 bytes of the device */
    int device;
    int rank, size;
    bool f8; /* every rank's GPU and NCCL reduce numbers of eight bits */
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
int nccl_settle (struct nccl_self *s, ncclResult_t r, const char *what, struct slurmdl_error *err);

/* Until what was queued in 'stream' is done, without a pause, or with naps, so
 * that the core is free for the program.
 */
int nccl_drain (struct nccl_self *s, cudaStream_t stream, bool naps, const char *what,
                struct slurmdl_error *err);

/* What CUDA says of an error; returns -1.  To be called after a failure. */
int nccl_cuda_failed (cudaError_t e, const char *what, struct slurmdl_error *err);

/* What NCCL says of an error; the communicator has ended.  Returns -1. */
int nccl_failed (struct nccl_self *s, ncclResult_t r, const char *what, struct slurmdl_error *err);

/* queue.c */
extern const struct comm_queue nccl_queue;
void nccl_queue_free (struct nccl_self *s);

/* The functions of struct comm_backend (calls.c). */
bool nccl_takes (void *self, enum slurmdl_type type, enum slurmdl_op op);
int nccl_run (void *self, const struct collective *a, struct slurmdl_error *err);
