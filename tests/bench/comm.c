/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the startup and all-reduce of slurmdl_comm.h or, with PEER_MPI, of MPI.  Both use this
 * program, so that only the library differs.  comm.py runs it.
 */
#include "tests/bench/bench.h"

#ifdef PEER_MPI
#include <mpi.h>

static long rank_of_world, size_of_world;

static void open_world (void)
{
    int rank, size;

    MPI_Init (NULL, NULL);
    MPI_Comm_rank (MPI_COMM_WORLD, &rank);
    MPI_Comm_size (MPI_COMM_WORLD, &size);
    rank_of_world = rank;
    size_of_world = size;
}

static void sum (float *x, size_t n)
{
    MPI_Allreduce (MPI_IN_PLACE, x, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static double most (double x)
{
    double y;

    MPI_Allreduce (&x, &y, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return y;
}

static void barrier (void)
{
    MPI_Barrier (MPI_COMM_WORLD);
}

static void close_world (void)
{
    MPI_Finalize ();
}
#else
#include "runtime/slurmdl_comm.h"

static long rank_of_world, size_of_world;
static struct slurmdl_comm *world;
static struct slurmdl_error err;

static void check (int bad)
{
    if (!bad)
        return;
    fprintf (stderr, "rank %ld: %s\n", rank_of_world, err.text);
    exit (1);
}

static void open_world (void)
{
    world = slurmdl_comm_open (NULL, &err);
    check (!world);
    rank_of_world = slurmdl_comm_rank (world);
    size_of_world = slurmdl_comm_size (world);
}

static void sum (float *x, size_t n)
{
    check (slurmdl_allreduce (world, x, x, n, SLURMDL_F32, SLURMDL_SUM, &err));
}

static double most (double x)
{
    check (slurmdl_allreduce (world, &x, &x, 1, SLURMDL_F64, SLURMDL_MAX, &err));
    return x;
}

static void barrier (void)
{
    check (slurmdl_barrier (world, &err));
}

static void close_world (void)
{
    check (slurmdl_comm_close (world, NULL));
}
#endif

/* Returns the seconds per call of consecutive calls on the slowest rank. */
static double each (float *x, size_t n, int calls)
{
    double start;

    barrier ();
    start = now ();
    for (int i = 0; i < calls; i++)
        sum (x, n);
    return most ((now () - start) / calls);
}

static void verify (float *x, size_t n)
{
    long all = size_of_world * (size_of_world + 1) / 2;

    for (size_t i = 0; i < n; i++)
        x[i] = (float)((rank_of_world + 1) * (long)(i % 1000));
    sum (x, n);
    for (size_t i = 0; i < n; i++)
        if (x[i] != (float)(all * (long)(i % 1000))) {
            fprintf (stderr, "rank %ld: wrong sum at %zu\n", rank_of_world, i);
            exit (1);
        }
}

/* Print the bytes and seconds of several runs, each of about 20 ms or one call.  Reduces in place,
 * as for gradients.  The tensor is zero, so that repeated sums do not overflow.
 */
static void allreduce (size_t bytes, int runs)
{
    size_t n = bytes / sizeof (float);
    float *x = malloc (bytes);
    double first;
    int calls;

    verify (x, n);
    memset (x, 0, bytes);
    first = each (x, n, 2);
    calls = first > 0.01 ? 1 : (int)(0.02 / first) + 1;
    for (int i = 0; i < runs; i++) {
        double t = each (x, n, calls);

        if (rank_of_world == 0)
            printf ("%zu %.9f\n", bytes, t);
    }
    free (x);
}

int main (int argc, char **argv)
{
    double start = now (), seconds;
    int runs = argc > 1 ? atoi (argv[1]) : 0;

    open_world ();
    barrier ();
    seconds = most (now () - start);
    if (rank_of_world == 0)
        printf ("0 %.9f\n", seconds);
    for (int i = 2; i < argc; i++)
        allreduce ((size_t)atol (argv[i]), runs);
    fflush (stdout);
    close_world ();
    return 0;
}
