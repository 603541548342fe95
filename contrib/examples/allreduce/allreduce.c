/* SPDX-License-Identifier: Apache-2.0 */
/* How fast do these ranks sum a vector?  The first thing to ask of a cluster.
 *
 *     srun --dl=torch -N2 --ntasks-per-node=4 ./allreduce-nccl
 *     srun --mpi=pmix -N2 --ntasks-per-node=4 ./allreduce-mpi
 *
 * Prints, for each size, the time of one sum and the bus bandwidth, 2(n-1)/n
 * bytes a byte summed (the convention of NVIDIA's nccl-tests).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm.h"

enum { BYTES_MIN = 4 << 10, BYTES_MAX = 64 << 20, STEP = 8, ROUNDS = 10 };

static double seconds (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Rank r gives r + 1 everywhere: the sum is known, and exact in a float. */
static int check (const struct place *p, void *buf, float *host, size_t n)
{
    float want = (float)(p->size * (p->size + 1) / 2);

    for (size_t i = 0; i < n; i++)
        host[i] = (float)(p->rank + 1);
    if (comm.put (buf, host, n) < 0 || comm.sum (buf, n) < 0 || comm.get (host, buf, n) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (host[i] != want) {
            fprintf (stderr, "allreduce: rank %d: element %zu is %g, not %g\n", p->rank, i,
                     (double)host[i], (double)want);
            return -1;
        }
    return 0;
}

static int measure (const struct place *p, void *buf, float *host, size_t bytes)
{
    size_t n = bytes / sizeof (float);
    double start;
    double t;

    if (check (p, buf, host, n) < 0)
        return -1;
    start = seconds ();
    for (int i = 0; i < ROUNDS; i++)
        if (comm.sum (buf, n) < 0)
            return -1;
    t = (seconds () - start) / ROUNDS;
    if (p->rank == 0)
        printf ("%10zu bytes  %10.1f us  %8.3f GB/s\n", bytes, t * 1e6,
                (double)bytes / t * 2 * (p->size - 1) / p->size / 1e9);
    return 0;
}

int main (void)
{
    struct place p;
    float *host = malloc (BYTES_MAX);
    void *buf = NULL;
    int rv = -1;

    if (host && comm.open (&p) == 0) {
        if (p.rank == 0)
            printf ("%s, %d ranks\n", comm.name, p.size);
        if ((buf = comm.alloc (BYTES_MAX / sizeof (float))))
            rv = 0;
        for (size_t b = BYTES_MIN; rv == 0 && b <= BYTES_MAX; b *= STEP)
            rv = measure (&p, buf, host, b);
        comm.close ();
    }
    free (host);
    return rv < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
