/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of the module slurmdl-nccl.so. */
#include <errno.h>

#include "runtime/base/error.h"
#include "runtime/comm/nccl/module.h"

/* ---- types ---- */

/* How a type is given to NCCL, 'n' of its elements each; 0: not at all. */
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

/* Of one rank NCCL 2.28 takes an average for a product, which it refuses for
 * eight bits, and of which it leaves out the last elements of some lengths.
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

/* Pairs of numbers are added, and not multiplied, number by number.  What NCCL
 * refuses would be the end of the communicator.
 */
bool nccl_takes (void *self, enum slurmdl_type type, enum slurmdl_op op)
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
    size_t factor; /* of NCCL's elements in one of ours */
    size_t size;   /* of ours, in bytes */
    bool made;     /* the operation is for this call only */
    int before;
    const char *what;
    struct slurmdl_error *err;
};

/* Memory of another device would be an error that ends the process. */
static int check_memory (const struct nccl_call *c, const void *p)
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
                   c->s->rank, a.device, c->s->device);
}

static int begin (struct nccl_call *c, void *self, const char *what, const void *in,
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
    if (check_memory (c, in) < 0 || check_memory (c, out) < 0)
        return -1;
    c->before = nccl_enter (s);
    return 0;
}

/* A sum of what is multiplied first; what an average divides by is part of
 * the factor.
 */
static int make_op (struct nccl_call *c, enum slurmdl_type type, enum slurmdl_op op)
{
    enum slurmdl_type real = type == SLURMDL_C64    ? SLURMDL_F32
                             : type == SLURMDL_C128 ? SLURMDL_F64
                                                    : type;
    double factor = c->s->factor / (op == SLURMDL_AVERAGE ? c->s->size : 1);
    double scalar; /* of any of these types */
    ncclResult_t r;

    c->s->factor = 1;
    nccl_lib->convert (&scalar, real, &factor, SLURMDL_F64, 1);
    r = ncclRedOpCreatePreMulSum (&c->op, &scalar, c->type, ncclScalarHostImmediate, c->s->comm);
    if (nccl_settle (c->s, r, "an operation", c->err) < 0)
        return -1;
    c->made = true;
    return 0;
}

/* -1 after begin() has been undone. */
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

/* Of a call that has returned 'r', or of the end of a group. */
static int end (struct nccl_call *c, ncclResult_t r)
{
    int rv = nccl_settle (c->s, r, c->what, c->err);

    if (rv == 0 && c->made)
        ncclRedOpDestroy (c->op, c->s->comm);
    if (rv == 0 && !c->s->user && !c->s->queueing)
        rv = nccl_drain (c->s, c->stream, false, c->what, c->err);
    nccl_leave (c->s, c->before);
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

static int allreduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin (&c, self, "an all-reduce", a->in, a->out, err) < 0
        || set_type (&c, a->type, a->op) < 0)
        return -1;
    return end (&c,
                ncclAllReduce (a->in, a->out, a->n * c.factor, c.type, c.op, c.s->comm, c.stream));
}

static int reduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin (&c, self, "a reduction", a->in, NULL, err) < 0 || set_type (&c, a->type, a->op) < 0)
        return -1;
    return end (&c, ncclReduce (a->in, a->out, a->n * c.factor, c.type, c.op, (int)a->root,
                                c.s->comm, c.stream));
}

static bool are_equal (const size_t *n, int size)
{
    for (int i = 1; i < size; i++)
        if (n[i] != n[0])
            return false;
    return true;
}

/* A reduction to each rank, all together. */
static ncclResult_t scatter_unequal (const struct nccl_call *c, const char *in, void *out,
                                     const size_t *counts)
{
    ncclResult_t first = ncclGroupStart ();

    for (int r = 0; r < c->s->size; r++) {
        if (counts[r])
            note (&first, ncclReduce (in, out, counts[r] * c->factor, c->type, c->op, r, c->s->comm,
                                      c->stream));
        in += counts[r] * c->size;
    }
    return end_group (first);
}

static int reduce_scatter (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin (&c, self, "a reduce-scatter", a->in, a->out, err) < 0
        || set_type (&c, a->type, a->op) < 0)
        return -1;
    if (!are_equal (a->counts, c.s->size))
        return end (&c, scatter_unequal (&c, a->in, a->out, a->counts));
    return end (&c, ncclReduceScatter (a->in, a->out, a->counts[0] * c.factor, c.type, c.op,
                                       c.s->comm, c.stream));
}

/* A broadcast of each rank, all together. */
static ncclResult_t gather_unequal (const struct nccl_call *c, const void *in, char *out,
                                    const size_t *bytes)
{
    ncclResult_t first = ncclGroupStart ();

    for (int r = 0; r < c->s->size; r++) {
        if (bytes[r])
            note (&first, ncclBroadcast (r == c->s->rank ? in : out, out, bytes[r], ncclUint8, r,
                                         c->s->comm, c->stream));
        out += bytes[r];
    }
    return end_group (first);
}

static int allgather (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin (&c, self, "an all-gather", a->in, a->out, err) < 0)
        return -1;
    if (!are_equal (a->counts, c.s->size))
        return end (&c, gather_unequal (&c, a->in, a->out, a->counts));
    return end (&c, ncclAllGather (a->in, a->out, a->counts[0], ncclUint8, c.s->comm, c.stream));
}

static int broadcast (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_call c;

    if (begin (&c, self, "a broadcast", a->out, NULL, err) < 0)
        return -1;
    return end (&c,
                ncclBroadcast (a->out, a->out, a->n, ncclUint8, (int)a->root, c.s->comm, c.stream));
}

static int alltoall (void *self, const struct collective *a, struct slurmdl_error *err)
{
    const char *source = a->in;
    char *target = a->out;
    ncclResult_t first;
    struct nccl_call c;

    if (begin (&c, self, "an all-to-all", a->in, a->out, err) < 0)
        return -1;
    first = ncclGroupStart ();
    for (int r = 0; r < c.s->size; r++) {
        if (a->counts[r])
            note (&first, ncclSend (source, a->counts[r], ncclUint8, r, c.s->comm, c.stream));
        if (a->from[r])
            note (&first, ncclRecv (target, a->from[r], ncclUint8, r, c.s->comm, c.stream));
        source += a->counts[r];
        target += a->from[r];
    }
    return end (&c, end_group (first));
}

static int barrier (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    struct nccl_call c;
    int rv;

    (void)a;
    if (begin (&c, s, "a barrier", s->token, NULL, err) < 0)
        return -1;
    rv = end (&c, ncclAllReduce (s->token, s->token, 1, ncclInt32, ncclMax, s->comm, c.stream));
    return rv == 0 && s->user ? nccl_drain (s, s->user, false, c.what, err) : rv;
}

int nccl_run (void *self, const struct collective *a, struct slurmdl_error *err)
{
    static const collective_f run[COMM_KINDS] = {
        [COMM_ALLREDUCE] = allreduce,
        [COMM_REDUCE] = reduce,
        [COMM_REDUCE_SCATTER] = reduce_scatter,
        [COMM_ALLGATHER] = allgather,
        [COMM_BROADCAST] = broadcast,
        [COMM_ALLTOALL] = alltoall,
        [COMM_BARRIER] = barrier,
    };

    return run[a->what](self, a, err);
}
