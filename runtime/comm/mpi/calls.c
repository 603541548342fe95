/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of the module slurmdl-mpi.so. */
#include <string.h>

#include "runtime/comm/mpi/module.h"

/* A reduction to one rank, or to all where 'root' is -1. */
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

static int in_parts (struct mpi_job *j, const void *in, void *out, size_t n)
{
    size_t size = mpi_lib->type_size (j->type);

    for (size_t at = 0; at < n; at += MPI_PART)
        if (part_of_job (j, (const char *)in + at * size, out ? (char *)out + at * size : NULL,
                         mpi_least (MPI_PART, n - at))
            < 0)
            return -1;
    return 0;
}

static int allreduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_job j = { self, a->type, a->op, -1, true, err };

    return in_parts (&j, a->in, a->out, a->n);
}

static int reduce (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    bool mine = mpi_lib->rank (s->mesh) == a->root;
    struct mpi_job j = { s, a->type, a->op, a->root, mine, err };

    return in_parts (&j, a->in, a->out, a->n);
}

/* Counts of ranks as MPI wants them; false: they are too large. */
static bool fit (const struct mpi_self *s, const size_t *counts, int *out, int *places)
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
        if (in_parts (j, from, j->mine ? out : NULL, counts[r]) < 0)
            return -1;
        from += counts[r] * size;
    }
    return 0;
}

static int reduce_scatter (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    struct mpi_job j = { s, a->type, a->op, 0, false, err };
    MPI_Request request;

    if (!fit (s, a->counts, s->counts, s->places))
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

static int broadcast (void *self, const struct collective *a, struct slurmdl_error *err)
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

static int allgather (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;

    if (mpi_on_device (s, a->out))
        return mpi_sendrecv_all (s, a->in, NULL, a->out, a->counts, err);
    if (!fit (s, a->counts, s->counts, s->places))
        return gather_in_parts (s, a->in, a->out, a->counts, err);
    return CALL (s, err, allgatherv, a->in, (int)a->counts[mpi_lib->rank (s->mesh)], MPI_BYTE,
                 a->out, s->counts, s->places, MPI_BYTE, s->comm);
}

static int alltoall (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;
    int32_t mine = fit (s, a->counts, s->counts, s->places)
                   && fit (s, a->from, s->counts2, s->places2) && !mpi_on_device (s, a->in)
                   && !mpi_on_device (s, a->out);
    int32_t all = mine;

    /* all of them, or none */
    if (CALL (s, err, allreduce, &mine, &all, 1, MPI_INT32_T, MPI_MIN, s->comm) < 0)
        return -1;
    if (!all)
        return mpi_sendrecv_all (s, a->in, a->counts, a->out, a->from, err);
    return CALL (s, err, alltoallv, a->in, s->counts, s->places, MPI_BYTE, a->out, s->counts2,
                 s->places2, MPI_BYTE, s->comm);
}

static int barrier (void *self, const struct collective *a, struct slurmdl_error *err)
{
    struct mpi_self *s = self;
    MPI_Request request;

    (void)a;
    return CALL (s, err, barrier, s->comm);
}

int mpi_run (void *self, const struct collective *a, struct slurmdl_error *err)
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
