/* SPDX-License-Identifier: Apache-2.0 */
/* slurmdl-mpi.so: the MPI back end. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/api/backend.h"

/* MPI counts with int, so larger messages go in parts of this many elements. */
#ifndef MPI_PART
#define MPI_PART (1 << 30)
#endif

static inline size_t mpi_least (size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Make a non-blocking call and wait for it.  The caller has a variable 'request'. */
#define CALL(s, err, name, ...)                                                                    \
    (mpi_enter (),                                                                                 \
     mpi_finish (s, MPI_I##name (__VA_ARGS__, &request), &request, "MPI_I" #name, err))

struct mpi_self {
    struct mesh *mesh;
    MPI_Comm comm;
    int size;
    double timeout;
    atomic_bool aborted, failed;
    bool takes_device; /* on all ranks, sends and receives take device memory */
    /* per rank, for calls that want int */
    int *counts, *places, *counts2, *places2;
};

enum { CHECK_EACH = 4096 }; /* tests of a request between checks of the clock */

static const struct comm_services *mpi_lib;
static atomic_bool mpi_has_failed; /* true once any communicator has failed */
static bool mpi_takes_turns;       /* MPI supports only one thread at a time */
static pthread_mutex_t mpi_turn = PTHREAD_MUTEX_INITIALIZER;

/* Surrounds each MPI call if MPI supports only one thread at a time. */
static void mpi_enter (void)
{
    if (mpi_takes_turns)
        pthread_mutex_lock (&mpi_turn);
}

static void mpi_leave (void)
{
    if (mpi_takes_turns)
        pthread_mutex_unlock (&mpi_turn);
}

/* Report MPI's error 'code'.  Returns -1. */
static int mpi_failed (int code, const char *what, struct slurmdl_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;

    MPI_Error_string (code, text, &n);
    errno = EIO;
    return errorf (err, "%s: %s", what, text);
}

static int mpi_give_up (struct mpi_self *s, int error)
{
    atomic_store (&s->failed, true);
    atomic_store (&mpi_has_failed, true);
    errno = error;
    return -1;
}

/* Whether to keep waiting.  Returns -1 after the deadline, an abort or the end of a
 * rank.
 */
static int mpi_look (struct mpi_self *s, double deadline, struct slurmdl_error *err)
{
    if (atomic_load (&s->aborted)) {
        errorf (err, "mpi: aborted");
        return mpi_give_up (s, ECONNRESET);
    }
    if (mpi_lib->check (s->mesh, err) < 0)
        return mpi_give_up (s, errno);
    if (monotonic () < deadline)
        return 0;
    errorf (err, "mpi: rank %ld has waited for %g s for the others", mpi_lib->rank (s->mesh),
            s->timeout);
    return mpi_give_up (s, ETIMEDOUT);
}

/* Finish a call made after mpi_enter() that has returned 'code': leave, and wait
 * for it.  A request that we give up on is not freed.
 */
static int mpi_finish (struct mpi_self *s, int code, MPI_Request *request, const char *what,
                       struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    int done = 0;

    mpi_leave (); /* taken by the caller or CALL() */
    if (code == MPI_SUCCESS)
        for (long n = 1; !done; n++) {
            mpi_enter ();
            code = MPI_Test (request, &done, MPI_STATUS_IGNORE);
            mpi_leave ();
            if (code != MPI_SUCCESS || done)
                break;
            if (n % CHECK_EACH == 0 && mpi_look (s, deadline, err) < 0)
                return -1;
            sched_yield ();
        }
    if (code == MPI_SUCCESS)
        return 0;
    mpi_failed (code, what, err);
    return mpi_give_up (s, EIO);
}

/* Types that MPI does not have travel as integers of the same size.  We use only
 * our own operations on them, each of which knows its type.
 */
static MPI_Datatype mpi_type_of (enum slurmdl_type type)
{
    switch (type) {
    case SLURMDL_I8:
        return MPI_INT8_T;
    case SLURMDL_U8:
    case SLURMDL_F8_E4M3:
    case SLURMDL_F8_E5M2:
        return MPI_UINT8_T;
    case SLURMDL_I16:
        return MPI_INT16_T;
    case SLURMDL_U16:
    case SLURMDL_F16:
    case SLURMDL_BF16:
        return MPI_UINT16_T;
    case SLURMDL_I32:
        return MPI_INT32_T;
    case SLURMDL_U32:
        return MPI_UINT32_T;
    case SLURMDL_I64:
        return MPI_INT64_T;
    case SLURMDL_U64:
        return MPI_UINT64_T;
    case SLURMDL_F32:
        return MPI_FLOAT;
    case SLURMDL_F64:
        return MPI_DOUBLE;
    case SLURMDL_C64:
        return MPI_C_FLOAT_COMPLEX;
    case SLURMDL_C128:
        return MPI_C_DOUBLE_COMPLEX;
    case SLURMDL_BOOL:
        return MPI_C_BOOL;
    }
    return MPI_DATATYPE_NULL;
}

#define OP(name, type, op)                                                                         \
    static void name (void *in, void *out, int *n, MPI_Datatype *t)                                \
    {                                                                                              \
        (void)t;                                                                                   \
        mpi_lib->pair (out, in, out, (size_t)*n, type, op);                                        \
    }
#define OPS(name, type)                                                                            \
    OP (name##_sum, type, SLURMDL_SUM)                                                             \
    OP (name##_min, type, SLURMDL_MIN)                                                             \
    OP (name##_max, type, SLURMDL_MAX)                                                             \
    OP (name##_product, type, SLURMDL_PRODUCT)
/* Open MPI 4's vector code saturates sums of these types, while ours wrap around. */
OPS (i8, SLURMDL_I8)
OPS (u8, SLURMDL_U8)
OPS (i16, SLURMDL_I16)
OPS (u16, SLURMDL_U16)
/* added in F32, and rounded before they are passed on */
OPS (f16, SLURMDL_F16)
OPS (bf16, SLURMDL_BF16)
OPS (e4m3, SLURMDL_F8_E4M3)
OPS (e5m2, SLURMDL_F8_E5M2)

/* clang-format off */
#define ROW(name) { name##_sum, name##_sum, name##_min, name##_max, name##_product }
/* clang-format on */

enum { TYPES = SLURMDL_F8_E5M2 + 1, OPS = SLURMDL_PRODUCT + 1 };

static MPI_User_function *const op_functions[TYPES][OPS] = {
    [SLURMDL_I8] = ROW (i8),        [SLURMDL_U8] = ROW (u8),        [SLURMDL_I16] = ROW (i16),
    [SLURMDL_U16] = ROW (u16),      [SLURMDL_F16] = ROW (f16),      [SLURMDL_BF16] = ROW (bf16),
    [SLURMDL_F8_E4M3] = ROW (e4m3), [SLURMDL_F8_E5M2] = ROW (e5m2),
};

static MPI_Op own_ops[TYPES][OPS];

/* Call once, after MPI_Init(). */
static int mpi_make_ops (struct slurmdl_error *err)
{
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < OPS && op_functions[t][i]; i++) {
            int rv = MPI_Op_create (op_functions[t][i], 1, &own_ops[t][i]);
            if (rv != MPI_SUCCESS)
                return mpi_failed (rv, "MPI_Op_create", err);
        }
    return 0;
}

static MPI_Op mpi_op_of (enum slurmdl_type type, enum slurmdl_op op)
{
    bool truth = type == SLURMDL_BOOL;

    if (op_functions[type][op])
        return own_ops[type][op];
    switch (op) {
    case SLURMDL_SUM:
    case SLURMDL_AVERAGE:
        return truth ? MPI_LOR : MPI_SUM;
    case SLURMDL_MIN:
        return truth ? MPI_LAND : MPI_MIN;
    case SLURMDL_MAX:
        return truth ? MPI_LOR : MPI_MAX;
    case SLURMDL_PRODUCT:
        return truth ? MPI_LAND : MPI_PROD;
    }
    return MPI_OP_NULL;
}

/* Bytes of a broadcast that are passed on while the next ones arrive. */
enum { PIECE = 1 << 22 };

/* All-to-all, all-gather and broadcast of any size use sends and receives, which
 * take device memory if the library supports it.  Its non-blocking collectives do
 * not (Open MPI's FAQ, "Which MPI APIs do NOT work with CUDA-aware?").
 */
static bool mpi_on_device (const struct mpi_self *s, const void *p)
{
    return s->takes_device && p && mpi_lib->is_device (p);
}

/* A message to one rank and a message from another at the same time. */
struct mpi_sendrecv {
    const char *out;
    char *in;
    size_t nout, nin;
    int to, from;
};

static int part_of_trade (struct mpi_self *s, const struct mpi_sendrecv *t, size_t at,
                          struct slurmdl_error *err)
{
    MPI_Request in = MPI_REQUEST_NULL, out = MPI_REQUEST_NULL;
    int rv = MPI_SUCCESS;

    mpi_enter ();
    if (at < t->nin)
        rv = MPI_Irecv (t->in + at, (int)mpi_least (MPI_PART, t->nin - at), MPI_BYTE, t->from, 1,
                        s->comm, &in);
    if (rv == MPI_SUCCESS && at < t->nout)
        rv = MPI_Isend (t->out + at, (int)mpi_least (MPI_PART, t->nout - at), MPI_BYTE, t->to, 1,
                        s->comm, &out);
    if (mpi_finish (s, rv, &in, "MPI_Irecv", err) < 0)
        return -1;
    mpi_enter ();
    return mpi_finish (s, MPI_SUCCESS, &out, "MPI_Isend", err);
}

static size_t sum_before (const size_t *n, int k)
{
    size_t sum = 0;

    for (int i = 0; i < k; i++)
        sum += n[i];
    return sum;
}

static int mpi_sendrecv_all (struct mpi_self *s, const char *in, const size_t *to, char *out,
                             const size_t *from, struct slurmdl_error *err)
{
    int rank = (int)mpi_lib->rank (s->mesh);

    for (int step = 0; step < s->size; step++) {
        int t = (rank + step) % s->size;
        int f = (rank + s->size - step) % s->size;
        struct mpi_sendrecv x = { to ? in + sum_before (to, t) : in,
                                  out + sum_before (from, f),
                                  to ? to[t] : from[rank],
                                  from[f],
                                  t,
                                  f };
        for (size_t at = 0; at < x.nout || at < x.nin; at += MPI_PART)
            if (part_of_trade (s, &x, at, err) < 0)
                return -1;
    }
    return 0;
}

/* Pass a piece along a binomial tree.  'place' counts from the root.  The children
 * of a place differ from it in one bit above its highest.
 */
static int pass_piece (struct mpi_self *s, char *data, int n, int root, int place,
                       struct slurmdl_error *err)
{
    MPI_Request requests[32];
    int bit = 1, sent = 0, rv = MPI_SUCCESS;

    while (bit <= place)
        bit *= 2;
    if (place > 0) {
        mpi_enter ();
        rv = MPI_Irecv (data, n, MPI_BYTE, (place - bit / 2 + root) % s->size, 2, s->comm,
                        &requests[0]);
        if (mpi_finish (s, rv, &requests[0], "MPI_Irecv", err) < 0)
            return -1;
    }
    for (; rv == MPI_SUCCESS && place + bit < s->size; bit *= 2) {
        mpi_enter ();
        rv = MPI_Isend (data, n, MPI_BYTE, (place + bit + root) % s->size, 2, s->comm,
                        &requests[sent]);
        mpi_leave ();
        sent += rv == MPI_SUCCESS;
    }
    for (int i = 0; i < sent; i++) {
        mpi_enter ();
        if (mpi_finish (s, MPI_SUCCESS, &requests[i], "MPI_Isend", err) < 0)
            return -1;
    }
    return rv == MPI_SUCCESS ? 0 : mpi_failed (rv, "MPI_Isend", err);
}

static int mpi_forward (struct mpi_self *s, char *data, size_t bytes, long root,
                        struct slurmdl_error *err)
{
    int place = ((int)mpi_lib->rank (s->mesh) - (int)root + s->size) % s->size;
    size_t most = mpi_least (PIECE, MPI_PART);

    for (size_t at = 0; at < bytes; at += most)
        if (pass_piece (s, data + at, (int)mpi_least (most, bytes - at), (int)root, place, err) < 0)
            return -1;
    return 0;
}

/* A reduction to one rank, or to all if 'root' is -1. */
struct mpi_job {
    struct mpi_self *s;
    enum slurmdl_type type;
    enum slurmdl_op op;
    long root;
    bool mine; /* this rank gets the result */
    struct slurmdl_error *err;
};

static int part_of_job (struct mpi_job *j, const void *in, void *out, size_t n)
{
    MPI_Datatype type = mpi_type_of (j->type);
    MPI_Op op = mpi_op_of (j->type, j->op);
    MPI_Request request;
    int rv;

    if (in == out && j->mine)
        in = MPI_IN_PLACE;
    if (j->root < 0)
        rv = CALL (j->s, j->err, allreduce, in, out, (int)n, type, op, j->s->comm);
    else
        rv = CALL (j->s, j->err, reduce, in, j->mine ? out : NULL, (int)n, type, op, (int)j->root,
                   j->s->comm);
    if (rv == 0 && j->mine && j->op == SLURMDL_AVERAGE)
        mpi_lib->scale (out, n, j->type, 1.0 / j->s->size);
    return rv;
}

static int mpi_allreduce_parts (struct mpi_job *j, const void *in, void *out, size_t n)
{
    size_t size = mpi_lib->type_size (j->type);

    for (size_t at = 0; at < n; at += MPI_PART)
        if (part_of_job (j, (const char *)in + at * size, out ? (char *)out + at * size : NULL,
                         mpi_least (MPI_PART, n - at))
            < 0)
            return -1;
    return 0;
}

static int mpi_allreduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_job j = { self, a->type, a->op, -1, true, err };

    return mpi_allreduce_parts (&j, a->in, a->out, a->n);
}

static int mpi_reduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    bool mine = mpi_lib->rank (s->mesh) == a->root;
    struct mpi_job j = { s, a->type, a->op, a->root, mine, err };

    return mpi_allreduce_parts (&j, a->in, a->out, a->n);
}

/* Convert the counts of all ranks to int.  Returns false if they are too large. */
static bool mpi_counts_fit (const struct mpi_self *s, const size_t *counts, int *out, int *places)
{
    size_t sum = 0;

    for (int i = 0; i < s->size; i++) {
        if (counts[i] > MPI_PART || sum > MPI_PART)
            return false;
        out[i] = (int)counts[i];
        places[i] = (int)sum;
        sum += counts[i];
    }
    return sum <= MPI_PART;
}

static int scatter_in_parts (struct mpi_job *j, const void *in, void *out, const size_t *counts)
{
    size_t size = mpi_lib->type_size (j->type);
    const char *from = in;

    for (long r = 0; r < j->s->size; r++) {
        j->root = r;
        j->mine = mpi_lib->rank (j->s->mesh) == r;
        if (mpi_allreduce_parts (j, from, j->mine ? out : NULL, counts[r]) < 0)
            return -1;
        from += counts[r] * size;
    }
    return 0;
}

static int mpi_reduce_scatter (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    struct mpi_job j = { s, a->type, a->op, 0, false, err };
    MPI_Request request;

    if (!mpi_counts_fit (s, a->counts, s->counts, s->places))
        return scatter_in_parts (&j, a->in, a->out, a->counts);
    if (CALL (s, err, reduce_scatter, a->in, a->out, s->counts, mpi_type_of (a->type),
              mpi_op_of (a->type, a->op), s->comm)
        < 0)
        return -1;
    if (a->op == SLURMDL_AVERAGE)
        mpi_lib->scale (a->out, a->counts[mpi_lib->rank (s->mesh)], a->type, 1.0 / s->size);
    return 0;
}

static int broadcast_bytes (struct mpi_self *s, char *data, size_t bytes, long root,
                            struct slurmdl_error *err)
{
    MPI_Request request;

    if (mpi_on_device (s, data))
        return mpi_forward (s, data, bytes, root, err);
    for (size_t at = 0; at < bytes; at += MPI_PART)
        if (CALL (s, err, bcast, data + at, (int)mpi_least (MPI_PART, bytes - at), MPI_BYTE,
                  (int)root, s->comm)
            < 0)
            return -1;
    return 0;
}

static int mpi_broadcast (void *self, const struct collective *a, struct slurmdl_error *err)
{
    return broadcast_bytes (self, a->out, a->n, a->root, err);
}

static int gather_in_parts (struct mpi_self *s, const void *in, char *out, const size_t *bytes,
                            struct slurmdl_error *err)
{
    long rank = mpi_lib->rank (s->mesh);

    for (long r = 0; r < s->size; r++) {
        if (r == rank && in != out)
            memcpy (out, in, bytes[r]);
        if (broadcast_bytes (s, out, bytes[r], r, err) < 0)
            return -1;
        out += bytes[r];
    }
    return 0;
}

static int mpi_allgather (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;

    if (mpi_on_device (s, a->out))
        return mpi_sendrecv_all (s, a->in, NULL, a->out, a->counts, err);
    if (!mpi_counts_fit (s, a->counts, s->counts, s->places))
        return gather_in_parts (s, a->in, a->out, a->counts, err);
    return CALL (s, err, allgatherv, a->in, (int)a->counts[mpi_lib->rank (s->mesh)], MPI_BYTE,
                 a->out, s->counts, s->places, MPI_BYTE, s->comm);
}

static int mpi_alltoall (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;
    int32_t mine = mpi_counts_fit (s, a->counts, s->counts, s->places)
                   && mpi_counts_fit (s, a->from, s->counts2, s->places2)
                   && !mpi_on_device (s, a->in) && !mpi_on_device (s, a->out);
    int32_t all = mine;

    /* all ranks take the same path */
    if (CALL (s, err, allreduce, &mine, &all, 1, MPI_INT32_T, MPI_MIN, s->comm) < 0)
        return -1;
    if (!all)
        return mpi_sendrecv_all (s, a->in, a->counts, a->out, a->from, err);
    return CALL (s, err, alltoallv, a->in, s->counts, s->places, MPI_BYTE, a->out, s->counts2,
                 s->places2, MPI_BYTE, s->comm);
}

static int mpi_barrier (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;

    (void)a;
    return CALL (s, err, barrier, s->comm);
}

static int mpi_run (void *self, const struct collective *a, struct slurmdl_error *err)
{
    static const collective_f run[COMM_KINDS] = {
        [COMM_ALLREDUCE] = mpi_allreduce,
        [COMM_REDUCE] = mpi_reduce,
        [COMM_REDUCE_SCATTER] = mpi_reduce_scatter,
        [COMM_ALLGATHER] = mpi_allgather,
        [COMM_BROADCAST] = mpi_broadcast,
        [COMM_ALLTOALL] = mpi_alltoall,
        [COMM_BARRIER] = mpi_barrier,
    };

    return run[a->what](self, a, err);
}

static pid_t initialised; /* process in which we initialized MPI */

static void mpi_attach (const struct comm_services *s)
{
    mpi_lib = s;
}

/* ---- start and end ---- */

/* Do not finalize after a failure: it would wait for ranks that are gone. */
static void finalize (void)
{
    int done = 0;

    MPI_Finalized (&done);
    if (!done && getpid () == initialised && !atomic_load (&mpi_has_failed))
        MPI_Finalize ();
}

/* Open MPI's MPI_Init() ends a process that srun started without PMI. */
static bool is_told_of_others (void)
{
    return !getenv ("SLURM_PROCID") || !getenv ("SLURM_STEP_NODELIST") || getenv ("PMIX_RANK")
           || getenv ("PMI_FD") || getenv ("OMPI_COMM_WORLD_RANK");
}

static int initialise (struct slurmdl_error *err)
{
    int there = 0, over = 0, level = 0, here = 0;

    MPI_Finalized (&over);
    if (over) {
        errno = ENOTSUP;
        return errorf (err, "MPI has been finalised");
    }
    MPI_Initialized (&there);
    if (!there && !is_told_of_others ()) {
        errno = ENOTSUP;
        return errorf (err, "MPI would end this process, as the step has no PMI: "
                            "start it with srun --mpi=pmix or mpirun");
    }
    if (!there) {
        int rv;
        /* its plugins need its symbols */
        dlopen ("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
        rv = MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        if (rv != MPI_SUCCESS)
            return mpi_failed (rv, "MPI_Init_thread", err);
        initialised = getpid ();
        atexit (finalize);
    }
    MPI_Query_thread (&level);
    MPI_Is_thread_main (&here);
    if (level < MPI_THREAD_SERIALIZED && !here) {
        errno = ENOTSUP;
        return errorf (
            err,
            "MPI was initialised for one thread, but this is another: call MPI_Init_thread with "
            "MPI_THREAD_MULTIPLE");
    }
    mpi_takes_turns = level < MPI_THREAD_MULTIPLE;
    return mpi_make_ops (err);
}

static pthread_once_t mpi_once = PTHREAD_ONCE_INIT;
static struct slurmdl_error why_not;
static int can;

static void try_once (void)
{
    can = initialise (&why_not);
}

static int mpi_probe (struct slurmdl_error *err)
{
    int over = 0;

    pthread_once (&mpi_once, try_once);
    MPI_Finalized (&over);
    if (can == 0 && !over)
        return 0;
    errno = ENOTSUP;
    return errorf (err, "%s", over ? "MPI has been finalised" : why_not.text);
}

/* What each rank sends about itself. */
struct mpi_peer {
    int rank; /* rank in MPI_COMM_WORLD */
    int tag;  /* the first rank's is the tag of the new communicator */
    int cuda; /* MPI accepts device memory */
};

static int check_peers (const struct mpi_self *s, const struct mpi_peer *peers,
                        struct slurmdl_error *err)
{
    for (int i = 0; i < s->size; i++)
        for (int k = 0; k < i; k++)
            if (peers[i].rank == peers[k].rank) {
                errno = ENOTSUP;
                return errorf (err,
                               "ranks %d and %d are both rank %d of MPI: MPI does not know the "
                               "other ranks: start them with srun --mpi=pmix or mpirun",
                               k, i, peers[i].rank);
            }
    return 0;
}

/* Open MPI and MPICH have this function.  Assume no support in other libraries. */
static bool takes_cuda (void)
{
    int (*query) (void) = dlsym (RTLD_DEFAULT, "MPIX_Query_cuda_support");

    return query && query () == 1;
}

static bool takes_device (void *self, enum collective_kind what)
{
    const struct mpi_self *s = self;

    return s->takes_device
           && (what == COMM_ALLGATHER || what == COMM_BROADCAST || what == COMM_ALLTOALL);
}

/* A communicator under construction.  MPI has no timeout for that, so a thread does
 * it, which is left behind if necessary.  The last of the two users frees this.
 */
struct making {
    MPI_Group world, group;
    int tag;
    MPI_Comm comm;
    int rv;
    atomic_bool done;
    atomic_int users;
};

static void making_leave (struct making *m)
{
    if (atomic_fetch_sub (&m->users, 1) == 1)
        free (m);
}

static void *make_communicator (void *arg)
{
    struct making *m = arg;

    mpi_enter ();
    m->rv = MPI_Comm_create_group (MPI_COMM_WORLD, m->group, m->tag, &m->comm);
    if (m->rv == MPI_SUCCESS)
        MPI_Comm_set_errhandler (m->comm, MPI_ERRORS_RETURN);
    MPI_Group_free (&m->group);
    MPI_Group_free (&m->world);
    mpi_leave ();
    atomic_store (&m->done, true);
    making_leave (m);
    return NULL;
}

/* Block all signals in our thread: they are for the program. */
static int start_making (struct making *m)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    pthread_attr_init (&attr);
    pthread_attr_setdetachstate (&attr, PTHREAD_CREATE_DETACHED);
    rc = pthread_create (&thread, &attr, make_communicator, m);
    pthread_attr_destroy (&attr);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    errno = rc;
    return rc ? -1 : 0;
}

/* If the library takes one thread at a time, a thread waiting in it would leave it
 * locked.  In that case MPI_Comm_create_group() has no timeout.  MPI_Comm_idup(),
 * which can be tested, needs all ranks of MPI_COMM_WORLD.
 */
static int make_in_time (struct mpi_self *s, struct making *m, struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    struct timespec nap = { 0, 100000 };

    if (mpi_takes_turns || start_making (m) < 0)
        make_communicator (m);
    for (long n = 1; !atomic_load (&m->done); n++) {
        if (n % 100 == 0 && mpi_look (s, deadline, err) < 0)
            return -1;
        nanosleep (&nap, NULL);
    }
    s->comm = m->comm;
    return m->rv == MPI_SUCCESS ? 0 : mpi_failed (m->rv, "MPI_Comm_create_group", err);
}

/* Use the mesh's order of ranks, whatever their ranks in MPI_COMM_WORLD. */
static int make_comm (struct mpi_self *s, const struct mpi_peer *peers, struct slurmdl_error *err)
{
    struct making *m = calloc (1, sizeof (*m));
    int *ranks = malloc ((size_t)s->size * sizeof (*ranks));
    int rv;

    if (!ranks || !m) {
        free (ranks);
        free (m);
        return errorf (err, "out of memory");
    }
    for (int i = 0; i < s->size; i++)
        ranks[i] = peers[i].rank;
    m->tag = peers[0].tag;
    m->comm = MPI_COMM_NULL;
    atomic_store (&m->users, 2);
    mpi_enter ();
    MPI_Comm_group (MPI_COMM_WORLD, &m->world);
    MPI_Group_incl (m->world, s->size, ranks, &m->group);
    mpi_leave ();
    rv = make_in_time (s, m, err);
    making_leave (m);
    free (ranks);
    return rv;
}

static void mpi_close (void *self)
{
    struct mpi_self *s = self;
    int over = 0;

    if (!s)
        return;
    MPI_Finalized (&over);
    /* it would wait for a collective in progress */
    if (!over && s->comm != MPI_COMM_NULL && !atomic_load (&s->failed)) {
        mpi_enter ();
        MPI_Comm_free (&s->comm);
        mpi_leave ();
    }
    free (s->counts);
    free (s);
}

static struct mpi_self *mpi_create (struct mesh *m)
{
    struct mpi_self *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->mesh = m;
    s->comm = MPI_COMM_NULL;
    s->size = (int)mpi_lib->size (m);
    s->timeout = mpi_lib->timeout (m);
    s->counts = calloc ((size_t)s->size * 4, sizeof (*s->counts));
    if (!s->counts) {
        free (s);
        return NULL;
    }
    s->places = s->counts + s->size;
    s->counts2 = s->places + s->size;
    s->places2 = s->counts2 + s->size;
    return s;
}

static int mpi_open (struct mesh *m, void **self, struct slurmdl_error *err)
{
    static atomic_int tags;
    struct mpi_self *s = mpi_create (m);
    struct mpi_peer mine = { 0, atomic_fetch_add (&tags, 1) % 16384, takes_cuda () };
    struct mpi_peer *peers;
    int rv = -1;

    if (!s)
        return errorf (err, "out of memory");
    MPI_Comm_rank (MPI_COMM_WORLD, &mine.rank);
    peers = malloc ((size_t)s->size * sizeof (*peers));
    if (!peers)
        errorf (err, "out of memory");
    else if (mpi_lib->gather (m, &mine, sizeof (mine), peers, err) == 0
             && check_peers (s, peers, err) == 0)
        rv = make_comm (s, peers, err);
    s->takes_device = rv == 0;
    for (int i = 0; rv == 0 && i < s->size; i++)
        s->takes_device = s->takes_device && peers[i].cuda;
    free (peers);
    if (rv < 0)
        mpi_close (s);
    else
        *self = s;
    return rv;
}

static void mpi_abort (void *self)
{
    struct mpi_self *s = self;

    atomic_store (&s->aborted, true);
}

extern const struct comm_backend slurmdl_backend_mpi;
const struct comm_backend slurmdl_backend_mpi = {
    .name = "mpi",
    .probe = mpi_probe,
    .open = mpi_open,
    .close = mpi_close,
    .abort = mpi_abort,
    .run = mpi_run,
    .attach = mpi_attach,
    .takes_device = takes_device,
};
