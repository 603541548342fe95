/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of the module slurmdl-mpi.so that are sends and receives. */
#include "runtime/comm/mpi/module.h"

/* Bytes of a broadcast that are on their way while the next ones come. */
enum { PIECE = 1 << 22 };

bool mpi_on_device (const struct mpi_self *s, const void *p)
{
    return s->takes_device && p && mpi_lib->is_device (p);
}

/* What goes to one rank while something comes from another. */
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

int mpi_sendrecv_all (struct mpi_self *s, const char *in, const size_t *to, char *out,
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

/* A binomial tree; 'place' counts from the root.  Its children are the places
 * that differ in one bit above its highest.
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

int mpi_forward (struct mpi_self *s, char *data, size_t bytes, long root, struct slurmdl_error *err)
{
    int place = ((int)mpi_lib->rank (s->mesh) - (int)root + s->size) % s->size;
    size_t most = mpi_least (PIECE, MPI_PART);

    for (size_t at = 0; at < bytes; at += most)
        if (pass_piece (s, data + at, (int)mpi_least (most, bytes - at), (int)root, place, err) < 0)
            return -1;
    return 0;
}
