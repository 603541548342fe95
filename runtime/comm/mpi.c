/* SPDX-License-Identifier: Apache-2.0 */
/* The back end MPI: the module slurmdl-mpi.so. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/comm/backend.h"
#include "runtime/error.h"

/* MPI counts with int: more goes in parts of so many elements. */
#ifndef MPI_PART
#define MPI_PART (1 << 30)
#endif

enum {
    NARROW_PART = 1 << 22, /* elements that are F32 for their way */
    CHECK_EACH = 4096      /* looks at a request between those at the clock */
};

struct self {
    struct mesh *mesh;
    MPI_Comm comm;
    int size;
    double timeout;
    atomic_bool aborted, failed;
    /* of each rank, for those calls that want int */
    int *counts, *places, *counts2, *places2;
};

static const struct comm_services *lib;
static pid_t initialised; /* by us, in this process */
static atomic_bool any_failed;

/* Where the library has promised threads only one at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool must_take_turns;

static void attach (const struct comm_services *s)
{
    lib = s;
}

static void enter (void)
{
    if (must_take_turns)
        pthread_mutex_lock (&turn);
}

static void leave (void)
{
    if (must_take_turns)
        pthread_mutex_unlock (&turn);
}

static int failed (int code, const char *what, struct slurmdl_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;

    MPI_Error_string (code, text, &n);
    errno = EIO;
    return errorf (err, "%s: %s", what, text);
}

/* ---- types ---- */

static MPI_Datatype type_of (enum slurmdl_type type)
{
    switch (type) {
    case SLURMDL_I8:
        return MPI_INT8_T;
    case SLURMDL_U8:
        return MPI_UINT8_T;
    case SLURMDL_I16:
        return MPI_INT16_T;
    case SLURMDL_U16:
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
    case SLURMDL_F16:
    case SLURMDL_BF16:
    case SLURMDL_F8_E4M3:
    case SLURMDL_F8_E5M2:
        break;
    }
    return MPI_DATATYPE_NULL; /* they travel as F32 */
}

/* Open MPI 4's vector code saturates sums of these, where ours wrap around. */
static bool is_short (enum slurmdl_type type)
{
    return type == SLURMDL_I8 || type == SLURMDL_U8 || type == SLURMDL_I16
           || type == SLURMDL_U16;
}

static void
fold (void *in, void *out, int n, MPI_Datatype t, enum slurmdl_op op)
{
    for (int type = SLURMDL_I8; type <= SLURMDL_U16; type++)
        if (is_short ((enum slurmdl_type)type)
            && t == type_of ((enum slurmdl_type)type))
            lib->pair (out, in, out, (size_t)n, (enum slurmdl_type)type, op);
}

#define SHORT_OP(name, op)                                                     \
    static void name (void *in, void *out, int *n, MPI_Datatype *t)            \
    {                                                                          \
        fold (in, out, *n, *t, op);                                            \
    }
SHORT_OP (short_sum, SLURMDL_SUM)
SHORT_OP (short_min, SLURMDL_MIN)
SHORT_OP (short_max, SLURMDL_MAX)
SHORT_OP (short_product, SLURMDL_PRODUCT)

static MPI_Op short_ops[SLURMDL_PRODUCT + 1];

static int make_ops (struct slurmdl_error *err)
{
    static MPI_User_function *const f[] = { [SLURMDL_SUM] = short_sum,
                                            [SLURMDL_AVERAGE] = short_sum,
                                            [SLURMDL_MIN] = short_min,
                                            [SLURMDL_MAX] = short_max,
                                            [SLURMDL_PRODUCT] = short_product };

    for (int i = 0; i <= SLURMDL_PRODUCT; i++) {
        int rv = MPI_Op_create (f[i], 1, &short_ops[i]);
        if (rv != MPI_SUCCESS)
            return failed (rv, "MPI_Op_create", err);
    }
    return 0;
}

static MPI_Op op_of (enum slurmdl_type type, enum slurmdl_op op)
{
    bool truth = type == SLURMDL_BOOL;

    if (is_short (type))
        return short_ops[op];
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

static size_t least (size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- begin and end ---- */

/* Not after a failure: it would wait for ranks that have gone. */
static void finalize (void)
{
    int done = 0;

    MPI_Finalized (&done);
    if (!done && getpid () == initialised && !atomic_load (&any_failed))
        MPI_Finalize ();
}

/* Open MPI's MPI_Init() ends a process that srun has started without. */
static bool is_told_of_others (void)
{
    return !getenv ("SLURM_PROCID") || !getenv ("SLURM_STEP_NODELIST")
           || getenv ("PMIX_RANK") || getenv ("PMI_FD")
           || getenv ("OMPI_COMM_WORLD_RANK");
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
        return errorf (err,
                       "MPI would end this process, as the step has no PMI: "
                       "start it with srun --mpi=pmix or mpirun");
    }
    if (!there) {
        int rv;
        /* its plugins look for its symbols */
        dlopen ("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
        rv = MPI_Init_thread (NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        if (rv != MPI_SUCCESS)
            return failed (rv, "MPI_Init_thread", err);
        initialised = getpid ();
        atexit (finalize);
    }
    MPI_Query_thread (&level);
    MPI_Is_thread_main (&here);
    if (level < MPI_THREAD_SERIALIZED && !here) {
        errno = ENOTSUP;
        return errorf (err,
                       "MPI was initialised for one thread, and this is "
                       "another: call MPI_Init_thread with "
                       "MPI_THREAD_MULTIPLE");
    }
    must_take_turns = level < MPI_THREAD_MULTIPLE;
    return make_ops (err);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct slurmdl_error why_not;
static int can;

static void try_once (void)
{
    can = initialise (&why_not);
}

static int probe (struct slurmdl_error *err)
{
    int over = 0;

    pthread_once (&once, try_once);
    MPI_Finalized (&over);
    if (can == 0 && !over)
        return 0;
    errno = ENOTSUP;
    return errorf (err, "%s", over ? "MPI has been finalised" : why_not.text);
}

/* What each rank says of itself. */
struct card {
    int rank; /* in MPI_COMM_WORLD */
    int tag;  /* the first one's is that of the new communicator */
};

static int check_cards (const struct self *s,
                        const struct card *cards,
                        struct slurmdl_error *err)
{
    for (int i = 0; i < s->size; i++)
        for (int k = 0; k < i; k++)
            if (cards[i].rank == cards[k].rank) {
                errno = ENOTSUP;
                return errorf (err,
                               "ranks %d and %d are both rank %d of MPI, "
                               "which was not told of the others: start them "
                               "with srun --mpi=pmix or mpirun",
                               k,
                               i,
                               cards[i].rank);
            }
    return 0;
}

/* Ranks of the mesh in its order, whichever they are in MPI_COMM_WORLD. */
static int
make_comm (struct self *s, const struct card *cards, struct slurmdl_error *err)
{
    MPI_Group world, group;
    int *ranks = malloc ((size_t)s->size * sizeof (*ranks));
    int rv;

    if (!ranks)
        return errorf (err, "out of memory");
    for (int i = 0; i < s->size; i++)
        ranks[i] = cards[i].rank;
    enter ();
    MPI_Comm_group (MPI_COMM_WORLD, &world);
    MPI_Group_incl (world, s->size, ranks, &group);
    rv = MPI_Comm_create_group (MPI_COMM_WORLD, group, cards[0].tag, &s->comm);
    if (rv == MPI_SUCCESS)
        MPI_Comm_set_errhandler (s->comm, MPI_ERRORS_RETURN);
    MPI_Group_free (&group);
    MPI_Group_free (&world);
    leave ();
    free (ranks);
    return rv == MPI_SUCCESS ? 0 : failed (rv, "MPI_Comm_create_group", err);
}

static void close_self (void *self)
{
    struct self *s = self;
    int over = 0;

    if (!s)
        return;
    MPI_Finalized (&over);
    enter ();
    /* with a collective under way it would wait */
    if (!over && s->comm != MPI_COMM_NULL && !atomic_load (&s->failed))
        MPI_Comm_free (&s->comm);
    leave ();
    free (s->counts);
    free (s);
}

static struct self *create (struct mesh *m)
{
    struct self *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->mesh = m;
    s->comm = MPI_COMM_NULL;
    s->size = (int)lib->size (m);
    s->timeout = lib->timeout (m);
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

static int open_self (struct mesh *m, void **self, struct slurmdl_error *err)
{
    static atomic_int tags;
    struct self *s = create (m);
    struct card mine = { 0, atomic_fetch_add (&tags, 1) % 16384 };
    struct card *cards;
    int rv = -1;

    if (!s)
        return errorf (err, "out of memory");
    MPI_Comm_rank (MPI_COMM_WORLD, &mine.rank);
    cards = malloc ((size_t)s->size * sizeof (*cards));
    if (!cards)
        errorf (err, "out of memory");
    else if (lib->gather (m, &mine, sizeof (mine), cards, err) == 0
             && check_cards (s, cards, err) == 0)
        rv = make_comm (s, cards, err);
    free (cards);
    if (rv < 0)
        close_self (s);
    else
        *self = s;
    return rv;
}

static void abort_self (void *self)
{
    struct self *s = self;

    atomic_store (&s->aborted, true);
}

/* ---- waiting ---- */

static int give_up (struct self *s, int error)
{
    atomic_store (&s->failed, true);
    atomic_store (&any_failed, true);
    errno = error;
    return -1;
}

static int look (struct self *s, double deadline, struct slurmdl_error *err)
{
    if (atomic_load (&s->aborted)) {
        errorf (err, "mpi: aborted");
        return give_up (s, ECONNRESET);
    }
    if (lib->check (s->mesh, err) < 0)
        return give_up (s, errno);
    if (monotonic () < deadline)
        return 0;
    errorf (err,
            "mpi: rank %ld has waited for %g s for the others",
            lib->rank (s->mesh),
            s->timeout);
    return give_up (s, ETIMEDOUT);
}

/* Of a call that has returned 'code'; a request that is given up stays. */
static int finish (struct self *s,
                   int code,
                   MPI_Request *request,
                   const char *what,
                   struct slurmdl_error *err)
{
    double deadline = monotonic () + s->timeout;
    int done = 0;

    leave (); /* taken by the macro below */
    if (code == MPI_SUCCESS)
        for (long n = 1; !done; n++) {
            enter ();
            code = MPI_Test (request, &done, MPI_STATUS_IGNORE);
            leave ();
            if (code != MPI_SUCCESS || done)
                break;
            if (n % CHECK_EACH == 0 && look (s, deadline, err) < 0)
                return -1;
            sched_yield ();
        }
    if (code == MPI_SUCCESS)
        return 0;
    failed (code, what, err);
    return give_up (s, EIO);
}

#define CALL(s, err, name, ...)                                                \
    (enter (),                                                                 \
     finish (s,                                                                \
             MPI_I##name (__VA_ARGS__, &request),                              \
             &request,                                                         \
             "MPI_I" #name,                                                    \
             err))

/* ---- reductions ---- */

/* A reduction to one rank, or to all where 'root' is -1. */
struct job {
    struct self *s;
    enum slurmdl_type type;
    enum slurmdl_op op;
    long root;
    bool mine; /* this rank gets the result */
    struct slurmdl_error *err;
};

static int part_of_job (struct job *j, const void *in, void *out, size_t n)
{
    MPI_Datatype type = type_of (j->type);
    MPI_Op op = op_of (j->type, j->op);
    MPI_Request request;
    int rv;

    if (in == out && j->mine)
        in = MPI_IN_PLACE;
    if (j->root < 0)
        rv = CALL (
            j->s, j->err, allreduce, in, out, (int)n, type, op, j->s->comm);
    else
        rv = CALL (j->s,
                   j->err,
                   reduce,
                   in,
                   j->mine ? out : NULL,
                   (int)n,
                   type,
                   op,
                   (int)j->root,
                   j->s->comm);
    if (rv == 0 && j->mine && j->op == SLURMDL_AVERAGE)
        lib->scale (out, n, j->type, 1.0 / j->s->size);
    return rv;
}

static int in_parts (struct job *j, const void *in, void *out, size_t n)
{
    size_t size = lib->type_size (j->type);

    for (size_t at = 0; at < n; at += MPI_PART)
        if (part_of_job (j,
                         (const char *)in + at * size,
                         out ? (char *)out + at * size : NULL,
                         least (MPI_PART, n - at))
            < 0)
            return -1;
    return 0;
}

/* Types that MPI does not have are added in F32, and rounded once. */
static int
as_f32 (const struct job *narrow, const void *in, void *out, size_t n)
{
    struct job j = *narrow;
    size_t size = lib->type_size (j.type);
    size_t room = least (NARROW_PART, n);
    float *wide = malloc (room * sizeof (*wide));
    int rv = 0;

    if (!wide)
        return errorf (j.err, "out of memory");
    j.type = SLURMDL_F32;
    for (size_t at = 0; at < n && rv == 0; at += room) {
        size_t k = least (room, n - at);
        lib->convert (
            wide, SLURMDL_F32, (const char *)in + at * size, narrow->type, k);
        rv = in_parts (&j, wide, wide, k);
        if (rv == 0 && j.mine)
            lib->convert (
                (char *)out + at * size, narrow->type, wide, SLURMDL_F32, k);
    }
    free (wide);
    return rv;
}

static int run_job (struct job *j, const void *in, void *out, size_t n)
{
    return type_of (j->type) == MPI_DATATYPE_NULL ? as_f32 (j, in, out, n)
                                                  : in_parts (j, in, out, n);
}

static int allreduce (void *self,
                      const void *in,
                      void *out,
                      size_t n,
                      enum slurmdl_type type,
                      enum slurmdl_op op,
                      struct slurmdl_error *err)
{
    struct job j = { self, type, op, -1, true, err };

    return run_job (&j, in, out, n);
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
    struct self *s = self;
    struct job j = { s, type, op, root, lib->rank (s->mesh) == root, err };

    return run_job (&j, in, out, n);
}

/* Counts of ranks as MPI wants them; false: they are too large. */
static bool
fit (const struct self *s, const size_t *counts, int *out, int *places)
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

static int scatter_in_parts (struct job *j,
                             const void *in,
                             void *out,
                             const size_t *counts)
{
    size_t size = lib->type_size (j->type);
    const char *from = in;

    for (long r = 0; r < j->s->size; r++) {
        j->root = r;
        j->mine = lib->rank (j->s->mesh) == r;
        if (run_job (j, from, j->mine ? out : NULL, counts[r]) < 0)
            return -1;
        from += counts[r] * size;
    }
    return 0;
}

static int reduce_scatter (void *self,
                           const void *in,
                           void *out,
                           const size_t *counts,
                           enum slurmdl_type type,
                           enum slurmdl_op op,
                           struct slurmdl_error *err)
{
    struct self *s = self;
    struct job j = { s, type, op, 0, false, err };
    MPI_Request request;

    if (type_of (type) == MPI_DATATYPE_NULL
        || !fit (s, counts, s->counts, s->places))
        return scatter_in_parts (&j, in, out, counts);
    if (CALL (s,
              err,
              reduce_scatter,
              in,
              out,
              s->counts,
              type_of (type),
              op_of (type, op),
              s->comm)
        < 0)
        return -1;
    if (op == SLURMDL_AVERAGE)
        lib->scale (out, counts[lib->rank (s->mesh)], type, 1.0 / s->size);
    return 0;
}

/* ---- bytes ---- */

static int broadcast (
    void *self, void *data, size_t bytes, long root, struct slurmdl_error *err)
{
    struct self *s = self;
    MPI_Request request;

    for (size_t at = 0; at < bytes; at += MPI_PART)
        if (CALL (s,
                  err,
                  bcast,
                  (char *)data + at,
                  (int)least (MPI_PART, bytes - at),
                  MPI_BYTE,
                  (int)root,
                  s->comm)
            < 0)
            return -1;
    return 0;
}

static int gather_in_parts (struct self *s,
                            const void *in,
                            char *out,
                            const size_t *bytes,
                            struct slurmdl_error *err)
{
    long rank = lib->rank (s->mesh);

    for (long r = 0; r < s->size; r++) {
        if (r == rank && in != out)
            memcpy (out, in, bytes[r]);
        if (broadcast (s, out, bytes[r], r, err) < 0)
            return -1;
        out += bytes[r];
    }
    return 0;
}

static int allgather (void *self,
                      const void *in,
                      void *out,
                      const size_t *bytes,
                      struct slurmdl_error *err)
{
    struct self *s = self;
    MPI_Request request;

    if (!fit (s, bytes, s->counts, s->places))
        return gather_in_parts (s, in, out, bytes, err);
    return CALL (s,
                 err,
                 allgatherv,
                 in,
                 (int)bytes[lib->rank (s->mesh)],
                 MPI_BYTE,
                 out,
                 s->counts,
                 s->places,
                 MPI_BYTE,
                 s->comm);
}

/* What goes to one rank while something comes from another. */
struct trade {
    const char *out;
    char *in;
    size_t nout, nin;
    int to, from;
};

static int part_of_trade (struct self *s,
                          const struct trade *t,
                          size_t at,
                          struct slurmdl_error *err)
{
    MPI_Request in = MPI_REQUEST_NULL, out = MPI_REQUEST_NULL;
    int rv = MPI_SUCCESS;

    enter ();
    if (at < t->nin)
        rv = MPI_Irecv (t->in + at,
                        (int)least (MPI_PART, t->nin - at),
                        MPI_BYTE,
                        t->from,
                        1,
                        s->comm,
                        &in);
    if (rv == MPI_SUCCESS && at < t->nout)
        rv = MPI_Isend (t->out + at,
                        (int)least (MPI_PART, t->nout - at),
                        MPI_BYTE,
                        t->to,
                        1,
                        s->comm,
                        &out);
    if (finish (s, rv, &in, "MPI_Irecv", err) < 0)
        return -1;
    enter ();
    return finish (s, MPI_SUCCESS, &out, "MPI_Isend", err);
}

static size_t sum_before (const size_t *n, int k)
{
    size_t sum = 0;

    for (int i = 0; i < k; i++)
        sum += n[i];
    return sum;
}

static int all_in_parts (struct self *s,
                         const char *in,
                         const size_t *to,
                         char *out,
                         const size_t *from,
                         struct slurmdl_error *err)
{
    int rank = (int)lib->rank (s->mesh);

    for (int step = 0; step < s->size; step++) {
        int t = (rank + step) % s->size;
        int f = (rank + s->size - step) % s->size;
        struct trade x = { in + sum_before (to, t),
                           out + sum_before (from, f),
                           to[t],
                           from[f],
                           t,
                           f };
        for (size_t at = 0; at < x.nout || at < x.nin; at += MPI_PART)
            if (part_of_trade (s, &x, at, err) < 0)
                return -1;
    }
    return 0;
}

static int alltoall (void *self,
                     const void *in,
                     const size_t *to,
                     void *out,
                     const size_t *from,
                     struct slurmdl_error *err)
{
    struct self *s = self;
    MPI_Request request;
    int32_t mine = fit (s, to, s->counts, s->places)
                   && fit (s, from, s->counts2, s->places2);
    int32_t all = mine;

    /* all of them, or none */
    if (CALL (s, err, allreduce, &mine, &all, 1, MPI_INT32_T, MPI_MIN, s->comm)
        < 0)
        return -1;
    if (!all)
        return all_in_parts (s, in, to, out, from, err);
    return CALL (s,
                 err,
                 alltoallv,
                 in,
                 s->counts,
                 s->places,
                 MPI_BYTE,
                 out,
                 s->counts2,
                 s->places2,
                 MPI_BYTE,
                 s->comm);
}

static int barrier (void *self, struct slurmdl_error *err)
{
    struct self *s = self;
    MPI_Request request;

    return CALL (s, err, barrier, s->comm);
}

extern const struct comm_backend slurmdl_backend_mpi;
const struct comm_backend slurmdl_backend_mpi = {
    .name = "mpi",
    .probe = probe,
    .open = open_self,
    .close = close_self,
    .abort = abort_self,
    .allreduce = allreduce,
    .reduce = reduce,
    .reduce_scatter = reduce_scatter,
    .allgather = allgather,
    .broadcast = broadcast,
    .alltoall = alltoall,
    .barrier = barrier,
    .attach = attach,
};
