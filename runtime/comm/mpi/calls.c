/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of the module slurmdl-mpi.so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/mpi/module.h"
#include "runtime/error.h"

/* MPI counts with int: more goes in parts of so many elements. */
#ifndef MPI_PART
#define MPI_PART (1 << 30)
#endif

/* elements that are F32 for their way */
enum { NARROW_PART = 1 << 22 };

#define CALL(s, err, name, ...)                                                \
    (mpi_enter (),                                                             \
     mpi_finish (s,                                                            \
                 MPI_I##name (__VA_ARGS__, &request),                          \
                 &request,                                                     \
                 "MPI_I" #name,                                                \
                 err))

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
            mpi_lib->pair (
                out, in, out, (size_t)n, (enum slurmdl_type)type, op);
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

int mpi_make_ops (struct slurmdl_error *err)
{
    static MPI_User_function *const f[] = { [SLURMDL_SUM] = short_sum,
                                            [SLURMDL_AVERAGE] = short_sum,
                                            [SLURMDL_MIN] = short_min,
                                            [SLURMDL_MAX] = short_max,
                                            [SLURMDL_PRODUCT] = short_product };

    for (int i = 0; i <= SLURMDL_PRODUCT; i++) {
        int rv = MPI_Op_create (f[i], 1, &short_ops[i]);
        if (rv != MPI_SUCCESS)
            return mpi_failed (rv, "MPI_Op_create", err);
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

/* ---- reductions ---- */

/* A reduction to one rank, or to all where 'root' is -1. */
struct job {
    struct mpi_self *s;
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
        mpi_lib->scale (out, n, j->type, 1.0 / j->s->size);
    return rv;
}

static int in_parts (struct job *j, const void *in, void *out, size_t n)
{
    size_t size = mpi_lib->type_size (j->type);

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
    size_t size = mpi_lib->type_size (j.type);
    size_t room = least (NARROW_PART, n);
    float *wide = malloc (room * sizeof (*wide));
    int rv = 0;

    if (!wide)
        return errorf (j.err, "out of memory");
    j.type = SLURMDL_F32;
    for (size_t at = 0; at < n && rv == 0; at += room) {
        size_t k = least (room, n - at);
        mpi_lib->convert (
            wide, SLURMDL_F32, (const char *)in + at * size, narrow->type, k);
        rv = in_parts (&j, wide, wide, k);
        if (rv == 0 && j.mine)
            mpi_lib->convert (
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

int mpi_allreduce (void *self,
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

int mpi_reduce (void *self,
                const void *in,
                void *out,
                size_t n,
                enum slurmdl_type type,
                enum slurmdl_op op,
                long root,
                struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    struct job j = { s, type, op, root, mpi_lib->rank (s->mesh) == root, err };

    return run_job (&j, in, out, n);
}

/* Counts of ranks as MPI wants them; false: they are too large. */
static bool
fit (const struct mpi_self *s, const size_t *counts, int *out, int *places)
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
    size_t size = mpi_lib->type_size (j->type);
    const char *from = in;

    for (long r = 0; r < j->s->size; r++) {
        j->root = r;
        j->mine = mpi_lib->rank (j->s->mesh) == r;
        if (run_job (j, from, j->mine ? out : NULL, counts[r]) < 0)
            return -1;
        from += counts[r] * size;
    }
    return 0;
}

int mpi_reduce_scatter (void *self,
                        const void *in,
                        void *out,
                        const size_t *counts,
                        enum slurmdl_type type,
                        enum slurmdl_op op,
                        struct slurmdl_error *err)
{
    struct mpi_self *s = self;
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
        mpi_lib->scale (
            out, counts[mpi_lib->rank (s->mesh)], type, 1.0 / s->size);
    return 0;
}

/* ---- bytes ---- */

int mpi_broadcast (
    void *self, void *data, size_t bytes, long root, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
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

static int gather_in_parts (struct mpi_self *s,
                            const void *in,
                            char *out,
                            const size_t *bytes,
                            struct slurmdl_error *err)
{
    long rank = mpi_lib->rank (s->mesh);

    for (long r = 0; r < s->size; r++) {
        if (r == rank && in != out)
            memcpy (out, in, bytes[r]);
        if (mpi_broadcast (s, out, bytes[r], r, err) < 0)
            return -1;
        out += bytes[r];
    }
    return 0;
}

int mpi_allgather (void *self,
                   const void *in,
                   void *out,
                   const size_t *bytes,
                   struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;

    if (!fit (s, bytes, s->counts, s->places))
        return gather_in_parts (s, in, out, bytes, err);
    return CALL (s,
                 err,
                 allgatherv,
                 in,
                 (int)bytes[mpi_lib->rank (s->mesh)],
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

static int part_of_trade (struct mpi_self *s,
                          const struct trade *t,
                          size_t at,
                          struct slurmdl_error *err)
{
    MPI_Request in = MPI_REQUEST_NULL, out = MPI_REQUEST_NULL;
    int rv = MPI_SUCCESS;

    mpi_enter ();
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

static int all_in_parts (struct mpi_self *s,
                         const char *in,
                         const size_t *to,
                         char *out,
                         const size_t *from,
                         struct slurmdl_error *err)
{
    int rank = (int)mpi_lib->rank (s->mesh);

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

int mpi_alltoall (void *self,
                  const void *in,
                  const size_t *to,
                  void *out,
                  const size_t *from,
                  struct slurmdl_error *err)
{
    struct mpi_self *s = self;
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

int mpi_barrier (void *self, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;

    return CALL (s, err, barrier, s->comm);
}
