/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of small integers, exact in every type, in the memory of a fake CUDA
 * device.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/fakes/cudart.h"
#include "tests/runtime/comm/named.h"

static inline int value (size_t j, long r)
{
    return (int)((j * 7 + (size_t)r * (j % 5 + 1)) % 2);
}

/* 'mine' is this rank's input, 'want' the expected result. */
struct one {
    char name[32];
    struct slurmdl_request r;
    size_t bytes_in, bytes_out;
    void *mine, *want;
    int64_t ticket;
};

static inline double expected (const struct one *o, size_t j, long size)
{
    double pre = o->r.prescale != 0 ? o->r.prescale : 1;
    double post = o->r.postscale != 0 ? o->r.postscale : 1;
    double all = value (j, 0) * pre;

    for (long r = 1; r < size; r++) {
        double x = value (j, r) * pre;
        all = o->r.op == SLURMDL_MIN       ? fmin (all, x)
              : o->r.op == SLURMDL_MAX     ? fmax (all, x)
              : o->r.op == SLURMDL_PRODUCT ? all * x
                                           : all + x;
    }
    if (o->r.type == SLURMDL_BOOL && o->r.op == SLURMDL_SUM)
        all = all > 0;
    return all * post / (o->r.op == SLURMDL_AVERAGE ? (double)size : 1);
}

static inline size_t part (size_t n, long size, long r)
{
    return n / (size_t)size + ((size_t)r < n % (size_t)size);
}

static inline size_t rows_of (size_t n, long r)
{
    return r % 2 ? n : n + 3;
}

static inline void want_reduced (struct one *o, long rank, long size, size_t n)
{
    size_t begin = 0, end = n;

    if (o->r.what == SLURMDL_REDUCE_SCATTER) {
        for (long r = 0; r < rank; r++)
            begin += part (n, size, r);
        end = begin + part (n, size, rank);
    }
    for (size_t j = begin; j < end; j++)
        put_number (o->want, j - begin, o->r.type, expected (o, j, size));
    o->bytes_out = (end - begin) * slurmdl_type_size (o->r.type);
}

static inline void want_copied (struct one *o, long size, size_t n)
{
    size_t at = 0;

    if (o->r.what == SLURMDL_BROADCAST)
        for (; at < n; at++)
            put_number (o->want, at, o->r.type, value (at, o->r.root));
    else
        for (long r = 0; r < size; r++)
            for (size_t j = 0; j < rows_of (n, r); j++)
                put_number (o->want, at++, o->r.type, value (j, r));
    o->bytes_out = at * slurmdl_type_size (o->r.type);
}

static inline void *on_device (const void *bytes, size_t n)
{
    void *p;

    cudaMalloc (&p, n + 1);
    if (bytes)
        memcpy (p, bytes, n);
    return p;
}

/* 'o->r' has everything but n and the buffers. */
static inline void make (struct one *o, struct slurmdl_comm *c, size_t n)
{
    long rank = slurmdl_comm_rank (c);
    long size = slurmdl_comm_size (c);
    size_t each = slurmdl_type_size (o->r.type);
    size_t own = o->r.what == SLURMDL_ALLGATHER ? rows_of (n, rank) : n;

    o->mine = malloc (own * each + 1);
    o->want = malloc ((n + 3) * each * (size_t)size + 1);
    for (size_t j = 0; j < own; j++)
        put_number (o->mine, j, o->r.type, value (j, rank));
    if (o->r.what == SLURMDL_ALLREDUCE || o->r.what == SLURMDL_REDUCE_SCATTER)
        want_reduced (o, rank, size, n);
    else
        want_copied (o, size, n);
    o->r.name = o->name;
    o->r.n = own;
    o->bytes_in = own * each;
    o->r.in = on_device (o->mine, o->bytes_in);
    o->r.out = on_device (NULL, o->bytes_out);
}

static inline bool is_right (const struct one *o)
{
    return !memcmp (o->r.out, o->want, o->bytes_out);
}

static inline void drop (struct one *o)
{
    cudaFree ((void *)o->r.in);
    if (o->r.out != o->r.in)
        cudaFree (o->r.out);
    free (o->mine);
    free (o->want);
}

static inline int run_all (struct slurmdl_comm *c, struct one *all, int n)
{
    struct slurmdl_error err = { "" };
    int first = (int)slurmdl_comm_rank (c) * 5;

    for (int k = 0; k < n; k++) {
        struct one *o = &all[(k + first) % n];
        o->r.name = o->name;
        CHECK (c, (o->ticket = slurmdl_submit (c, &o->r, &err)) > 0);
    }
    for (int i = 0; i < n; i++) {
        CHECK (c, slurmdl_wait (c, all[i].ticket, &err) == 0);
        if (!is_right (&all[i]))
            return complain (c, __LINE__, all[i].name, "it is wrong");
    }
    return 0;
}
