/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors in the memory of a fake CUDA device. */
#include "runtime/base/device_memory.h"

#include "runtime/comm/api/comm.h"
#include "tests/runtime/comm/ondevice.h"
#include "tests/unit.h"

/* Backend directories: CUDA and NCCL, and CUDA alone. */
static const char both[] = GPU_DIR "/both/.libs";
static const char cuda[] = GPU_DIR "/cuda/.libs";

/* ---- everything that a device supports ---- */

/* Whether all sums are exact, even after a division. */
static bool is_exact (int type, int op)
{
    return reduce_defined ((enum slurmdl_type)type, (enum slurmdl_op)op)
           && (op != SLURMDL_AVERAGE || (type != SLURMDL_F8_E4M3 && type != SLURMDL_F8_E5M2));
}

static void make_one (struct one *o, struct slurmdl_comm *c, int what, int type, int op)
{
    static int n;

    memset (o, 0, sizeof (*o));
    o->r.what = (enum slurmdl_what)what;
    o->r.type = (enum slurmdl_type)type;
    o->r.op = (enum slurmdl_op)op;
    o->r.root = what == SLURMDL_BROADCAST && slurmdl_comm_size (c) > 1;
    snprintf (o->name, sizeof (o->name), "tensor%d", n);
    make (o, c, (size_t)(n++ % 7 * 50));
}

/* Add two tensors of each kind, which can be fused. */
static int add_types (struct one *all, struct slurmdl_comm *c)
{
    int n = 0;

    for (int t = 0; slurmdl_type_size ((enum slurmdl_type)t); t++)
        for (int k = 0; k < 2; k++) {
            make_one (&all[n++], c, SLURMDL_ALLGATHER, t, 0);
            make_one (&all[n++], c, SLURMDL_BROADCAST, t, 0);
            for (int op = 0; op <= SLURMDL_PRODUCT; op++)
                if (is_exact (t, op)) {
                    make_one (&all[n++], c, SLURMDL_ALLREDUCE, t, op);
                    make_one (&all[n++], c, SLURMDL_REDUCE_SCATTER, t, op);
                }
        }
    return n;
}

static int types (struct slurmdl_comm *c, void *arg)
{
    struct one *all = calloc (400, sizeof (*all));
    struct slurmdl_comm_stats s;
    int bad, n;

    n = add_types (all, c);
    bad = run_all (c, all, n) || run_all (c, all, n);
    slurmdl_comm_stats (c, &s);
    if (!bad && s.fused >= s.tensors)
        bad = complain (c, __LINE__, "nothing was put together", "");
    for (int i = 0; i < n; i++)
        drop (&all[i]);
    free (all);
    return bad;
}

/* Averages are exact only if the number of ranks is a power of two. */
CASE (test_types)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (4, 0, types, NULL, 100, NULL), 0);
    assert_int_equal (world_run (2, 0, types, NULL, 100, NULL), 0);
    assert_int_equal (world_run (1, 0, types, NULL, 100, NULL), 0);
}

CASE (test_types_without_nccl)
{
    setenv ("DL_BACKEND_DIR", cuda, 1);
    assert_int_equal (world_run (4, 0, types, NULL, 100, NULL), 0);
}

/* If one rank has no NCCL, none uses it. */
static int one_cannot (struct slurmdl_comm *c, void *arg)
{
    setenv ("DL_BACKEND_DIR", slurmdl_comm_rank (c) == 1 ? cuda : both, 1);
    return types (c, arg);
}

CASE (test_one_cannot)
{
    unsetenv ("DL_BACKEND_DIR");
    assert_int_equal (world_run (2, 0, one_cannot, NULL, 100, NULL), 0);
}

/* ---- which path data takes ---- */

static struct one floats (struct slurmdl_comm *c, const char *name, enum slurmdl_what what,
                          size_t n)
{
    struct one o = { .r = { .what = what, .type = SLURMDL_F32 } };

    snprintf (o.name, sizeof (o.name), "%s", name);
    make (&o, c, n);
    return o;
}

/* Small tensors are copied to and from the fusion buffer; a large one is not. */
static int ways (struct slurmdl_comm *c, void *arg)
{
    struct one all[20], large = floats (c, "large", SLURMDL_ALLREDUCE, 1 << 19);
    char name[16];
    int copies;
    int bad;

    for (int i = 0; i < 20; i++) {
        snprintf (name, sizeof (name), "small%d", i);
        all[i] = floats (c, name, SLURMDL_ALLREDUCE, 100);
        all[i].r.group = "small";
        all[i].r.members = 20;
    }
    bad = run_all (c, all, 20);
    copies = fakecuda_counted ().device_copies;
    if (!bad && copies != 40)
        bad = complain (c, __LINE__, "not 40 copies", "");
    if (!bad && fakecuda_counted ().device_calls != *(const int *)arg)
        bad = complain (c, __LINE__, "in other calls", "");
    bad = bad || run_all (c, &large, 1);
    if (!bad && fakecuda_counted ().device_copies != copies)
        bad = complain (c, __LINE__, "a large one is copied", "");
    if (!bad && fakecuda_counted ().host_bytes)
        bad = complain (c, __LINE__, "through the host", "");
    for (int i = 0; i < 20; i++)
        drop (&all[i]);
    drop (&large);
    return bad;
}

CASE (test_ways)
{
    int calls = CUDART_VERSION >= 13000 ? 2 : 40;

    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (3, 0, ways, &calls, 60, NULL), 0);
    setenv ("FAKE_CUDA", "old", 1);
    calls = 40;
    assert_int_equal (world_run (3, 0, ways, &calls, 60, NULL), 0);
    unsetenv ("FAKE_CUDA");
}

/* With one rank the result is its input. */
static int alone (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    struct one o = floats (c, "w", SLURMDL_ALLREDUCE, 1 << 19);

    CHECK (c, run_all (c, &o, 1) == 0);
    memset (o.r.out, 0x55, o.bytes_out);
    CHECK (c,
           slurmdl_allreduce (c, o.r.in, o.r.out, o.r.n, SLURMDL_F32, SLURMDL_AVERAGE, &err) == 0);
    CHECK (c, is_right (&o));
    CHECK (c, fakecuda_counted ().host_bytes == 0);
    drop (&o);
    return 0;
}

CASE (test_alone)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (1, 0, alone, NULL, 60, NULL), 0);
}

/* ---- factors ---- */

static int factors (struct slurmdl_comm *c, void *arg)
{
    static const enum slurmdl_type types[] = { SLURMDL_F16,     SLURMDL_BF16, SLURMDL_F32,
                                               SLURMDL_F64,     SLURMDL_C64,  SLURMDL_C128,
                                               SLURMDL_F8_E5M2, SLURMDL_F32 };
    struct one all[8 * 4];
    int bad, n = 0;

    for (int k = 0; k < 8; k++)
        for (int what = 0; what <= SLURMDL_REDUCE_SCATTER; what += SLURMDL_REDUCE_SCATTER)
            for (int op = 0; op <= SLURMDL_AVERAGE; op++) {
                struct one *o = &all[n];
                memset (o, 0, sizeof (*o));
                o->r.what = (enum slurmdl_what)what;
                o->r.type = types[k];
                o->r.op = k == 7 ? SLURMDL_MAX - op : op;
                o->r.prescale = 0.5;
                o->r.postscale = n % 3 ? 4 : 0;
                snprintf (o->name, sizeof (o->name), "factor%d", n);
                make (o, c, 100);
                n++;
            }
    bad = run_all (c, all, n);
    for (int i = 0; i < n; i++)
        drop (&all[i]);
    return bad;
}

CASE (test_factors)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (4, 0, factors, NULL, 60, NULL), 0);
    setenv ("DL_BACKEND_DIR", cuda, 1);
    assert_int_equal (world_run (2, 0, factors, NULL, 60, NULL), 0);
}

/* ---- the program's streams ---- */

/* A collective waits for the stream that writes its input. */
static int late (struct slurmdl_comm *c, void *arg)
{
    static char stream;
    struct one all[3] = { floats (c, "a", SLURMDL_ALLREDUCE, 1000),
                          floats (c, "b", SLURMDL_ALLGATHER, 10),
                          floats (c, "c", SLURMDL_ALLREDUCE, 1 << 19) };
    int bad;

    for (int i = 0; i < 3; i++) {
        struct one *o = &all[i];
        void *in = (void *)o->r.in;
        o->r.stream = i == 1 ? NULL : &stream;
        memset (in, 0x55, o->bytes_in);
        fakecuda_write (o->r.stream, in, o->mine, o->bytes_in, 300);
    }
    bad = run_all (c, all, 3);
    for (int i = 0; i < 3; i++)
        drop (&all[i]);
    return bad;
}

CASE (test_late)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (3, 0, late, NULL, 60, NULL), 0);
    setenv ("DL_BACKEND_DIR", cuda, 1);
    assert_int_equal (world_run (3, 0, late, NULL, 60, NULL), 0);
}

/* ---- input or output in host memory ---- */

static int mixed (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    struct one o = floats (c, "w", SLURMDL_ALLREDUCE, 10);
    float x[10] = { 0 };
    void *out = o.r.out;
    int64_t t;

    o.r.name = o.name;
    if (slurmdl_comm_rank (c) == 1)
        o.r.out = x;
    CHECK (c, (t = slurmdl_submit (c, &o.r, &err)) > 0);
    CHECK (c, slurmdl_wait (c, t, &err) < 0 && errno == EPROTO);
    CHECK (c, strstr (err.text, "gradient \"w\": rank "));
    CHECK (c, strstr (err.text, "rank 1 ("));
    CHECK (c, strstr (err.text, "memory of a device"));
    CHECK (c, strstr (err.text, "memory of the host"));
    /* the communicator still works */
    o.r.out = out;
    CHECK (c, run_all (c, &o, 1) == 0);
    drop (&o);
    return 0;
}

CASE (test_mixed)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (3, 0, mixed, NULL, 60, NULL), 0);
}

/* A result without a buffer is allocated in host memory. */
static int taken (struct slurmdl_comm *c)
{
    struct slurmdl_error err = { "" };
    struct one o = floats (c, "rows", SLURMDL_ALLGATHER, 5);
    size_t counts[8], n;
    void *out = o.r.out, *got;
    int64_t t;

    o.r.name = o.name;
    o.r.out = NULL;
    CHECK (c, (t = slurmdl_submit (c, &o.r, &err)) > 0);
    CHECK (c, slurmdl_take (c, t, &got, &n, counts, &err) == 0);
    CHECK (c, n * 4 == o.bytes_out && !memcmp (got, o.want, n * 4));
    CHECK (c, counts[0] == 8 && counts[1] == 5);
    free (got);
    o.r.out = out;
    drop (&o);
    return 0;
}

static int narrower (struct slurmdl_comm *c, void *arg)
{
    struct one o = floats (c, "half", SLURMDL_ALLREDUCE, 1000);
    int bad;

    o.r.compression = SLURMDL_AS_BF16;
    bad = run_all (c, &o, 1) || taken (c);
    drop (&o);
    return bad;
}

CASE (test_host)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (3, 0, narrower, NULL, 60, NULL), 0);
}

/* A rank that has joined contributes zeros, and no rows. */
static int joined (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    float ones[20], *x = on_device (NULL, 80), *y = on_device (NULL, 400);
    struct slurmdl_request r = { .name = "x", .type = SLURMDL_F32, .n = 20, .in = x, .out = x };
    struct slurmdl_request g = {
        .name = "y", .what = SLURMDL_ALLGATHER, .type = SLURMDL_F32, .n = 20, .in = x, .out = y
    };
    long last;

    for (int i = 0; i < 20; i++)
        ones[i] = 1;
    for (long k = 0; k <= slurmdl_comm_rank (c); k++) {
        memcpy (x, ones, sizeof (ones));
        CHECK (c, slurmdl_submit (c, &r, &err) > 0);
        CHECK (c, slurmdl_wait (c, 0, &err) == 0);
        CHECK (c, x[0] == (float)(3 - k) && x[19] == (float)(3 - k));
        CHECK (c, slurmdl_submit (c, &g, &err) > 0);
        CHECK (c, slurmdl_wait (c, 0, &err) == 0);
        CHECK (c, y[0] == (float)(3 - k) && y[20 * (3 - k) - 1] == y[0]);
    }
    CHECK (c, slurmdl_join (c, &last, &err) == 0 && last == 2);
    cudaFree (x);
    cudaFree (y);
    return 0;
}

CASE (test_joined)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    assert_int_equal (world_run (3, 0, joined, NULL, 60, NULL), 0);
}

/* ---- failures ---- */

static int stuck (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    struct one o = floats (c, "w", SLURMDL_ALLREDUCE, 10);
    double began = monotonic ();
    int64_t t;

    o.r.name = o.name;
    mesh_set_timeout (c->mesh, 2);
    CHECK (c, (t = slurmdl_submit (c, &o.r, &err)) > 0);
    CHECK (c, slurmdl_wait (c, t, &err) < 0);
    CHECK (c, errno == ETIMEDOUT || errno == ECONNRESET);
    CHECK (c, strstr (err.text, (const char *)arg));
    CHECK (c, monotonic () - began < 20);
    drop (&o);
    return 0;
}

CASE (test_stuck)
{
    setenv ("DL_BACKEND_DIR", both, 1);
    setenv ("FAKE_NCCL", "stuck", 1);
    assert_int_equal (world_run (3, 0, stuck, "for named tensors", 60, NULL), 0);
    setenv ("FAKE_NCCL", "hang", 1);
    assert_int_equal (world_run (3, 0, stuck, "for the ranks", 60, NULL), 0);
    setenv ("FAKE_NCCL", "async", 1);
    assert_int_equal (world_run (3, 0, stuck, "remote process", 60, NULL), 0);
    unsetenv ("FAKE_NCCL");
}

/* Copy device memory as a save does, twice. */
static int snapshot (struct slurmdl_comm *c, void *arg)
{
    enum { N = 1000 };
    unsigned char sent[N], got[N] = { 0 };
    const struct memory_ops *ops;
    void *p;

    for (int i = 0; i < N; i++)
        sent[i] = (unsigned char)(i % 251);
    if (cudaMalloc (&p, N) != cudaSuccess || !(ops = memory_ops_of (p))
        || ops->to_device (p, sent, N) < 0)
        return complain (c, __LINE__, "no memory of a device", "");
    for (int i = 0; i < 2; i++)
        if (ops->begin () < 0 || ops->to_host_later (got, p, N / 2) < 0
            || ops->to_host_later (got + N / 2, (char *)p + N / 2, N / 2) < 0 || ops->end () < 0
            || memcmp (got, sent, N) != 0)
            return complain (c, __LINE__, "not copied", "");
    cudaFree (p);
    return 0;
}

CASE (test_snapshot)
{
    setenv ("DL_BACKEND_DIR", cuda, 1);
    assert_int_equal (world_run (1, 0, snapshot, NULL, 60, NULL), 0);
}

int main (void)
{
    alarm (280);
    cmocka_set_message_output (CM_OUTPUT_TAP);
    return run_cases (NULL, NULL);
}
