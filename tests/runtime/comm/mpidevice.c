/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that runs collectives over MPI on a fake device's memory.  It prints
 * "right, without the host", or "through the host".
 */
#include <cuda_runtime_api.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/slurmdl_comm.h"
#include "tests/fakes/cudart.h"

enum { RANKS = 16 };

static uint8_t byte_of (long from, long to, size_t i)
{
    return (uint8_t)(i * 31 + (size_t)from * 101 + (size_t)to * 57);
}

static uint8_t *device (size_t n)
{
    void *p;

    cudaMalloc (&p, n + 1);
    return p;
}

static void must (int rv, const struct slurmdl_error *e)
{
    if (rv < 0)
        errx (1, "%s", e->text);
}

static void broadcast (struct slurmdl_comm *c, size_t n, long root)
{
    struct slurmdl_error e = { "" };
    uint8_t *x = device (n);

    for (size_t i = 0; i < n && slurmdl_comm_rank (c) == root; i++)
        x[i] = byte_of (root, 0, i);
    must (slurmdl_broadcast (c, x, n, root, &e), &e);
    for (size_t i = 0; i < n; i++)
        if (x[i] != byte_of (root, 0, i))
            errx (1, "broadcast of %zu from %ld: byte %zu", n, root, i);
    cudaFree (x);
}

static void allgather (struct slurmdl_comm *c, size_t n)
{
    long rank = slurmdl_comm_rank (c), size = slurmdl_comm_size (c);
    struct slurmdl_error e = { "" };
    size_t bytes[RANKS], all = 0, at = 0;
    uint8_t *in, *out;

    for (long r = 0; r < size; r++)
        all += bytes[r] = r % 3 == 1 ? 0 : n + (size_t)r;
    in = device (bytes[rank]);
    out = device (all);
    for (size_t i = 0; i < bytes[rank]; i++)
        in[i] = byte_of (rank, 1, i);
    must (slurmdl_allgather (c, in, bytes[rank], out, bytes, &e), &e);
    for (long r = 0; r < size; at += bytes[r++])
        for (size_t i = 0; i < bytes[r]; i++)
            if (out[at + i] != byte_of (r, 1, i))
                errx (1, "all-gather of %zu: byte %zu of %ld", n, i, r);
    cudaFree (in);
    cudaFree (out);
}

static void alltoall (struct slurmdl_comm *c, size_t n)
{
    long rank = slurmdl_comm_rank (c), size = slurmdl_comm_size (c);
    struct slurmdl_error e = { "" };
    size_t to[RANKS], from[RANKS], at = 0;
    uint8_t *in = device (n * RANKS * 2), *out = device (n * RANKS * 2);

    for (long r = 0; r < size; r++) {
        to[r] = (rank + 2 * r) % 3 ? n + (size_t)(r % 2) : 0;
        from[r] = (r + 2 * rank) % 3 ? n + (size_t)(rank % 2) : 0;
        for (size_t i = 0; i < to[r]; i++)
            in[at++] = byte_of (rank, r, i);
    }
    must (slurmdl_alltoall (c, in, to, out, from, &e), &e);
    at = 0;
    for (long r = 0; r < size; r++)
        for (size_t i = 0; i < from[r]; i++)
            if (out[at++] != byte_of (r, rank, i))
                errx (1, "all-to-all of %zu: byte %zu of %ld", n, i, r);
    cudaFree (in);
    cudaFree (out);
}

/* All-reduce goes through the host, whatever MPI supports. */
static void allreduce (struct slurmdl_comm *c)
{
    struct slurmdl_error e = { "" };
    float *x = (float *)(void *)device (4);

    *x = (float)slurmdl_comm_rank (c);
    must (slurmdl_allreduce (c, x, x, 1, SLURMDL_F32, SLURMDL_AVERAGE, &e), &e);
    if (*x != (float)(slurmdl_comm_size (c) - 1) / 2)
        errx (1, "average: %g", (double)*x);
    cudaFree (x);
}

int main (void)
{
    static const size_t sizes[] = { 1, 99, 100, 1001, 70000 };
    struct slurmdl_error e = { "" };
    struct slurmdl_comm *c = slurmdl_comm_open (NULL, &e);
    size_t staged;

    if (!c || slurmdl_comm_size (c) > RANKS)
        errx (1, "%s", e.text);
    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++) {
        for (long root = 0; root < slurmdl_comm_size (c); root++)
            broadcast (c, sizes[i], root);
        allgather (c, sizes[i]);
        alltoall (c, sizes[i]);
    }
    staged = fakecuda_counted ().host_bytes;
    allreduce (c);
    if (fakecuda_counted ().host_bytes != staged + 8)
        errx (1, "the sum is not computed on the host");
    printf ("right, %s the host\n", staged ? "through" : "without");
    slurmdl_comm_close (c, NULL);
    return 0;
}
