/* SPDX-License-Identifier: Apache-2.0 */
/* The back end NCCL: the module slurmdl-nccl.so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/nccl/module.h"

/* What each rank says of itself. */
struct nccl_peer {
    char bus[32]; /* of its GPU */
    int32_t device, devices;
    int32_t f8;      /* whether it reduces numbers of eight bits */
    ncclUniqueId id; /* rank 0's */
};

static void attach (const struct comm_services *s)
{
    nccl_lib = s;
}

#define CUDA(call, err)                                                                            \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            nccl_cuda_failed (e_, #call, err);                                                     \
            goto fail;                                                                             \
        }                                                                                          \
    } while (0)

static int probe (struct slurmdl_error *err)
{
    int n = 0;
    cudaError_t e = cudaGetDeviceCount (&n);

    if (e == cudaSuccess && n > 0)
        return 0;
    cudaGetLastError ();
    errno = ENOTSUP;
    return errorf (err, "nccl: no GPU: %s",
                   e == cudaSuccess ? "none is visible" : cudaGetErrorString (e));
}

/* The first two ranks that have the same GPU. */
static bool find_twins (const struct nccl_self *s, const struct nccl_peer *peers, int *first,
                        int *second)
{
    for (*second = 1; *second < s->size; (*second)++)
        for (*first = 0; *first < *second; (*first)++)
            if (!strcmp (peers[*first].bus, peers[*second].bus)
                && !strcmp (nccl_lib->host (s->mesh, *first), nccl_lib->host (s->mesh, *second)))
                return true;
    return false;
}

/* Nobody has chosen one: each sees them all, and its current one is the first.
 */
static bool is_unchosen (const struct nccl_self *s, const struct nccl_peer *peers)
{
    for (int i = 0; i < s->size; i++)
        if (peers[i].device != 0 || peers[i].devices <= nccl_lib->local_rank (s->mesh, i))
            return false;
    return true;
}

/* Of GPUs since Hopper (9.0), by NCCL since 2.24. */
static bool reduces_f8 (int device)
{
    int major = 0;
    int version = 0;

    return ncclGetVersion (&version) == ncclSuccess && version >= NCCL_VERSION (2, 24, 0)
           && cudaDeviceGetAttribute (&major, cudaDevAttrComputeCapabilityMajor, device)
                  == cudaSuccess
           && major >= 9;
}

static int describe (struct nccl_peer *mine, struct slurmdl_error *err)
{
    CUDA (cudaDeviceGetPCIBusId (mine->bus, (int)sizeof (mine->bus), mine->device), err);
    mine->f8 = reduces_f8 (mine->device);
    return 0;
fail:
    return -1;
}

/* Of this process; -1: none yet.  A new thread's current one is the first, even
 * where the program has chosen another.
 */
static atomic_int chosen = -1;

static int find_device (struct slurmdl_error *err)
{
    int device = 0;

    CUDA (cudaGetDevice (&device), err);
    if (device == 0 && atomic_load (&chosen) > 0)
        device = atomic_load (&chosen);
    return device;
fail:
    return -1;
}

/* The current device, or the local rank's, which becomes the current one. */
static int choose_device (struct nccl_self *s, struct nccl_peer *mine, struct nccl_peer *peers,
                          struct slurmdl_error *err)
{
    int a, b;

    if (nccl_lib->gather (s->mesh, mine, sizeof (*mine), peers, err) < 0)
        return -1;
    if (find_twins (s, peers, &a, &b) && is_unchosen (s, peers)) {
        mine->device = (int)nccl_lib->local_rank (s->mesh, s->rank);
        cudaSetDevice (mine->device);
        if (describe (mine, err) < 0
            || nccl_lib->gather (s->mesh, mine, sizeof (*mine), peers, err) < 0)
            return -1;
    }
    if (find_twins (s, peers, &a, &b)) {
        errno = EBUSY;
        return errorf (err,
                       "nccl: ranks %d and %d (%s) have the same GPU (%s): "
                       "give each its own, by srun --gpus-per-task=1 or "
                       "cudaSetDevice(), or set DL_COMM_BACKEND=native",
                       a, b, nccl_lib->host (s->mesh, a), peers[a].bus);
    }
    s->device = mine->device;
    s->f8 = true;
    for (int i = 0; i < s->size; i++)
        s->f8 = s->f8 && peers[i].f8;
    atomic_store (&chosen, s->device);
    return 0;
}

static void destroy (struct nccl_self *s)
{
    ncclResult_t r = ncclSuccess;

    if (s->comm) {
        r = ncclCommFinalize (s->comm);
        if (nccl_settle (s, r, "the end of a communicator", NULL) == 0)
            ncclCommDestroy (s->comm);
    }
    nccl_queue_free (s);
    if (s->own)
        cudaStreamDestroy (s->own);
    if (s->token)
        cudaFree (s->token);
    cudaGetLastError ();
}

static void close_self (void *self)
{
    struct nccl_self *s = self;
    int before;

    if (!s)
        return;
    before = nccl_enter (s);
    destroy (s);
    nccl_leave (s, before);
    free (s);
}

static int connect_all (struct nccl_self *s, ncclUniqueId id, struct slurmdl_error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int before = nccl_enter (s);
    int rv = -1;

    config.blocking = 0;
    CUDA (cudaStreamCreate (&s->own), err);
    CUDA (cudaMalloc (&s->token, 4), err);
    rv = nccl_settle (s, ncclCommInitRankConfig (&s->comm, s->size, id, s->rank, &config),
                      "the ranks of a communicator", err);
fail:
    nccl_leave (s, before);
    return rv;
}

static int meet (struct nccl_self *s, struct nccl_peer *peers, struct slurmdl_error *err)
{
    struct nccl_peer mine;
    int devices = 0;
    ncclResult_t r;

    memset (&mine, 0, sizeof (mine));
    if ((s->device = find_device (err)) < 0)
        return -1;
    CUDA (cudaGetDeviceCount (&devices), err);
    mine.device = s->device;
    mine.devices = devices;
    if (describe (&mine, err) < 0)
        return -1;
    if (s->rank == 0 && (r = ncclGetUniqueId (&mine.id)) != ncclSuccess)
        return nccl_failed (s, r, "ncclGetUniqueId", err);
    if (choose_device (s, &mine, peers, err) < 0)
        return -1;
    return connect_all (s, peers[0].id, err);
fail:
    return -1;
}

static int open_self (struct mesh *m, void **self, struct slurmdl_error *err)
{
    struct nccl_self *s = calloc (1, sizeof (*s));
    size_t size = (size_t)nccl_lib->size (m);
    struct nccl_peer *peers = malloc (size * sizeof (*peers));
    int rv = -1;

    if (!s || !peers) {
        errorf (err, "out of memory");
        goto out;
    }
    s->mesh = m;
    s->rank = (int)nccl_lib->rank (m);
    s->size = (int)size;
    s->timeout = nccl_lib->timeout (m);
    rv = meet (s, peers, err);
out:
    free (peers);
    if (rv < 0) {
        int saved = errno;
        close_self (s);
        errno = saved;
    } else
        *self = s;
    return rv;
}

static void abort_self (void *self)
{
    struct nccl_self *s = self;

    atomic_store (&s->aborted, true);
}

static int set_stream (void *self, void *stream)
{
    struct nccl_self *s = self;

    s->user = stream;
    return 0;
}

extern const struct comm_backend slurmdl_backend_nccl;
const struct comm_backend slurmdl_backend_nccl = {
    .name = "nccl",
    .probe = probe,
    .open = open_self,
    .close = close_self,
    .abort = abort_self,
    .device = true,
    .run = nccl_run,
    .stream = set_stream,
    .attach = attach,
    .takes = nccl_takes,
    .queue = &nccl_queue,
};
