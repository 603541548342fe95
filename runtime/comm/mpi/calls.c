/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of the module slurmdl-mpi.so. */
#include <string.h>

#include "runtime/comm/mpi/module.h"

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
    MPI_Datatype type = mpi_type_of (j->type);
    MPI_Op op = mpi_op_of (j->type, j->op);
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
                         mpi_least (MPI_PART, n - at))
            < 0)
            return -1;
    return 0;
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

    return in_parts (&j, in, out, n);
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

    return in_parts (&j, in, out, n);
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
        if (in_parts (j, from, j->mine ? out : NULL, counts[r]) < 0)
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

    if (!fit (s, counts, s->counts, s->places))
        return scatter_in_parts (&j, in, out, counts);
    if (CALL (s,
              err,
              reduce_scatter,
              in,
              out,
              s->counts,
              mpi_type_of (type),
              mpi_op_of (type, op),
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

    if (mpi_on_device (s, data))
        return mpi_pass_on (s, data, bytes, root, err);
    for (size_t at = 0; at < bytes; at += MPI_PART)
        if (CALL (s,
                  err,
                  bcast,
                  (char *)data + at,
                  (int)mpi_least (MPI_PART, bytes - at),
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

    if (mpi_on_device (s, out))
        return mpi_trade_rows (s, in, out, bytes, err);
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
                   && fit (s, from, s->counts2, s->places2)
                   && !mpi_on_device (s, in) && !mpi_on_device (s, out);
    int32_t all = mine;

    /* all of them, or none */
    if (CALL (s, err, allreduce, &mine, &all, 1, MPI_INT32_T, MPI_MIN, s->comm)
        < 0)
        return -1;
    if (!all)
        return mpi_trade_all (s, in, to, out, from, err);
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
