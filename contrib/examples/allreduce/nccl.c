/* SPDX-License-Identifier: Apache-2.0 */
/* Sum with NCCL, in the memory of the GPU of this local rank. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm.h"

static ncclComm_t world;
static cudaStream_t stream;
static void *memory;
static int rank_of_this;

static int failed (const char *what, const char *why)
{
    fprintf (stderr, "allreduce: rank %d: %s: %s\n", rank_of_this, what, why);
    return -1;
}

#define CUDA_TRY(call)                                                                             \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess)                                                                     \
            return failed (#call, cudaGetErrorString (e_));                                        \
    } while (0)

#define NCCL_TRY(call)                                                                             \
    do {                                                                                           \
        ncclResult_t e_ = (call);                                                                  \
        if (e_ != ncclSuccess)                                                                     \
            return failed (#call, ncclGetErrorString (e_));                                        \
    } while (0)

static int number (const char *name, int *value)
{
    const char *text = getenv (name);

    if (!text)
        return failed (name, "is not set: start with srun --dl=torch");
    *value = atoi (text);
    return 0;
}

static int choose_gpu (const struct place *p)
{
    int n = 0;

    CUDA_TRY (cudaGetDeviceCount (&n));
    /* with one GPU visible to each task its index is 0 */
    CUDA_TRY (cudaSetDevice (n > p->local_rank ? p->local_rank : 0));
    CUDA_TRY (cudaStreamCreate (&stream));
    return 0;
}

static int open_nccl (struct place *p)
{
    ncclUniqueId id;

    if (number ("RANK", &p->rank) < 0 || number ("WORLD_SIZE", &p->size) < 0
        || number ("LOCAL_RANK", &p->local_rank) < 0)
        return -1;
    rank_of_this = p->rank;
    if (choose_gpu (p) < 0)
        return -1;
    if (p->rank == 0)
        NCCL_TRY (ncclGetUniqueId (&id));
    if (spread (p, &id, sizeof (id)) < 0)
        return -1;
    NCCL_TRY (ncclCommInitRank (&world, p->size, id, p->rank));
    return 0;
}

static void *alloc (size_t n)
{
    if (cudaMalloc (&memory, n * sizeof (float)) == cudaSuccess)
        return memory;
    failed ("cudaMalloc", "no memory");
    return NULL;
}

static int put (void *buf, const float *host, size_t n)
{
    CUDA_TRY (cudaMemcpy (buf, host, n * sizeof (float), cudaMemcpyHostToDevice));
    return 0;
}

static int get (float *host, const void *buf, size_t n)
{
    CUDA_TRY (cudaMemcpy (host, buf, n * sizeof (float), cudaMemcpyDeviceToHost));
    return 0;
}

static int sum (void *buf, size_t n)
{
    NCCL_TRY (ncclAllReduce (buf, buf, n, ncclFloat, ncclSum, world, stream));
    CUDA_TRY (cudaStreamSynchronize (stream));
    return 0;
}

static void close_nccl (void)
{
    cudaFree (memory);
    ncclCommDestroy (world);
    cudaStreamDestroy (stream);
}

const struct comm_ops comm = { "NCCL", open_nccl, alloc, put, get, sum, close_nccl };
