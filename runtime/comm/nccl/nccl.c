/* SPDX-License-Identifier: Apache-2.0 */
/* slurmdl-nccl.so: the NCCL back end. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "runtime/base/clock.h"
#include "runtime/base/device_memory.h"
#include "runtime/base/error.h"
#include "runtime/comm/api/backend.h"

/* Device memory that nccl_buffer() has returned. */
struct nccl_room {
    struct nccl_room *smaller; /* the previous, smaller one, kept until the end */
    size_t size;
    void *data;
};

struct nccl_self {
    struct mesh *mesh;
    ncclComm_t comm;
    cudaStream_t own;    /* ordered after the default stream */
    cudaStream_t user;   /* NULL: calls wait for their results */
    cudaStream_t beside; /* for struct comm_queue; NULL: not used yet */
    bool queueing;       /* calls use 'beside', and do not wait */
    bool one_by_one;     /* CUDA cannot start several copies at once */
    double factor;       /* factor of the next reduction */
    struct nccl_room *rooms[2];
    void *token; /* for a barrier: 4 bytes of device memory */
    int device;
    int rank, size;
    bool f8; /* the GPUs and NCCL of all ranks reduce eight-bit floats */
    double timeout;
    atomic_bool aborted;
    bool failed;
};

/* CHECK_EACH: stream queries between checks of the clock.  BEFORE_NAPS: queries
 * before napping.
 */
enum { CHECK_EACH = 1024, BEFORE_NAPS = 20 };

static const struct comm_services *nccl_lib;

/* Report a CUDA error after a failure.  Returns -1. */
static int nccl_cuda_failed (cudaError_t e, const char *what, struct slurmdl_error *err)
{
    cudaGetLastError (); /* so that the program does not see our error */
    errno = e == cudaErrorMemoryAllocation ? ENOMEM : EIO;
    return errorf (err, "nccl: %s: %s", what, cudaGetErrorString (e));
}

/* Make our device current for a call.  Returns the previous one. */
static int nccl_enter (const struct nccl_self *s)
{
    int before = s->device;

    cudaGetDevice (&before);
    if (before != s->device)
        cudaSetDevice (s->device);
    return before;
}

static void nccl_leave (const struct nccl_self *s, int before)
{
    if (before != s->device)
        cudaSetDevice (before);
}

/* ncclCommAbort() is the only way to stop NCCL's kernels and proxy threads. */
static int nccl_give_up (struct nccl_self *s, int error)
{
    if (s->comm)
        ncclCommAbort (s->comm);
    s->comm = NULL;
    s->failed = true;
    errno = error;
    return -1;
}

/* Report an NCCL error and end the communicator.  Returns -1. */
static int nccl_failed (struct nccl_self *s, ncclResult_t r, const char *what,
                        struct slurmdl_error *err)
{
    const char *detail = s->comm ? ncclGetLastError (s->comm) : NULL;

    errorf (err, "nccl: rank %d: %s: %s%s%.100s", s->rank, what, ncclGetErrorString (r),
            detail && *detail ? ": " : "", detail ? detail : "");
    return nccl_give_up (s, r == ncclRemoteError       ? ECONNRESET
                            : r == ncclInvalidArgument ? EINVAL
                                                       : EIO);
}

static int check_wait (struct nccl_self *s, const char *what, double deadline,
                       struct slurmdl_error *err)
{
    if (atomic_load (&s->aborted)) {
        errorf (err, "nccl: aborted");
        return nccl_give_up (s, ECONNRESET);
    }
    if (nccl_lib->check (s->mesh, err) < 0)
        return nccl_give_up (s, errno);
    if (monotonic () < deadline)
        return 0;
    errorf (err, "nccl: rank %d (%s) has waited for %g s for %s; NCCL_DEBUG=INFO prints more",
            s->rank, nccl_lib->host (s->mesh, s->rank), s->timeout, what);
    return nccl_give_up (s, ETIMEDOUT);
}

/* Wait until a call on a non-blocking communicator, which has returned 'r', is in
 * progress.  'what' describes it.
 */
static int nccl_settle (struct nccl_self *s, ncclResult_t r, const char *what,
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
        if (check_wait (s, what, deadline, err) < 0)
            return -1;
        nanosleep (&pause, NULL);
    }
    return r == ncclSuccess ? 0 : nccl_failed (s, r, what, err);
}

/* Wait until everything queued in 'stream' is done.  With 'naps', leave the core to
 * the program in between.
 */
static int nccl_drain (struct nccl_self *s, cudaStream_t stream, bool naps, const char *what,
                       struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    struct timespec nap = { 0, 20000 };
    ncclResult_t async;

    for (long n = 1;; n++) {
        cudaError_t e = cudaStreamQuery (stream);
        if (e == cudaSuccess)
            return 0;
        if (e != cudaErrorNotReady) {
            nccl_cuda_failed (e, what, err);
            return nccl_give_up (s, EIO);
        }
        if (naps && n > BEFORE_NAPS)
            nanosleep (&nap, NULL);
        if (n % CHECK_EACH)
            continue;
        if (ncclCommGetAsyncError (s->comm, &async) == ncclSuccess && async != ncclSuccess
            && async != ncclInProgress)
            return nccl_failed (s, async, what, err);
        if (check_wait (s, what, deadline, err) < 0)
            return -1;
    }
}

enum { ROOM_LEAST = 1 << 20 };

static int check_cuda (cudaError_t e, const char *what, struct slurmdl_error *err)
{
    return e == cudaSuccess ? 0 : nccl_cuda_failed (e, what, err);
}

/* CUDA calls of this thread must not end a stream capture of the program. */
static void use_device_of (const void *p)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    struct cudaPointerAttributes a;

    cudaThreadExchangeStreamCaptureMode (&mode);
    if (p && cudaPointerGetAttributes (&a, p) == cudaSuccess && a.type == cudaMemoryTypeDevice)
        cudaSetDevice (a.device);
    cudaGetLastError ();
}

/* The stream does not synchronize with the default stream.  Its work runs before
 * those blocks of the program's kernels that have not started.
 */
static int nccl_make_stream (struct nccl_self *s, struct slurmdl_error *err)
{
    int least = 0, greatest = 0;

    cudaDeviceGetStreamPriorityRange (&least, &greatest);
    return check_cuda (cudaStreamCreateWithPriority (&s->beside, cudaStreamNonBlocking, greatest),
                       "cudaStreamCreateWithPriority", err);
}

static int queue_begin (void *self, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    int before;
    int rv = 0;

    if (s->failed || !s->comm) {
        errno = ENOTCONN;
        return errorf (err, "nccl: the communicator has failed before");
    }
    before = nccl_enter (s);
    if (!s->beside)
        rv = nccl_make_stream (s, err);
    nccl_leave (s, before);
    s->queueing = rv == 0;
    s->factor = 1;
    return rv;
}

static int nccl_after (void *self, const struct memory_mark *m, struct slurmdl_error *err)
{
    struct nccl_self *s = self;

    return check_cuda (cudaStreamWaitEvent (s->beside, m->event, 0), "cudaStreamWaitEvent", err);
}

/* Keep a buffer that has become too small, because cudaFree() would wait for all
 * work that the program has queued on the device.  The next one is twice as large.
 */
static void *nccl_buffer (void *self, int which, size_t n, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    struct nccl_room *r = s->rooms[which];
    size_t size = r ? 2 * r->size : ROOM_LEAST;
    int before;

    if (r && r->size >= n)
        return r->data;
    if (size < n)
        size = n;
    if (!(r = calloc (1, sizeof (*r)))) {
        errorf (err, "out of memory");
        return NULL;
    }
    before = nccl_enter (s);
    if (check_cuda (cudaMalloc (&r->data, size), "cudaMalloc", err) < 0) {
        free (r);
        r = NULL;
    }
    nccl_leave (s, before);
    if (!r)
        return NULL;
    r->size = size;
    r->smaller = s->rooms[which];
    s->rooms[which] = r;
    return r->data;
}

static cudaError_t copy_one (const struct nccl_self *s, const struct comm_copy *c)
{
    if (!c->n)
        return cudaSuccess;
    if (!c->from)
        return cudaMemsetAsync (c->to, 0, c->n, s->beside);
    return cudaMemcpyAsync (c->to, c->from, c->n, cudaMemcpyDeviceToDevice, s->beside);
}

static int copy_each (const struct nccl_self *s, const struct comm_copy *list, size_t n,
                      struct slurmdl_error *err)
{
    int rv = 0;

    for (size_t i = 0; i < n && rv == 0; i++)
        rv = check_cuda (copy_one (s, &list[i]), "a copy on the device", err);
    return rv;
}

/* Starting hundreds of small copies one by one takes longer than the copies
 * themselves.
 */
#if CUDART_VERSION >= 13000
struct nccl_copies {
    void **to;
    const void **from;
    size_t *bytes;
    size_t n;
};

static bool batch_make (struct nccl_copies *b, const struct comm_copy *list, size_t n)
{
    b->n = 0;
    b->to = malloc (n * sizeof (*b->to));
    b->from = malloc (n * sizeof (*b->from));
    b->bytes = malloc (n * sizeof (*b->bytes));
    if (!b->to || !b->from || !b->bytes)
        return false;
    for (size_t i = 0; i < n; i++)
        if (list[i].from && list[i].n) {
            b->to[b->n] = list[i].to;
            b->from[b->n] = list[i].from;
            b->bytes[b->n++] = list[i].n;
        }
    return true;
}

static bool batch_copy (const struct nccl_self *s, const struct nccl_copies *b)
{
    struct cudaMemcpyAttributes how = { .srcAccessOrder = cudaMemcpySrcAccessOrderStream };
    size_t first = 0;

    return !b->n
           || cudaMemcpyBatchAsync (b->to, b->from, b->bytes, b->n, &how, &first, 1, s->beside)
                  == cudaSuccess;
}

/* Returns false if none of the copies was started. */
static bool copy_together (const struct nccl_self *s, const struct comm_copy *list, size_t n)
{
    struct nccl_copies b;
    bool is_done = batch_make (&b, list, n) && batch_copy (s, &b);

    cudaGetLastError ();
    free (b.to);
    free (b.from);
    free (b.bytes);
    return is_done;
}
#else
static bool copy_together (const struct nccl_self *s, const struct comm_copy *list, size_t n)
{
    (void)s;
    (void)list;
    (void)n;
    return false;
}
#endif

static int copy_zeros (const struct nccl_self *s, const struct comm_copy *list, size_t n,
                       struct slurmdl_error *err)
{
    int rv = 0;

    for (size_t i = 0; i < n && rv == 0; i++)
        if (!list[i].from)
            rv = copy_each (s, &list[i], 1, err);
    return rv;
}

static int nccl_copy (void *self, const struct comm_copy *list, size_t n, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    int before = nccl_enter (s);
    int rv;

    if (n > 1 && !s->one_by_one && copy_together (s, list, n)) {
        rv = copy_zeros (s, list, n, err);
    } else {
        s->one_by_one = s->one_by_one || n > 1;
        rv = copy_each (s, list, n, err);
    }
    nccl_leave (s, before);
    return rv;
}

static void nccl_set_factor (void *self, double factor)
{
    struct nccl_self *s = self;

    s->factor = factor;
}

static int queue_end (void *self, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    int before;
    int rv;

    if (!s->queueing)
        return 0;
    s->queueing = false;
    if (s->failed)
        return -1;
    before = nccl_enter (s);
    rv = nccl_drain (s, s->beside, true, "named tensors", err);
    nccl_leave (s, before);
    return rv;
}

static const struct comm_queue nccl_queue = { .use = use_device_of,
                                              .begin = queue_begin,
                                              .after = nccl_after,
                                              .room = nccl_buffer,
                                              .copy = nccl_copy,
                                              .factor = nccl_set_factor,
                                              .end = queue_end };

static void nccl_queue_free (struct nccl_self *s)
{
    struct nccl_room *r;

    if (s->beside)
        cudaStreamDestroy (s->beside);
    for (int i = 0; i < 2; i++)
        while ((r = s->rooms[i])) {
            s->rooms[i] = r->smaller;
            cudaFree (r->data);
            free (r);
        }
}

/* ---- types ---- */

/* How a type is passed to NCCL: as 'n' elements of 'type' each; 0: not supported. */
static const struct nccl_type {
    ncclDataType_t type;
    size_t n;
} nccl_types[] = {
    [SLURMDL_I8] = { ncclInt8, 1 },
    [SLURMDL_U8] = { ncclUint8, 1 },
    [SLURMDL_BOOL] = { ncclUint8, 1 },
    [SLURMDL_I32] = { ncclInt32, 1 },
    [SLURMDL_U32] = { ncclUint32, 1 },
    [SLURMDL_I64] = { ncclInt64, 1 },
    [SLURMDL_U64] = { ncclUint64, 1 },
    [SLURMDL_F16] = { ncclFloat16, 1 },
    [SLURMDL_BF16] = { ncclBfloat16, 1 },
    [SLURMDL_C64] = { ncclFloat32, 2 },
    [SLURMDL_F32] = { ncclFloat32, 1 },
    [SLURMDL_C128] = { ncclFloat64, 2 },
    [SLURMDL_F64] = { ncclFloat64, 1 },
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
    [SLURMDL_F8_E4M3] = { ncclFloat8e4m3, 1 },
    [SLURMDL_F8_E5M2] = { ncclFloat8e5m2, 1 },
#endif
};

static bool type_of (enum slurmdl_type type, ncclDataType_t *to, size_t *n)
{
    *n = 0;
    if ((size_t)type < sizeof (nccl_types) / sizeof (*nccl_types)) {
        *to = nccl_types[type].type;
        *n = nccl_types[type].n;
    }
    return *n > 0;
}

/* Use a sum for a single rank.  There NCCL 2.28 turns an average into a product,
 * which it rejects for eight-bit types and whose last elements it omits for some
 * lengths.
 */
static ncclRedOp_t op_of (const struct nccl_self *s, enum slurmdl_type type, enum slurmdl_op op)
{
    bool truth = type == SLURMDL_BOOL;

    switch (op) {
    case SLURMDL_SUM:
        return truth ? ncclMax : ncclSum;
    case SLURMDL_AVERAGE:
        return s->size > 1 ? ncclAvg : ncclSum;
    case SLURMDL_MIN:
        return ncclMin;
    case SLURMDL_MAX:
        return ncclMax;
    case SLURMDL_PRODUCT:
        return truth ? ncclMin : ncclProd;
    }
    return ncclSum;
}

/* Complex numbers can be added component by component, but not multiplied.  Check
 * first, because a call that NCCL rejects would end the communicator.
 */
static bool nccl_takes (void *self, enum slurmdl_type type, enum slurmdl_op op)
{
    const struct nccl_self *s = self;
    ncclDataType_t t;
    size_t n;

    if (type == SLURMDL_F8_E4M3 || type == SLURMDL_F8_E5M2)
        if (!s->f8)
            return false;
    return type_of (type, &t, &n) && (n == 1 || op != SLURMDL_PRODUCT);
}

/* ---- collectives ---- */

struct nccl_call {
    struct nccl_self *s;
    cudaStream_t stream;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t factor; /* NCCL's elements per element of ours */
    size_t size;   /* bytes per element of ours */
    bool made;     /* the operation exists only for this call */
    int before;
    const char *what;
    struct slurmdl_error *err;
};

/* Reject memory of another device, which would end the process. */
static int check_device_memory (const struct nccl_call *c, const void *p)
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
                   "communicator of device %d: call cudaSetDevice() before slurmdl_comm_open()",
                   c->s->rank, a.device, c->s->device);
}

static int begin_call (struct nccl_call *c, void *self, const char *what, const void *in,
                       const void *out, struct slurmdl_error *err)
{
    struct nccl_self *s = self;

    c->s = s;
    c->stream = s->queueing ? s->beside : s->user ? s->user : s->own;
    c->made = false;
    c->what = what;
    c->err = err;
    if (s->failed || !s->comm) {
        errno = ENOTCONN;
        return errorf (err, "nccl: the communicator has failed before");
    }
    if (check_device_memory (c, in) < 0 || check_device_memory (c, out) < 0)
        return -1;
    c->before = nccl_enter (s);
    return 0;
}

/* Create a sum that multiplies its inputs first.  The factor includes the divisor
 * of an average.
 */
static int make_op (struct nccl_call *c, enum slurmdl_type type, enum slurmdl_op op)
{
    enum slurmdl_type real = type == SLURMDL_C64    ? SLURMDL_F32
                             : type == SLURMDL_C128 ? SLURMDL_F64
                                                    : type;
    double factor = c->s->factor / (op == SLURMDL_AVERAGE ? c->s->size : 1);
    double scalar; /* large enough for each of these types */
    ncclResult_t r;

    c->s->factor = 1;
    nccl_lib->convert (&scalar, real, &factor, SLURMDL_F64, 1);
    r = ncclRedOpCreatePreMulSum (&c->op, &scalar, c->type, ncclScalarHostImmediate, c->s->comm);
    if (nccl_settle (c->s, r, "an operation", c->err) < 0)
        return -1;
    c->made = true;
    return 0;
}

/* Returns -1 after undoing begin_call(). */
static int set_type (struct nccl_call *c, enum slurmdl_type type, enum slurmdl_op op)
{
    type_of (type, &c->type, &c->factor);
    c->op = op_of (c->s, type, op);
    c->size = nccl_lib->type_size (type);
    if (!c->s->queueing || c->s->factor == 1 || make_op (c, type, op) == 0)
        return 0;
    nccl_leave (c->s, c->before);
    return -1;
}

/* Finish a call that has returned 'r', or a group. */
static int end_call (struct nccl_call *c, ncclResult_t r)
{
    int rv = nccl_settle (c->s, r, c->what, c->err);

    if (rv == 0 && c->made)
        ncclRedOpDestroy (c->op, c->s->comm);
    if (rv == 0 && !c->s->user && !c->s->queueing)
        rv = nccl_drain (c->s, c->stream, false, c->what, c->err);
    nccl_leave (c->s, c->before);
    return rv;
}

/* Keep the first error in a group, which has to be ended in any case. */
static void note_first_error (ncclResult_t *first, ncclResult_t r)
{
    if (*first == ncclSuccess && r != ncclInProgress)
        *first = r;
}

static ncclResult_t end_group (ncclResult_t first)
{
    ncclResult_t r = ncclGroupEnd ();

    return first != ncclSuccess ? first : r;
}

static int nccl_allreduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin_call (&c, self, "an all-reduce", a->in, a->out, err) < 0
        || set_type (&c, a->type, a->op) < 0)
        return -1;
    return end_call (
        &c, ncclAllReduce (a->in, a->out, a->n * c.factor, c.type, c.op, c.s->comm, c.stream));
}

static int nccl_reduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin_call (&c, self, "a reduction", a->in, NULL, err) < 0
        || set_type (&c, a->type, a->op) < 0)
        return -1;
    return end_call (&c, ncclReduce (a->in, a->out, a->n * c.factor, c.type, c.op, (int)a->root,
                                     c.s->comm, c.stream));
}

static bool are_equal (const size_t *n, int size)
{
    for (int i = 1; i < size; i++)
        if (n[i] != n[0])
            return false;
    return true;
}

/* One reduction to each rank, in one group. */
static ncclResult_t scatter_unequal (const struct nccl_call *c, const char *in, void *out,
                                     const size_t *counts)
{
    ncclResult_t first = ncclGroupStart ();

    for (int r = 0; r < c->s->size; r++) {
        if (counts[r])
            note_first_error (&first, ncclReduce (in, out, counts[r] * c->factor, c->type, c->op, r,
                                                  c->s->comm, c->stream));
        in += counts[r] * c->size;
    }
    return end_group (first);
}

static int nccl_reduce_scatter (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin_call (&c, self, "a reduce-scatter", a->in, a->out, err) < 0
        || set_type (&c, a->type, a->op) < 0)
        return -1;
    if (!are_equal (a->counts, c.s->size))
        return end_call (&c, scatter_unequal (&c, a->in, a->out, a->counts));
    return end_call (&c, ncclReduceScatter (a->in, a->out, a->counts[0] * c.factor, c.type, c.op,
                                            c.s->comm, c.stream));
}

/* One broadcast from each rank, in one group. */
static ncclResult_t gather_unequal (const struct nccl_call *c, const void *in, char *out,
                                    const size_t *bytes)
{
    ncclResult_t first = ncclGroupStart ();

    for (int r = 0; r < c->s->size; r++) {
        if (bytes[r])
            note_first_error (&first, ncclBroadcast (r == c->s->rank ? in : out, out, bytes[r],
                                                     ncclUint8, r, c->s->comm, c->stream));
        out += bytes[r];
    }
    return end_group (first);
}

static int nccl_allgather (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin_call (&c, self, "an all-gather", a->in, a->out, err) < 0)
        return -1;
    if (!are_equal (a->counts, c.s->size))
        return end_call (&c, gather_unequal (&c, a->in, a->out, a->counts));
    return end_call (&c,
                     ncclAllGather (a->in, a->out, a->counts[0], ncclUint8, c.s->comm, c.stream));
}

static int nccl_broadcast (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin_call (&c, self, "a broadcast", a->out, NULL, err) < 0)
        return -1;
    return end_call (
        &c, ncclBroadcast (a->out, a->out, a->n, ncclUint8, (int)a->root, c.s->comm, c.stream));
}

static int nccl_alltoall (void *self, const struct collective *a, struct slurmdl_error *err)
{
    const char *source = a->in;
    char *target = a->out;
    ncclResult_t first;
    struct nccl_call c;

    if (begin_call (&c, self, "an all-to-all", a->in, a->out, err) < 0)
        return -1;
    first = ncclGroupStart ();
    for (int r = 0; r < c.s->size; r++) {
        if (a->counts[r])
            note_first_error (&first,
                              ncclSend (source, a->counts[r], ncclUint8, r, c.s->comm, c.stream));
        if (a->from[r])
            note_first_error (&first,
                              ncclRecv (target, a->from[r], ncclUint8, r, c.s->comm, c.stream));
        source += a->counts[r];
        target += a->from[r];
    }
    return end_call (&c, end_group (first));
}

static int nccl_barrier (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    struct nccl_call c;
    int rv;

    (void)a;
    if (begin_call (&c, s, "a barrier", s->token, NULL, err) < 0)
        return -1;
    rv =
        end_call (&c, ncclAllReduce (s->token, s->token, 1, ncclInt32, ncclMax, s->comm, c.stream));
    return rv == 0 && s->user ? nccl_drain (s, s->user, false, c.what, err) : rv;
}

static int nccl_run (void *self, const struct collective *a, struct slurmdl_error *err)
{
    static const collective_f run[COMM_KINDS] = {
        [COMM_ALLREDUCE] = nccl_allreduce,
        [COMM_REDUCE] = nccl_reduce,
        [COMM_REDUCE_SCATTER] = nccl_reduce_scatter,
        [COMM_ALLGATHER] = nccl_allgather,
        [COMM_BROADCAST] = nccl_broadcast,
        [COMM_ALLTOALL] = nccl_alltoall,
        [COMM_BARRIER] = nccl_barrier,
    };

    return run[a->what](self, a, err);
}

/* What each rank sends about itself. */
struct nccl_peer {
    char bus[32]; /* PCI bus ID of its GPU */
    int32_t device, devices;
    int32_t f8;      /* whether it reduces eight-bit floats */
    ncclUniqueId id; /* rank 0's ID */
};

static void nccl_attach (const struct comm_services *s)
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

static int nccl_probe (struct slurmdl_error *err)
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

/* Find the first two ranks that use the same GPU. */
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

/* Whether no rank has chosen a GPU: each sees all of them, and its current one is
 * the first.
 */
static bool is_unchosen (const struct nccl_self *s, const struct nccl_peer *peers)
{
    for (int i = 0; i < s->size; i++)
        if (peers[i].device != 0 || peers[i].devices <= nccl_lib->local_rank (s->mesh, i))
            return false;
    return true;
}

/* GPUs since Hopper (9.0) can, with NCCL since 2.24. */
static bool reduces_f8 (int device)
{
    int major = 0;
    int version = 0;

    return ncclGetVersion (&version) == ncclSuccess && version >= NCCL_VERSION (2, 24, 0)
           && cudaDeviceGetAttribute (&major, cudaDevAttrComputeCapabilityMajor, device)
                  == cudaSuccess
           && major >= 9;
}

static int describe_peer (struct nccl_peer *mine, struct slurmdl_error *err)
{
    CUDA (cudaDeviceGetPCIBusId (mine->bus, (int)sizeof (mine->bus), mine->device), err);
    mine->f8 = reduces_f8 (mine->device);
    return 0;
fail:
    return -1;
}

/* The device of this process; -1: none yet.  In a new thread the first device is
 * current, even if the program has chosen another.
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

/* Use the current device, or that of the local rank, which then becomes current. */
static int choose_device (struct nccl_self *s, struct nccl_peer *mine, struct nccl_peer *peers,
                          struct slurmdl_error *err)
{
    int a, b;

    if (nccl_lib->gather (s->mesh, mine, sizeof (*mine), peers, err) < 0)
        return -1;
    if (find_twins (s, peers, &a, &b) && is_unchosen (s, peers)) {
        mine->device = (int)nccl_lib->local_rank (s->mesh, s->rank);
        cudaSetDevice (mine->device);
        if (describe_peer (mine, err) < 0
            || nccl_lib->gather (s->mesh, mine, sizeof (*mine), peers, err) < 0)
            return -1;
    }
    if (find_twins (s, peers, &a, &b)) {
        errno = EBUSY;
        return errorf (err,
                       "nccl: ranks %d and %d (%s) have the same GPU (%s): give each its own, by "
                       "srun --gpus-per-task=1 or cudaSetDevice(), or set DL_COMM_BACKEND=native",
                       a, b, nccl_lib->host (s->mesh, a), peers[a].bus);
    }
    s->device = mine->device;
    s->f8 = true;
    for (int i = 0; i < s->size; i++)
        s->f8 = s->f8 && peers[i].f8;
    atomic_store (&chosen, s->device);
    return 0;
}

static void nccl_destroy (struct nccl_self *s)
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

static void nccl_close (void *self)
{
    struct nccl_self *s = self;
    int before;

    if (!s)
        return;
    before = nccl_enter (s);
    nccl_destroy (s);
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

static int exchange_peers (struct nccl_self *s, struct nccl_peer *peers, struct slurmdl_error *err)
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
    if (describe_peer (&mine, err) < 0)
        return -1;
    if (s->rank == 0 && (r = ncclGetUniqueId (&mine.id)) != ncclSuccess)
        return nccl_failed (s, r, "ncclGetUniqueId", err);
    if (choose_device (s, &mine, peers, err) < 0)
        return -1;
    return connect_all (s, peers[0].id, err);
fail:
    return -1;
}

static int nccl_open (struct mesh *m, void **self, struct slurmdl_error *err)
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
    rv = exchange_peers (s, peers, err);
out:
    free (peers);
    if (rv < 0) {
        int saved = errno;
        nccl_close (s);
        errno = saved;
    } else
        *self = s;
    return rv;
}

static void nccl_abort (void *self)
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
    .probe = nccl_probe,
    .open = nccl_open,
    .close = nccl_close,
    .abort = nccl_abort,
    .device = true,
    .run = nccl_run,
    .stream = set_stream,
    .attach = nccl_attach,
    .takes = nccl_takes,
    .queue = &nccl_queue,
};
