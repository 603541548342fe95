/* SPDX-License-Identifier: Apache-2.0 */
/* Rings: each rank gets from the one before it and gives to the one after. */
#include <stdlib.h>

#include "runtime/comm/parts.h"
#include "runtime/comm/reduce.h"
#include "runtime/error.h"

void parts_even (size_t *at, long ranks, size_t n)
{
    size_t size = (size_t)ranks;

    at[0] = 0;
    for (size_t r = 0; r < size; r++)
        at[r + 1] = at[r] + n / size + (r < n % size);
}

struct fold {
    const struct parts *p;
    char *to;
    const char *from;
};

static void fold_part (void *arg, size_t offset, size_t n)
{
    const struct fold *f = arg;

    reduce_pair (f->to + offset,
                 f->from + offset,
                 f->to + offset,
                 n / f->p->size,
                 f->p->type,
                 f->p->op);
}

static size_t largest (const struct parts *p)
{
    size_t most = 0;

    for (long r = 0; r < p->n; r++)
        if (p->at[r + 1] - p->at[r] > most)
            most = p->at[r + 1] - p->at[r];
    return most * p->size;
}

int ring_reduce_scatter (struct mesh *m,
                         const struct parts *p,
                         struct slurmdl_error *err)
{
    long n = p->n;
    long rank = mesh_rank (m);
    size_t most = largest (p);
    char *got = malloc (most + 1);
    int rv = got ? 0 : errorf (err, "out of memory: %zu bytes", most);

    for (long s = 0; s < n - 1 && rv == 0; s++) {
        long out = (rank - s - 1 + n) % n;
        long in = (rank - s - 2 + 2 * n) % n;
        struct fold f = { p, p->data + p->at[in] * p->size, got };
        rv = mesh_exchange_parts (m,
                                  (rank + 1) % n,
                                  p->data + p->at[out] * p->size,
                                  (p->at[out + 1] - p->at[out]) * p->size,
                                  (rank + n - 1) % n,
                                  got,
                                  (p->at[in + 1] - p->at[in]) * p->size,
                                  p->size,
                                  fold_part,
                                  &f,
                                  err);
    }
    free (got);
    return rv;
}

int ring_allgather (struct mesh *m,
                    char *data,
                    const size_t *at,
                    struct slurmdl_error *err)
{
    long n = mesh_size (m);
    long rank = mesh_rank (m);
    int rv = 0;

    for (long s = 0; s < n - 1 && rv == 0; s++) {
        long out = (rank - s + n) % n;
        long in = (rank - s - 1 + n) % n;
        rv = mesh_exchange (m,
                            (rank + 1) % n,
                            data + at[out],
                            at[out + 1] - at[out],
                            (rank + n - 1) % n,
                            data + at[in],
                            at[in + 1] - at[in],
                            err);
    }
    return rv;
}
