/* SPDX-License-Identifier: Apache-2.0 */
/* Fake NCCL in host memory, for processes on this host. */
#include <fcntl.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/comm/reduce/reduce.h"
#include "tests/fakes/cudart.h"

enum { TURNS = 1024 };

/* Shared by the ranks: how many have joined the communicator, and joined and left each call. */
struct shared {
    atomic_int ranks;
    atomic_int came[TURNS], left[TURNS];
};

enum kind { ALLREDUCE, REDUCE, SCATTER, ALLGATHER, BROADCAST, SEND, RECV };

/* One operation of a call, on 'n' elements of each rank. */
struct part {
    enum kind kind;
    const void *in;
    void *out;
    size_t n, bytes; /* of 'in' */
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer;      /* or the root */
    double factor; /* multiplies each element before the reduction */
};

struct work {
    struct work *next;
    struct ncclComm *comm; /* NULL: the communicator is gone */
    unsigned turn;
    int phase;
    int parts;
    struct part part[200];
};

enum { OPS = 4, FIRST_OP = 100 }; /* of ncclRedOpCreatePreMulSum() */

struct ncclComm {
    struct shared *shared;
    double factors[OPS]; /* 0: not in use */
    char name[64];
    int rank, size;
    unsigned turn;
    bool refused; /* an argument was invalid: the communicator is unusable */
    struct work *first;
};

ncclResult_t ncclGetVersion (int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId (ncclUniqueId *id)
{
    static atomic_int n;

    memset (id, 0, sizeof (*id));
    snprintf (id->internal, sizeof (id->internal), "/dev/shm/fakenccl-%d-%d", (int)getpid (),
              atomic_fetch_add (&n, 1));
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig (ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                     ncclConfig_t *config)
{
    struct ncclComm *c = calloc (1, sizeof (*c));
    int fd = open (id.internal, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (config->blocking || fd < 0 || ftruncate (fd, sizeof (*c->shared)) < 0)
        return ncclInternalError;
    c->shared = mmap (NULL, sizeof (*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close (fd);
    snprintf (c->name, sizeof (c->name), "%.60s", id.internal);
    c->rank = rank;
    c->size = size;
    if (atomic_fetch_add (&c->shared->ranks, 1) == size - 1)
        unlink (id.internal);
    *comm = c;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError (ncclComm_t c, ncclResult_t *async)
{
    *async = ncclSuccess;
    if (atomic_load (&c->shared->ranks) < c->size || fakecuda_has ("hang"))
        *async = ncclInProgress;
    else if (fakecuda_has ("async") && c->turn > 0)
        *async = ncclRemoteError;
    else if (c->refused)
        *async = ncclInvalidArgument;
    return ncclSuccess;
}

static void path_of (const struct ncclComm *c, unsigned turn, int rank, char *p)
{
    snprintf (p, 128, "%s.%u.%d", c->name, turn, rank);
}

static void remove_file (const struct work *w)
{
    char path[128];

    path_of (w->comm, w->turn, w->comm->rank, path);
    unlink (path);
}

ncclResult_t ncclCommAbort (ncclComm_t c)
{
    fakecuda_lock ();
    for (struct work *w = c->first; w; w = w->next) {
        remove_file (w);
        w->comm = NULL;
    }
    fakecuda_unlock ();
    unlink (c->name);
    munmap (c->shared, sizeof (*c->shared));
    free (c);
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize (ncclComm_t c)
{
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy (ncclComm_t c)
{
    return ncclCommAbort (c);
}

const char *ncclGetErrorString (ncclResult_t r)
{
    return r == ncclRemoteError ? "remote process exited" : "another error";
}

const char *ncclGetLastError (ncclComm_t c)
{
    return "";
}

/* ---- calls ---- */

static __thread int depth;
static __thread struct work *open_work;
static __thread cudaStream_t open_stream;

/* clang-format off */
static const enum slurmdl_type types[] = {
    [ncclInt8] = SLURMDL_I8,     [ncclUint8] = SLURMDL_U8,
    [ncclInt32] = SLURMDL_I32,   [ncclUint32] = SLURMDL_U32,
    [ncclInt64] = SLURMDL_I64,   [ncclUint64] = SLURMDL_U64,
    [ncclFloat16] = SLURMDL_F16, [ncclBfloat16] = SLURMDL_BF16,
    [ncclFloat32] = SLURMDL_F32, [ncclFloat64] = SLURMDL_F64,
    [ncclFloat8e4m3] = SLURMDL_F8_E4M3, [ncclFloat8e5m2] = SLURMDL_F8_E5M2,
};
/* clang-format on */

static size_t size_of (ncclDataType_t t)
{
    return slurmdl_type_size (types[t]);
}

static bool run (void *arg);

static void publish (struct work *w, cudaStream_t stream)
{
    struct work **last = &w->comm->first;

    fakecuda_lock ();
    w->turn = w->comm->turn++;
    while (*last)
        last = &(*last)->next;
    *last = w;
    fakecuda_queue (stream, run, w);
    fakecuda_unlock ();
}

/* With one rank, NCCL 2.28 runs a multiplication kernel, which it does not have for 8-bit floats.
 */
static bool multiplies_alone (const struct ncclComm *c, const struct part *p)
{
    return c->size == 1 && p->kind <= SCATTER && (p->op == ncclAvg || p->factor != 1);
}

static bool is_refused (const struct ncclComm *c, const struct part *p)
{
    bool f8 = p->type == ncclFloat8e4m3 || p->type == ncclFloat8e5m2;

    return p->factor == 0
           || (f8 && p->kind <= SCATTER && (fakecuda_has ("ampere") || multiplies_alone (c, p)));
}

/* For some lengths, that kernel does not process the last elements. */
static size_t reached (const struct ncclComm *c, const struct part *p)
{
    size_t pack = 16 / size_of (p->type);
    size_t blocks = (p->n * size_of (p->type) + 16383) / 16384;
    size_t all;

    if (!multiplies_alone (c, p) || p->n == 0)
        return p->n;
    blocks = blocks < 32 ? blocks : 32;
    all = (p->n / blocks + pack - 1) / pack * pack * blocks;
    return all < p->n ? all : p->n;
}

static ncclResult_t add (struct ncclComm *c, cudaStream_t stream, struct part p)
{
    struct work *w = open_work ? open_work : calloc (1, sizeof (*w));

    w->comm = c;
    p.factor = 1;
    p.bytes = p.kind == RECV ? 0 : p.n * size_of (p.type);
    if (p.kind == SCATTER)
        p.bytes *= (size_t)c->size;
    if (p.kind == BROADCAST && p.peer != c->rank)
        p.bytes = 0;
    if ((int)p.op >= FIRST_OP) {
        p.factor = c->factors[(int)p.op - FIRST_OP];
        p.op = ncclSum;
    }
    w->part[w->parts++] = p;
    if (is_refused (c, &p)) {
        c->refused = true;
        return ncclInvalidArgument;
    }
    if (depth == 0) {
        publish (w, stream);
        return ncclInProgress;
    }
    open_work = w;
    open_stream = stream;
    return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum (ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                       ncclScalarResidence_t residence, ncclComm_t c)
{
    int i = 0;

    if (residence != ncclScalarHostImmediate)
        return ncclInvalidArgument;
    while (i < OPS && c->factors[i] != 0)
        i++;
    if (i == OPS)
        return ncclInternalError;
    reduce_convert (&c->factors[i], SLURMDL_F64, scalar, types[type], 1);
    *op = (ncclRedOp_t)(FIRST_OP + i);
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy (ncclRedOp_t op, ncclComm_t c)
{
    c->factors[(int)op - FIRST_OP] = 0;
    return ncclSuccess;
}

/* nccl.h declares these without prototypes */
ncclResult_t ncclGroupStart (void);
ncclResult_t ncclGroupEnd (void);

ncclResult_t ncclGroupStart (void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd (void)
{
    if (--depth > 0 || !open_work)
        return ncclSuccess;
    publish (open_work, open_stream);
    open_work = NULL;
    return ncclInProgress;
}

/* clang-format off */
ncclResult_t ncclAllReduce (const void *in, void *out, size_t n,
                            ncclDataType_t t, ncclRedOp_t op,
                            ncclComm_t c, cudaStream_t s)
{
    return add (c, s, (struct part){ ALLREDUCE, in, out, n, 0, t, op, 0, 0 });
}

ncclResult_t ncclReduce (const void *in, void *out, size_t n,
                         ncclDataType_t t, ncclRedOp_t op, int root,
                         ncclComm_t c, cudaStream_t s)
{
    return add (c, s, (struct part){ REDUCE, in, out, n, 0, t, op, root, 0 });
}

ncclResult_t ncclReduceScatter (const void *in, void *out, size_t n,
                                ncclDataType_t t, ncclRedOp_t op,
                                ncclComm_t c, cudaStream_t s)
{
    return add (
        c, s, (struct part){ SCATTER, in, out, n, 0, t, op, 0, 0 });
}

ncclResult_t ncclAllGather (const void *in, void *out, size_t n,
                            ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{
    return add (c, s, (struct part){ ALLGATHER, in, out, n, 0, t, 0, 0, 0 });
}

ncclResult_t ncclBroadcast (const void *in, void *out, size_t n,
                            ncclDataType_t t, int root,
                            ncclComm_t c, cudaStream_t s)
{
    return add (c, s, (struct part){ BROADCAST, in, out, n, 0, t, 0, root, 0 });
}

ncclResult_t ncclSend (const void *in, size_t n, ncclDataType_t t, int peer,
                       ncclComm_t c, cudaStream_t s)
{
    return add (c, s, (struct part){ SEND, in, NULL, n, 0, t, 0, peer, 0 });
}

ncclResult_t ncclRecv (void *out, size_t n, ncclDataType_t t, int peer,
                       ncclComm_t c, cudaStream_t s)
{
    return add (c, s, (struct part){ RECV, NULL, out, n, 0, t, 0, peer, 0 });
}
/* clang-format on */

/* ---- kernels: each rank writes its parts to a file, and reads those of the others ---- */

static void leave_parts (const struct ncclComm *c, const struct work *w)
{
    char path[128];
    FILE *f;

    path_of (c, w->turn, c->rank, path);
    if (!(f = fopen (path, "we")))
        abort ();
    for (int i = 0; i < w->parts; i++) {
        fwrite (&w->part[i], sizeof (w->part[i]), 1, f);
        if (w->part[i].bytes > 0)
            fwrite (w->part[i].in, 1, w->part[i].bytes, f);
    }
    fclose (f);
}

/* Returns the data of part 'i' of rank 'from', or what that rank sent to this one.  The caller
 * frees it.
 */
static char *read_part (const struct ncclComm *c, const struct work *w, int from, int i)
{
    bool sent = w->part[i].kind == RECV;
    struct part p;
    char path[128];
    char *data = NULL;
    FILE *f;

    path_of (c, w->turn, from, path);
    if (!(f = fopen (path, "re")))
        abort ();
    for (int k = 0; fread (&p, sizeof (p), 1, f) == 1; k++) {
        if (sent ? p.kind == SEND && p.peer == c->rank : k == i) {
            data = malloc (p.bytes + 1);
            if (fread (data, 1, p.bytes, f) != p.bytes)
                abort ();
            break;
        }
        fseek (f, (long)p.bytes, SEEK_CUR);
    }
    fclose (f);
    if (!data)
        abort ();
    return data;
}

static enum slurmdl_op op_of (ncclRedOp_t op)
{
    return op == ncclProd  ? SLURMDL_PRODUCT
           : op == ncclMax ? SLURMDL_MAX
           : op == ncclMin ? SLURMDL_MIN
                           : SLURMDL_SUM;
}

/* Reduce the parts of all ranks, starting at element 'at'. */
static void fold (const struct ncclComm *c, const struct work *w, int i, size_t at)
{
    const struct part *p = &w->part[i];
    enum slurmdl_type t = types[p->type];
    const void **from = calloc ((size_t)c->size, sizeof (*from));
    char **data = calloc ((size_t)c->size, sizeof (*data));

    for (int r = 0; r < c->size; r++) {
        data[r] = read_part (c, w, r, i);
        reduce_scale (data[r], p->bytes / size_of (p->type), t, p->factor);
        from[r] = data[r] + at * size_of (p->type);
    }
    reduce_many (p->out, from, (size_t)c->size, reached (c, p), t, op_of (p->op));
    if (p->op == ncclAvg)
        reduce_scale (p->out, p->n, t, 1.0 / c->size);
    for (int r = 0; r < c->size; r++)
        free (data[r]);
    free (data);
    free (from);
}

static void copy (const struct ncclComm *c, const struct work *w, int i, int from, size_t at)
{
    const struct part *p = &w->part[i];
    size_t n = p->n * size_of (p->type);
    char *data = read_part (c, w, from, i);

    memcpy ((char *)p->out + at * n, data, n);
    free (data);
}

static void take_part (const struct ncclComm *c, const struct work *w, int i)
{
    const struct part *p = &w->part[i];

    if (p->kind == ALLREDUCE || (p->kind == REDUCE && p->peer == c->rank))
        fold (c, w, i, 0);
    else if (p->kind == SCATTER)
        fold (c, w, i, (size_t)c->rank * p->n);
    else if (p->kind == BROADCAST || p->kind == RECV)
        copy (c, w, i, p->peer, 0);
    for (int r = 0; p->kind == ALLGATHER && r < c->size; r++)
        copy (c, w, i, r, (size_t)r);
}

static void drop (struct work *w)
{
    struct work **at = &w->comm->first;

    remove_file (w);
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free (w);
}

static bool run (void *arg)
{
    struct work *w = arg;
    struct ncclComm *c = w->comm;
    atomic_int *came, *gone;
    int round;

    if (!c) {
        free (w);
        return true;
    }
    came = &c->shared->came[w->turn % TURNS];
    gone = &c->shared->left[w->turn % TURNS];
    round = (int)(w->turn / TURNS + 1) * c->size;
    if (fakecuda_has ("stuck") || fakecuda_has ("async"))
        return false;
    if (w->phase == 0) {
        leave_parts (c, w);
        atomic_fetch_add (came, 1);
        w->phase = 1;
    }
    if (w->phase == 1 && atomic_load (came) >= round) {
        for (int i = 0; i < w->parts; i++)
            take_part (c, w, i);
        atomic_fetch_add (gone, 1);
        w->phase = 2;
    }
    if (w->phase < 2 || atomic_load (gone) < round)
        return false;
    drop (w);
    return true;
}
