/* SPDX-License-Identifier: Apache-2.0 */
/* The back end NCCL: the module slurmdl-nccl.so. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/clock.h"
#include "runtime/comm/backend.h"
#include "runtime/error.h"

enum { CHECK_EACH = 1024 }; /* looks at a stream between those at the clock */

struct self {
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

/* What each rank says of itself. */
struct card {
    char bus[32]; /* of its GPU */
    int32_t device, devices;
    ncclUniqueId id; /* rank 0's */
};

static const struct comm_services *lib;

static void attach (const struct comm_services *s)
{
    lib = s;
}

static int
cuda_failed (cudaError_t e, const char *what, struct slurmdl_error *err)
{
    cudaGetLastError (); /* else the program would find our error */
    errno = e == cudaErrorMemoryAllocation ? ENOMEM : EIO;
    return errorf (err, "nccl: %s: %s", what, cudaGetErrorString (e));
}

#define CUDA(call, err)                                                        \
    do {                                                                       \
        cudaError_t e_ = (call);                                               \
        if (e_ != cudaSuccess) {                                               \
            cuda_failed (e_, #call, err);                                      \
            goto fail;                                                         \
        }                                                                      \
    } while (0)

/* The calling thread's device, for the time of a call. */
static int enter (const struct self *s)
{
    int before = s->device;

    cudaGetDevice (&before);
    if (before != s->device)
        cudaSetDevice (s->device);
    return before;
}

static void leave (const struct self *s, int before)
{
    if (before != s->device)
        cudaSetDevice (before);
}

/* ---- waiting ---- */

/* NCCL's kernels and threads end only so. */
static int give_up (struct self *s, int error)
{
    if (s->comm)
        ncclCommAbort (s->comm);
    s->comm = NULL;
    s->failed = true;
    errno = error;
    return -1;
}

static int failed (struct self *s,
                   ncclResult_t r,
                   const char *what,
                   struct slurmdl_error *err)
{
    const char *detail = s->comm ? ncclGetLastError (s->comm) : NULL;

    errorf (err,
            "nccl: rank %d: %s: %s%s%.100s",
            s->rank,
            what,
            ncclGetErrorString (r),
            detail && *detail ? ": " : "",
            detail ? detail : "");
    return give_up (s,
                    r == ncclRemoteError       ? ECONNRESET
                    : r == ncclInvalidArgument ? EINVAL
                                               : EIO);
}

static int look (struct self *s,
                 const char *what,
                 double deadline,
                 struct slurmdl_error *err)
{
    if (atomic_load (&s->aborted)) {
        errorf (err, "nccl: aborted");
        return give_up (s, ECONNRESET);
    }
    if (lib->check (s->mesh, err) < 0)
        return give_up (s, errno);
    if (monotonic () < deadline)
        return 0;
    errorf (err,
            "nccl: rank %d (%s) has waited for %g s for %s; NCCL_DEBUG=INFO "
            "says more",
            s->rank,
            lib->host (s->mesh, s->rank),
            s->timeout,
            what);
    return give_up (s, ETIMEDOUT);
}

/* A call on a non-blocking communicator goes on in the background. */
static int settle (struct self *s,
                   ncclResult_t r,
                   const char *what,
                   struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    struct timespec pause = { 0, 100000 };

    for (long n = 0; r == ncclInProgress || (r == ncclSuccess && n == 0); n++) {
        ncclResult_t async = ncclSuccess;
        r = ncclCommGetAsyncError (s->comm, &async);
        if (r == ncclSuccess)
            r = async;
        if (r != ncclInProgress)
            break;
        if (look (s, what, deadline, err) < 0)
            return -1;
        nanosleep (&pause, NULL);
    }
    return r == ncclSuccess ? 0 : failed (s, r, what, err);
}

/* Until what was queued in 'stream' is done. */
static int drain (struct self *s,
                  cudaStream_t stream,
                  const char *what,
                  struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    ncclResult_t async;

    for (long n = 1;; n++) {
        cudaError_t e = cudaStreamQuery (stream);
        if (e == cudaSuccess)
            return 0;
        if (e != cudaErrorNotReady) {
            cuda_failed (e, what, err);
            return give_up (s, EIO);
        }
        if (n % CHECK_EACH)
            continue;
        if (ncclCommGetAsyncError (s->comm, &async) == ncclSuccess
            && async != ncclSuccess && async != ncclInProgress)
            return failed (s, async, what, err);
        if (look (s, what, deadline, err) < 0)
            return -1;
    }
}

/* ---- begin and end ---- */

static int probe (struct slurmdl_error *err)
{
    int n = 0;
    cudaError_t e = cudaGetDeviceCount (&n);

    if (e == cudaSuccess && n > 0)
        return 0;
    cudaGetLastError ();
    errno = ENOTSUP;
    return errorf (err,
                   "nccl: no GPU: %s",
                   e == cudaSuccess ? "none is visible"
                                    : cudaGetErrorString (e));
}

/* The first two ranks that have the same GPU. */
static bool find_twins (const struct self *s,
                        const struct card *cards,
                        int *first,
                        int *second)
{
    for (*second = 1; *second < s->size; (*second)++)
        for (*first = 0; *first < *second; (*first)++)
            if (!strcmp (cards[*first].bus, cards[*second].bus)
                && !strcmp (lib->host (s->mesh, *first),
                            lib->host (s->mesh, *second)))
                return true;
    return false;
}

/* Nobody has chosen one: each sees them all, and its current one is the first.
 */
static bool is_unchosen (const struct self *s, const struct card *cards)
{
    for (int i = 0; i < s->size; i++)
        if (cards[i].device != 0
            || cards[i].devices <= lib->local_rank (s->mesh, i))
            return false;
    return true;
}

static int describe (struct card *mine, struct slurmdl_error *err)
{
    CUDA (cudaDeviceGetPCIBusId (
              mine->bus, (int)sizeof (mine->bus), mine->device),
          err);
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
static int choose_device (struct self *s,
                          struct card *mine,
                          struct card *cards,
                          struct slurmdl_error *err)
{
    int a, b;

    if (lib->gather (s->mesh, mine, sizeof (*mine), cards, err) < 0)
        return -1;
    if (find_twins (s, cards, &a, &b) && is_unchosen (s, cards)) {
        mine->device = (int)lib->local_rank (s->mesh, s->rank);
        cudaSetDevice (mine->device);
        if (describe (mine, err) < 0
            || lib->gather (s->mesh, mine, sizeof (*mine), cards, err) < 0)
            return -1;
    }
    if (find_twins (s, cards, &a, &b)) {
        errno = EBUSY;
        return errorf (err,
                       "nccl: ranks %d and %d (%s) have the same GPU (%s): "
                       "give each its own, by srun --gpus-per-task=1 or "
                       "cudaSetDevice()",
                       a,
                       b,
                       lib->host (s->mesh, a),
                       cards[a].bus);
    }
    s->device = mine->device;
    atomic_store (&chosen, s->device);
    return 0;
}

static void destroy (struct self *s)
{
    ncclResult_t r = ncclSuccess;

    if (s->comm) {
        r = ncclCommFinalize (s->comm);
        if (settle (s, r, "the end of a communicator", NULL) == 0)
            ncclCommDestroy (s->comm);
    }
    if (s->own)
        cudaStreamDestroy (s->own);
    if (s->token)
        cudaFree (s->token);
    cudaGetLastError ();
}

static void close_self (void *self)
{
    struct self *s = self;
    int before;

    if (!s)
        return;
    before = enter (s);
    destroy (s);
    leave (s, before);
    free (s);
}

static int
connect_all (struct self *s, ncclUniqueId id, struct slurmdl_error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int before = enter (s);
    int rv = -1;

    config.blocking = 0;
    CUDA (cudaStreamCreate (&s->own), err);
    CUDA (cudaMalloc (&s->token, 4), err);
    rv = settle (
        s,
        ncclCommInitRankConfig (&s->comm, s->size, id, s->rank, &config),
        "the ranks of a communicator",
        err);
fail:
    leave (s, before);
    return rv;
}

static int meet (struct self *s, struct card *cards, struct slurmdl_error *err)
{
    struct card mine;
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
        return failed (s, r, "ncclGetUniqueId", err);
    if (choose_device (s, &mine, cards, err) < 0)
        return -1;
    return connect_all (s, cards[0].id, err);
fail:
    return -1;
}

static int open_self (struct mesh *m, void **self, struct slurmdl_error *err)
{
    struct self *s = calloc (1, sizeof (*s));
    size_t size = (size_t)lib->size (m);
    struct card *cards = malloc (size * sizeof (*cards));
    int rv = -1;

    if (!s || !cards) {
        errorf (err, "out of memory");
        goto out;
    }
    s->mesh = m;
    s->rank = (int)lib->rank (m);
    s->size = (int)size;
    s->timeout = lib->timeout (m);
    rv = meet (s, cards, err);
out:
    free (cards);
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
    struct self *s = self;

    atomic_store (&s->aborted, true);
}

static int set_stream (void *self, void *stream)
{
    struct self *s = self;

    s->user = stream;
    return 0;
}

/* ---- types ---- */

/* How a type is given to NCCL, 'n' of its elements each; false: not at all. */
static bool type_of (enum slurmdl_type type, ncclDataType_t *to, size_t *n)
{
    *n = 1;
    switch (type) {
    case SLURMDL_I8:
        *to = ncclInt8;
        return true;
    case SLURMDL_U8:
    case SLURMDL_BOOL:
        *to = ncclUint8;
        return true;
    case SLURMDL_I32:
        *to = ncclInt32;
        return true;
    case SLURMDL_U32:
        *to = ncclUint32;
        return true;
    case SLURMDL_I64:
        *to = ncclInt64;
        return true;
    case SLURMDL_U64:
        *to = ncclUint64;
        return true;
    case SLURMDL_F16:
        *to = ncclFloat16;
        return true;
    case SLURMDL_BF16:
        *to = ncclBfloat16;
        return true;
    case SLURMDL_C64:
        *n = 2;
        *to = ncclFloat32;
        return true;
    case SLURMDL_F32:
        *to = ncclFloat32;
        return true;
    case SLURMDL_C128:
        *n = 2;
        *to = ncclFloat64;
        return true;
    case SLURMDL_F64:
        *to = ncclFloat64;
        return true;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
    case SLURMDL_F8_E4M3:
        *to = ncclFloat8e4m3;
        return true;
    case SLURMDL_F8_E5M2:
        *to = ncclFloat8e5m2;
        return true;
#else
    case SLURMDL_F8_E4M3:
    case SLURMDL_F8_E5M2:
#endif
    case SLURMDL_I16:
    case SLURMDL_U16:
        break;
    }
    return false;
}

static ncclRedOp_t op_of (enum slurmdl_type type, enum slurmdl_op op)
{
    bool truth = type == SLURMDL_BOOL;

    switch (op) {
    case SLURMDL_SUM:
        return truth ? ncclMax : ncclSum;
    case SLURMDL_AVERAGE:
        return ncclAvg;
    case SLURMDL_MIN:
        return ncclMin;
    case SLURMDL_MAX:
        return ncclMax;
    case SLURMDL_PRODUCT:
        return truth ? ncclMin : ncclProd;
    }
    return ncclSum;
}

/* Pairs of numbers are added, and not multiplied, number by number. */
static bool takes (enum slurmdl_type type, enum slurmdl_op op)
{
    ncclDataType_t t;
    size_t n;

    return type_of (type, &t, &n) && (n == 1 || op != SLURMDL_PRODUCT);
}

/* ---- collectives ---- */

struct call {
    struct self *s;
    cudaStream_t stream;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t factor; /* of NCCL's elements in one of ours */
    size_t size;   /* of ours, in bytes */
    int before;
    const char *what;
    struct slurmdl_error *err;
};

/* Memory of another device would be an error that ends the process. */
static int check_memory (const struct call *c, const void *p)
{
    struct cudaPointerAttributes a;

    if (!p)
        return 0;
    if (cudaPointerGetAttributes (&a, p) != cudaSuccess) {
        cudaGetLastError ();
        return 0;
    }
    if (a.type != cudaMemoryTypeDevice || a.device == c->s->device)
        return 0;
    errno = EINVAL;
    return errorf (c->err,
                   "nccl: rank %d: this memory is of device %d, and the "
                   "communicator of device %d: cudaSetDevice() comes before "
                   "slurmdl_comm_open()",
                   c->s->rank,
                   a.device,
                   c->s->device);
}

static int begin (struct call *c,
                  void *self,
                  const char *what,
                  const void *in,
                  const void *out,
                  struct slurmdl_error *err)
{
    struct self *s = self;

    c->s = s;
    c->stream = s->user ? s->user : s->own;
    c->what = what;
    c->err = err;
    if (s->failed || !s->comm) {
        errno = ENOTCONN;
        return errorf (err, "nccl: the communicator has failed before");
    }
    if (check_memory (c, in) < 0 || check_memory (c, out) < 0)
        return -1;
    c->before = enter (s);
    return 0;
}

static void
set_type (struct call *c, enum slurmdl_type type, enum slurmdl_op op)
{
    type_of (type, &c->type, &c->factor);
    c->op = op_of (type, op);
    c->size = lib->type_size (type);
}

/* Of a call that has returned 'r', or of the end of a group. */
static int end (struct call *c, ncclResult_t r)
{
    int rv = settle (c->s, r, c->what, c->err);

    if (rv == 0 && !c->s->user)
        rv = drain (c->s, c->stream, c->what, c->err);
    leave (c->s, c->before);
    return rv;
}

/* Keep the first error of the calls of a group, which must be ended. */
static void note (ncclResult_t *first, ncclResult_t r)
{
    if (*first == ncclSuccess && r != ncclInProgress)
        *first = r;
}

static ncclResult_t end_group (ncclResult_t first)
{
    ncclResult_t r = ncclGroupEnd ();

    return first != ncclSuccess ? first : r;
}

static int allreduce (void *self,
                      const void *in,
                      void *out,
                      size_t n,
                      enum slurmdl_type type,
                      enum slurmdl_op op,
                      struct slurmdl_error *err)
{
    struct call c;

    if (begin (&c, self, "an all-reduce", in, out, err) < 0)
        return -1;
    set_type (&c, type, op);
    return end (&c,
                ncclAllReduce (
                    in, out, n * c.factor, c.type, c.op, c.s->comm, c.stream));
}

static int reduce (void *self,
                   const void *in,
                   void *out,
                   size_t n,
                   enum slurmdl_type type,
                   enum slurmdl_op op,
                   long root,
                   struct slurmdl_error *err)
{
    struct call c;

    if (begin (&c, self, "a reduction", in, NULL, err) < 0)
        return -1;
    set_type (&c, type, op);
    return end (&c,
                ncclReduce (in,
                            out,
                            n * c.factor,
                            c.type,
                            c.op,
                            (int)root,
                            c.s->comm,
                            c.stream));
}

static bool are_equal (const size_t *n, int size)
{
    for (int i = 1; i < size; i++)
        if (n[i] != n[0])
            return false;
    return true;
}

/* A reduction to each rank, all together. */
static ncclResult_t scatter_unequal (const struct call *c,
                                     const char *in,
                                     void *out,
                                     const size_t *counts)
{
    ncclResult_t first = ncclGroupStart ();

    for (int r = 0; r < c->s->size; r++) {
        if (counts[r])
            note (&first,
                  ncclReduce (in,
                              out,
                              counts[r] * c->factor,
                              c->type,
                              c->op,
                              r,
                              c->s->comm,
                              c->stream));
        in += counts[r] * c->size;
    }
    return end_group (first);
}

static int reduce_scatter (void *self,
                           const void *in,
                           void *out,
                           const size_t *counts,
                           enum slurmdl_type type,
                           enum slurmdl_op op,
                           struct slurmdl_error *err)
{
    struct call c;

    if (begin (&c, self, "a reduce-scatter", in, out, err) < 0)
        return -1;
    set_type (&c, type, op);
    if (!are_equal (counts, c.s->size))
        return end (&c, scatter_unequal (&c, in, out, counts));
    return end (
        &c,
        ncclReduceScatter (
            in, out, counts[0] * c.factor, c.type, c.op, c.s->comm, c.stream));
}

/* A broadcast of each rank, all together. */
static ncclResult_t gather_unequal (const struct call *c,
                                    const void *in,
                                    char *out,
                                    const size_t *bytes)
{
    ncclResult_t first = ncclGroupStart ();

    for (int r = 0; r < c->s->size; r++) {
        if (bytes[r])
            note (&first,
                  ncclBroadcast (r == c->s->rank ? in : out,
                                 out,
                                 bytes[r],
                                 ncclUint8,
                                 r,
                                 c->s->comm,
                                 c->stream));
        out += bytes[r];
    }
    return end_group (first);
}

static int allgather (void *self,
                      const void *in,
                      void *out,
                      const size_t *bytes,
                      struct slurmdl_error *err)
{
    struct call c;

    if (begin (&c, self, "an all-gather", in, out, err) < 0)
        return -1;
    if (!are_equal (bytes, c.s->size))
        return end (&c, gather_unequal (&c, in, out, bytes));
    return end (
        &c, ncclAllGather (in, out, bytes[0], ncclUint8, c.s->comm, c.stream));
}

static int broadcast (
    void *self, void *data, size_t bytes, long root, struct slurmdl_error *err)
{
    struct call c;

    if (begin (&c, self, "a broadcast", data, NULL, err) < 0)
        return -1;
    return end (
        &c,
        ncclBroadcast (
            data, data, bytes, ncclUint8, (int)root, c.s->comm, c.stream));
}

static int alltoall (void *self,
                     const void *in,
                     const size_t *to,
                     void *out,
                     const size_t *from,
                     struct slurmdl_error *err)
{
    const char *source = in;
    char *target = out;
    ncclResult_t first;
    struct call c;

    if (begin (&c, self, "an all-to-all", in, out, err) < 0)
        return -1;
    first = ncclGroupStart ();
    for (int r = 0; r < c.s->size; r++) {
        if (to[r])
            note (&first,
                  ncclSend (source, to[r], ncclUint8, r, c.s->comm, c.stream));
        if (from[r])
            note (
                &first,
                ncclRecv (target, from[r], ncclUint8, r, c.s->comm, c.stream));
        source += to[r];
        target += from[r];
    }
    return end (&c, end_group (first));
}

static int barrier (void *self, struct slurmdl_error *err)
{
    struct self *s = self;
    struct call c;
    int rv;

    if (begin (&c, s, "a barrier", s->token, NULL, err) < 0)
        return -1;
    rv =
        end (&c,
             ncclAllReduce (
                 s->token, s->token, 1, ncclInt32, ncclMax, s->comm, c.stream));
    return rv == 0 && s->user ? drain (s, s->user, c.what, err) : rv;
}

extern const struct comm_backend slurmdl_backend_nccl;
const struct comm_backend slurmdl_backend_nccl = {
    .name = "nccl",
    .probe = probe,
    .open = open_self,
    .close = close_self,
    .abort = abort_self,
    .device = true,
    .allreduce = allreduce,
    .reduce = reduce,
    .reduce_scatter = reduce_scatter,
    .allgather = allgather,
    .broadcast = broadcast,
    .alltoall = alltoall,
    .barrier = barrier,
    .stream = set_stream,
    .attach = attach,
    .takes = takes,
};
