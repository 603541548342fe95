/* SPDX-License-Identifier: Apache-2.0 */
/* Sum with MPI, in the host's memory. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"

static void *memory;

static int open_mpi (struct place *p)
{
    if (MPI_Init (NULL, NULL) != MPI_SUCCESS)
        return -1;
    MPI_Comm_rank (MPI_COMM_WORLD, &p->rank);
    MPI_Comm_size (MPI_COMM_WORLD, &p->size);
    p->local_rank = 0;
    return 0;
}

static void *alloc (size_t n)
{
    return memory = malloc (n * sizeof (float));
}

static int put (void *buf, const float *host, size_t n)
{
    memcpy (buf, host, n * sizeof (float));
    return 0;
}

static int get (float *host, const void *buf, size_t n)
{
    memcpy (host, buf, n * sizeof (float));
    return 0;
}

static int sum (void *buf, size_t n)
{
    return MPI_Allreduce (MPI_IN_PLACE, buf, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD)
                   == MPI_SUCCESS
               ? 0
               : -1;
}

static void close_mpi (void)
{
    free (memory);
    MPI_Finalize ();
}

const struct comm_ops comm = { "MPI", open_mpi, alloc, put, get, sum, close_mpi };
