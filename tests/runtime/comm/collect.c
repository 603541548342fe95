/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives compared with a serial computation. */
#include "tests/runtime/comm/collect.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/comm/api/comm.h"
#include "runtime/comm/reduce/reduce.h"
#include "tests/runtime/comm/numbers.h"

bool collect_is_long (void)
{
    const char *value = getenv ("DL_TEST_SOAK");

    return value && *value;
}

int collect_complain (struct slurmdl_comm *w, const char *what, size_t n)
{
    fprintf (stderr, "# rank %ld of %ld: %s, %zu\n", slurmdl_comm_rank (w), slurmdl_comm_size (w),
             what, n);
    return 1;
}

/* ---- small integers, exact in every type ---- */

static bool is_unsigned (enum slurmdl_type t)
{
    return t == SLURMDL_U8 || t == SLURMDL_U16 || t == SLURMDL_U32 || t == SLURMDL_U64
           || t == SLURMDL_BOOL;
}

static int value_of (long rank, size_t i, enum slurmdl_type type, enum slurmdl_op op)
{
    int v = (int)(((i * 2654435761u >> 7) + (size_t)rank * 5) % 3);

    if (type == SLURMDL_BOOL)
        return v & 1;
    if (op == SLURMDL_PRODUCT)
        return 1 + (v & 1);
    return is_unsigned (type) ? v : v - 1;
}

static void fill (void *to, long rank, size_t n, enum slurmdl_type type, enum slurmdl_op op)
{
    for (size_t i = 0; i < n; i++)
        put_complex (to, i, type, value_of (rank, i, type, op), 1);
}

static void serial (void *to, long size, size_t n, enum slurmdl_type t, enum slurmdl_op op)
{
    void *one = malloc (n * slurmdl_type_size (t) + 1);

    fill (to, 0, n, t, op);
    for (long r = 1; r < size; r++) {
        fill (one, r, n, t, op);
        reduce_pair (to, to, one, n, t, op);
    }
    if (op == SLURMDL_AVERAGE)
        reduce_scale (to, n, t, 1.0 / (double)size);
    free (one);
}

/* The arrays of one comparison. */
struct arrays {
    size_t bytes;
    char *in, *out, *want;
};

static struct arrays arrays_make (struct slurmdl_comm *w, size_t n, int t, int op)
{
    struct arrays a = { n * slurmdl_type_size ((enum slurmdl_type)t), 0, 0, 0 };

    a.in = malloc (a.bytes + 1);
    a.out = malloc (a.bytes + 1);
    a.want = malloc (a.bytes + 1);
    memset (a.out, 0x5a, a.bytes + 1);
    fill (a.in, slurmdl_comm_rank (w), n, (enum slurmdl_type)t, op);
    serial (a.want, slurmdl_comm_size (w), n, (enum slurmdl_type)t, op);
    return a;
}

static void arrays_free (struct arrays *a)
{
    free (a->in);
    free (a->out);
    free (a->want);
}

static int one_allreduce (struct slurmdl_comm *w, size_t n, int t, int op, bool in_place)
{
    struct arrays a = arrays_make (w, n, t, op);
    struct slurmdl_error err;
    char *out = in_place ? a.in : a.out;
    int bad = slurmdl_allreduce (w, a.in, out, n, t, op, &err);

    if (bad)
        collect_complain (w, err.text, n);
    else if (memcmp (out, a.want, a.bytes) || a.out[a.bytes] != 0x5a)
        bad = collect_complain (w, slurmdl_type_name (t), n);
    arrays_free (&a);
    return bad != 0;
}

static int one_reduce (struct slurmdl_comm *w, size_t n, int t, int op)
{
    struct arrays a = arrays_make (w, n, t, op);
    struct slurmdl_error err;
    long root = (long)n % slurmdl_comm_size (w);
    bool mine = slurmdl_comm_rank (w) == root;
    int bad = slurmdl_reduce (w, a.in, mine ? a.out : NULL, n, t, op, root, &err);

    if (bad)
        collect_complain (w, err.text, n);
    else if (mine && memcmp (a.out, a.want, a.bytes))
        bad = collect_complain (w, "reduce", n);
    arrays_free (&a);
    return bad != 0;
}

static int one_reduce_scatter (struct slurmdl_comm *w, size_t n, int t, int op, bool odd)
{
    struct arrays a = arrays_make (w, n, t, op);
    long size = slurmdl_comm_size (w);
    long rank = slurmdl_comm_rank (w);
    size_t element = slurmdl_type_size ((enum slurmdl_type)t);
    struct slurmdl_error err;
    size_t counts[64];
    size_t at = 0;
    int bad;

    for (long r = 0; r < size; r++)
        counts[r] = n / (size_t)size + ((size_t)r < n % (size_t)size);
    if (odd) {
        memset (counts, 0, sizeof (counts));
        counts[0] = n / 3;
        counts[size - 1] += n - n / 3;
    }
    for (long r = 0; r < rank; r++)
        at += counts[r];
    bad = slurmdl_reduce_scatter (w, a.in, a.out, n, odd ? counts : NULL, t, op, &err);
    if (bad)
        collect_complain (w, err.text, n);
    else if (memcmp (a.out, a.want + at * element, counts[rank] * element)
             || a.out[counts[rank] * element] != 0x5a)
        bad = collect_complain (w, "reduce_scatter", n);
    arrays_free (&a);
    return bad != 0;
}

/* ---- bytes ---- */

static uint8_t byte_of (long rank, long to, size_t i)
{
    return (uint8_t)(i * 31 + (size_t)rank * 101 + (size_t)to * 57);
}

static int one_allgather (struct slurmdl_comm *w, size_t n, bool even)
{
    long size = slurmdl_comm_size (w);
    long rank = slurmdl_comm_rank (w);
    struct slurmdl_error err;
    size_t bytes[64];
    size_t all = 0;
    size_t at = 0;
    uint8_t *out;
    uint8_t *in;
    int bad = 0;

    for (long r = 0; r < size; r++)
        all += bytes[r] = even ? n : (r % 3 == 1 ? 0 : n + (size_t)r);
    in = malloc (bytes[rank] + 1);
    out = malloc (all + 1);
    for (size_t i = 0; i < bytes[rank]; i++)
        in[i] = byte_of (rank, 0, i);
    if (slurmdl_allgather (w, in, bytes[rank], out, even ? NULL : bytes, &err) < 0)
        bad = collect_complain (w, err.text, n);
    for (long r = 0; r < size && !bad; at += bytes[r++])
        for (size_t i = 0; i < bytes[r] && !bad; i++)
            if (out[at + i] != byte_of (r, 0, i))
                bad = collect_complain (w, "allgather", n);
    free (in);
    free (out);
    return bad;
}

static int one_broadcast (struct slurmdl_comm *w, size_t n)
{
    long root = (long)(n + 1) % slurmdl_comm_size (w);
    uint8_t *data = malloc (n + 1);
    struct slurmdl_error err;
    int bad = 0;

    for (size_t i = 0; i < n; i++)
        data[i] = slurmdl_comm_rank (w) == root ? byte_of (root, 1, i) : 0;
    if (slurmdl_broadcast (w, data, n, root, &err) < 0)
        bad = collect_complain (w, err.text, n);
    for (size_t i = 0; i < n && !bad; i++)
        if (data[i] != byte_of (root, 1, i))
            bad = collect_complain (w, "broadcast", n);
    free (data);
    return bad;
}

static size_t portion (long from, long to, size_t n)
{
    return (from + 2 * to) % 3 == 0 ? 0 : n + (size_t)(from * 3 + to);
}

static int one_alltoall (struct slurmdl_comm *w, size_t n)
{
    long size = slurmdl_comm_size (w);
    long rank = slurmdl_comm_rank (w);
    size_t to[64], from[64];
    size_t nin = 0, nout = 0, at = 0;
    struct slurmdl_error err;
    uint8_t *in, *out;
    int bad = 0;

    for (long r = 0; r < size; r++) {
        nin += to[r] = portion (rank, r, n);
        nout += from[r] = portion (r, rank, n);
    }
    in = malloc (nin + 1);
    out = malloc (nout + 1);
    for (long r = 0; r < size; at += to[r++])
        for (size_t i = 0; i < to[r]; i++)
            in[at + i] = byte_of (rank, r, i);
    if (slurmdl_alltoall (w, in, to, out, from, &err) < 0)
        bad = collect_complain (w, err.text, n);
    at = 0;
    for (long r = 0; r < size && !bad; at += from[r++])
        for (size_t i = 0; i < from[r] && !bad; i++)
            if (out[at + i] != byte_of (r, rank, i))
                bad = collect_complain (w, "alltoall", n);
    free (in);
    free (out);
    return bad;
}

/* ---- what each rank runs ---- */

int collect_types (struct slurmdl_comm *w, void *arg)
{
    static const size_t sizes[] = { 0, 1, 7, 1031 };
    int bad = 0;

    (void)arg;
    for (int t = 0; slurmdl_type_size ((enum slurmdl_type)t); t++)
        for (int op = SLURMDL_SUM; op <= SLURMDL_PRODUCT; op++) {
            if (!reduce_defined ((enum slurmdl_type)t, (enum slurmdl_op)op))
                continue;
            for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++) {
                bad += one_allreduce (w, sizes[i], t, op, i & 1);
                bad += one_reduce (w, sizes[i], t, op);
                bad += one_reduce_scatter (w, sizes[i], t, op, i & 1);
            }
        }
    return bad != 0;
}

int collect_size (struct slurmdl_comm *w, size_t n)
{
    int bad = one_allreduce (w, n / 4, SLURMDL_F32, SLURMDL_SUM, false);

    bad += one_allreduce (w, n / 2, SLURMDL_BF16, SLURMDL_AVERAGE, true);
    bad += one_reduce (w, n / 8, SLURMDL_I64, SLURMDL_SUM);
    bad += one_reduce_scatter (w, n / 4, SLURMDL_F32, SLURMDL_MAX, false);
    bad += one_reduce_scatter (w, n / 4, SLURMDL_F32, SLURMDL_MAX, true);
    bad += one_allgather (w, n, true);
    bad += one_allgather (w, n, false);
    bad += one_broadcast (w, n);
    bad += one_alltoall (w, n);
    return bad;
}

int collect_sizes (struct slurmdl_comm *w, void *arg)
{
    static const size_t sizes[] = {
        0, 1, 7, 4096, 65537, (1 << 20) + 3, 1 << 22, 1 << 24, (1 << 26) - 12, 1 << 26
    };
    size_t most = arg ? *(size_t *)arg : collect_is_long () ? SIZE_MAX : (size_t)1 << 21;
    struct slurmdl_error err;
    int bad = 0;

    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++)
        if (sizes[i] < most)
            bad += collect_size (w, sizes[i]);
    for (int i = 0; i < 5; i++)
        if (slurmdl_barrier (w, &err) < 0)
            bad += collect_complain (w, err.text, 0);
    return bad != 0;
}

/* A type of 16 or 8 bits.  'unit' is the error of one rounding, relative to the
 * result; 'least' is its absolute error for very small results.
 */
struct narrow {
    enum slurmdl_type type;
    double unit, least;
};

static double number_of (long rank, size_t i, enum slurmdl_type type)
{
    double x = sin ((double)(i + (size_t)rank * 1000));
    float bits;

    reduce_convert (&bits, type, &x, SLURMDL_F64, 1);
    reduce_convert (&x, SLURMDL_F64, &bits, type, 1);
    return x;
}

static int one_narrow (struct slurmdl_comm *w, const struct narrow *t)
{
    enum { N = 3001 };
    double ranks = (double)slurmdl_comm_size (w);
    double most = ranks * pow (1 + t->unit, ranks); /* each sum is rounded again */
    size_t size = slurmdl_type_size (t->type);
    struct slurmdl_error err = { "" };
    char *x = malloc (N * size), *first = malloc (N * size);
    int bad;

    for (size_t i = 0; i < N; i++) {
        double v = number_of (slurmdl_comm_rank (w), i, t->type);
        reduce_convert (x + i * size, t->type, &v, SLURMDL_F64, 1);
    }
    bad = slurmdl_allreduce (w, x, x, N, t->type, SLURMDL_SUM, &err);
    memcpy (first, x, N * size);
    bad |= slurmdl_broadcast (w, first, N * size, 0, &err);
    bad |= memcmp (first, x, N * size);
    for (size_t i = 0; i < N && !bad; i++) {
        double got, sum = 0, all = 0;
        for (long r = 0; r < slurmdl_comm_size (w); r++) {
            sum += number_of (r, i, t->type);
            all += fabs (number_of (r, i, t->type)) * t->unit + t->least;
        }
        reduce_convert (&got, SLURMDL_F64, x + i * size, t->type, 1);
        bad = !(fabs (sum - got) <= most * all);
    }
    free (x);
    free (first);
    return bad ? collect_complain (w, slurmdl_type_name (t->type), 0) : 0;
}

static int narrow_numbers (struct slurmdl_comm *w)
{
    static const struct narrow types[] = {
        { SLURMDL_F16, 0x1p-11, 0x1p-25 },
        { SLURMDL_BF16, 0x1p-8, 0x1p-126 },
        { SLURMDL_F8_E4M3, 0x1p-4, 0x1p-10 },
        { SLURMDL_F8_E5M2, 0x1p-3, 0x1p-17 },
    };
    int bad = 0;

    for (size_t i = 0; i < sizeof (types) / sizeof (*types); i++)
        bad += one_narrow (w, &types[i]);
    return bad;
}

int collect_rounding (struct slurmdl_comm *w, void *arg)
{
    enum { N = 100003 };
    long rank = slurmdl_comm_rank (w);
    long size = slurmdl_comm_size (w);
    float *in = malloc (N * sizeof (*in));
    float *out = malloc (N * sizeof (*out));
    float *first = malloc (N * sizeof (*first));
    struct slurmdl_error err;
    int bad = 0;

    (void)arg;
    for (int round = 0; round < 2 && !bad; round++) {
        size_t n = round ? N : 100;
        for (size_t i = 0; i < n; i++)
            in[i] = sinf ((float)(i + (size_t)rank * 1000));
        bad = slurmdl_allreduce (w, in, out, n, SLURMDL_F32, SLURMDL_SUM, &err);
        memcpy (first, out, n * sizeof (*out));
        bad |= slurmdl_broadcast (w, first, n * sizeof (*out), 0, &err);
        bad |= memcmp (first, out, n * sizeof (*out));
        for (size_t i = 0; i < n && !bad; i++) {
            double sum = 0;
            for (long r = 0; r < size; r++)
                sum += (double)sinf ((float)(i + (size_t)r * 1000));
            bad = !(fabs (sum - (double)out[i]) <= (double)size * 1.2e-7 * size);
        }
    }
    free (in);
    free (out);
    free (first);
    return bad ? collect_complain (w, "random numbers", 0) : narrow_numbers (w);
}

int collect_parts (struct slurmdl_comm *w, void *arg)
{
    long rank = slurmdl_comm_rank (w);
    struct slurmdl_error err;
    struct slurmdl_comm *half = slurmdl_comm_split (w, rank % 2, rank % 2 ? -rank : rank, &err);
    struct slurmdl_comm *quarter =
        half ? slurmdl_comm_split (half, slurmdl_comm_rank (half) / 2, 0, &err) : NULL;
    struct slurmdl_comm *none = slurmdl_comm_split (w, rank ? -1 : 3, 0, &err);
    int bad = !half || !quarter || (none != NULL) != (rank == 0);

    (void)arg;
    if (bad)
        return collect_complain (w, err.text, 0);
    /* ordered by key, then by rank */

    bad +=
        slurmdl_comm_rank (half) != (rank % 2 ? slurmdl_comm_size (half) - 1 - rank / 2 : rank / 2);
    bad += slurmdl_comm_rank (quarter) != slurmdl_comm_rank (half) % 2;
    bad += collect_size (half, 5000) + collect_size (quarter, 5000) + collect_size (w, 500);
    if (none)
        bad += slurmdl_comm_size (none) != 1 || collect_size (none, 100);
    slurmdl_comm_close (none, NULL);
    slurmdl_comm_close (quarter, NULL);
    slurmdl_comm_close (half, NULL);
    return bad != 0;
}

static void *on_channel (void *arg)
{
    static int bad;

    for (int i = 0; i < 20; i++)
        if (collect_size (arg, (size_t)(1000 * i)))
            return &bad;
    return NULL;
}

int collect_threads (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_comm *c[3];
    struct slurmdl_error err = { "" };
    pthread_t t[3];
    void *rv;
    int bad = 0;

    (void)arg;
    for (unsigned i = 0; i < 3; i++)
        if (!(c[i] = comm_channel (w, i + 1, &err)))
            return collect_complain (w, err.text, i);
    for (int i = 0; i < 3; i++)
        pthread_create (&t[i], NULL, on_channel, c[i]);
    bad += on_channel (w) != NULL;
    for (int i = 0; i < 3; i++) {
        pthread_join (t[i], &rv);
        bad += rv != NULL;
        slurmdl_comm_close (c[i], NULL);
    }
    return bad != 0;
}
