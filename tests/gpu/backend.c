/* SPDX-License-Identifier: Apache-2.0 */
/* The module slurmdl-nccl.so with one rank on a GPU or its stand-in; TAP. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/device_memory.h"
#include "runtime/comm/api/comm.h"
#include "tests/runtime/comm/numbers.h"
#include "tests/runtime/comm/world.h"

/* CUDA's runtime, as the module has it; its names are the same everywhere. */
enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, NON_BLOCKING = 1 };

static struct {
    int (*malloc) (void **, size_t);
    int (*free) (void *);
    int (*copy) (void *, const void *, size_t, int);
    int (*copy_later) (void *, const void *, size_t, int, void *);
    int (*stream) (void **, unsigned);
    int (*query) (void *);
    int (*finish) (void *);
    int (*call_host) (void *, void (*) (void *), void *);
} cuda;

static bool stand_ins;
static int count, failed;

__attribute__ ((format (printf, 2, 3))) static bool
ok (bool condition, const char *format, ...)
{
    va_list ap;

    va_start (ap, format);
    printf ("%s %d - ", condition ? "ok" : "not ok", ++count);
    vprintf (format, ap);
    va_end (ap);
    putchar ('\n');
    failed += !condition;
    return condition;
}

static void skip (const char *name, const char *why)
{
    printf ("ok %d - %s # SKIP %s\n", ++count, name, why);
}

static void figure (const char *name, double value, const char *unit)
{
    printf ("# figure %s %.4g %s\n", name, value, unit);
}

/* ---- CUDA ---- */

/* clang-format off */
static const struct {
    void *at;
    const char *name;
    bool needed;
} symbols[] = {
    { &cuda.malloc,     "cudaMalloc",                true },
    { &cuda.free,       "cudaFree",                  true },
    { &cuda.copy,       "cudaMemcpy",                true },
    { &cuda.copy_later, "cudaMemcpyAsync",           true },
    { &cuda.stream,     "cudaStreamCreateWithFlags", true },
    { &cuda.query,      "cudaStreamQuery",           true },
    { &cuda.finish,     "cudaStreamSynchronize",     true },
    { &cuda.call_host,  "cudaLaunchHostFunc",        false },
};
/* clang-format on */

static bool find_cuda (void)
{
    static const char *const names[] = { "libcudart.so.13",
                                         "libcudart.so.12",
                                         "libcudart.so" };
    void *h = NULL;

    for (int i = 0; !h && i < 3; i++)
        h = dlopen (names[i], RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; h && i < sizeof (symbols) / sizeof (*symbols); i++) {
        void *f = dlsym (h, symbols[i].name);
        if (!f && symbols[i].needed)
            return false;
        memcpy (symbols[i].at, &f, sizeof (f));
    }
    return h;
}

static void need (int error, const char *what)
{
    if (!error)
        return;
    printf ("Bail out! %s: CUDA error %d\n", what, error);
    exit (1);
}

static void *on_device (const void *bytes, size_t n)
{
    void *p;

    need (cuda.malloc (&p, n), "cudaMalloc");
    if (bytes)
        need (cuda.copy (p, bytes, n, TO_DEVICE), "cudaMemcpy");
    return p;
}

static bool
has_bytes (const char *what, const void *device, const void *want, size_t n)
{
    unsigned char *got = malloc (n);
    const unsigned char *w = want;
    size_t i = 0;

    need (cuda.copy (got, device, n, TO_HOST), "cudaMemcpy");
    while (i < n && got[i] == w[i])
        i++;
    if (i < n)
        printf ("# %s: byte %zu of %zu is 0x%02x, expected 0x%02x\n",
                what,
                i,
                n,
                got[i],
                w[i]);
    free (got);
    return i == n;
}

/* ---- collectives: of one rank the result is what it gave ---- */

static const char *const op_names[] = {
    "sum", "average", "min", "max", "product"
};

/* Ones, twos and zeros, which are exact in every type. */
static void
fill (unsigned char *to, size_t n, enum slurmdl_type type, unsigned salt)
{
    for (size_t i = 0; i < n; i++) {
        double v = (double)((i * 7 + salt) % (type == SLURMDL_BOOL ? 2 : 3));
        put_complex (to, i, type, v, 1);
    }
}

static void one_collective (const struct comm_backend *b,
                            void *self,
                            struct collective how,
                            size_t bytes,
                            const unsigned char *data,
                            const char *name)
{
    struct slurmdl_error err = { "" };
    void *in = on_device (data, bytes);
    void *out = how.what == COMM_BROADCAST ? in : on_device (NULL, bytes);
    int rv;

    how.in = in;
    how.out = out;
    rv = b->run (self, &how, &err);
    ok (rv == 0 && has_bytes (name, out, data, bytes),
        "%s%s%s",
        name,
        *err.text ? ": " : "",
        err.text);
    if (out != in)
        cuda.free (out);
    cuda.free (in);
}

static void reductions (const struct comm_backend *b, void *self, size_t n)
{
    unsigned char *data = malloc (n * 16);

    for (int t = SLURMDL_I8; t <= SLURMDL_F8_E5M2; t++)
        for (int op = SLURMDL_SUM; op <= SLURMDL_PRODUCT; op++) {
            static const enum collective_kind kinds[] = { COMM_ALLREDUCE,
                                                          COMM_REDUCE,
                                                          COMM_REDUCE_SCATTER };
            static const char *const names[] = { "all-reduce",
                                                 "reduction",
                                                 "reduce-scatter" };
            if (!reduce_defined (t, op) || !b->takes (self, t, op))
                continue;
            fill (data, n, t, (unsigned)op);
            for (int k = 0; k < 3; k++) {
                char name[96];
                snprintf (name,
                          sizeof (name),
                          "%s, %s, %s",
                          names[k],
                          slurmdl_type_name (t),
                          op_names[op]);
                one_collective (b,
                                self,
                                (struct collective){ .what = kinds[k],
                                                     .type = t,
                                                     .op = op,
                                                     .n = n,
                                                     .counts = &n },
                                n * slurmdl_type_size (t),
                                data,
                                name);
            }
        }
    free (data);
}

static void copies (const struct comm_backend *b, void *self, size_t n)
{
    unsigned char *data = malloc (n);
    struct slurmdl_error err = { "" };

    fill (data, n, SLURMDL_U8, 1);
    one_collective (b,
                    self,
                    (struct collective){ .what = COMM_ALLGATHER, .counts = &n },
                    n,
                    data,
                    "all-gather");
    one_collective (b,
                    self,
                    (struct collective){ .what = COMM_BROADCAST, .n = n },
                    n,
                    data,
                    "broadcast");
    one_collective (
        b,
        self,
        (struct collective){ .what = COMM_ALLTOALL, .counts = &n, .from = &n },
        n,
        data,
        "all-to-all");
    ok (b->run (self, &(struct collective){ .what = COMM_BARRIER }, &err) == 0,
        "barrier%s%s",
        *err.text ? ": " : "",
        err.text);
    free (data);
}

static void speed (const struct comm_backend *b, void *self, size_t n)
{
    struct collective how = { .what = COMM_ALLREDUCE,
                              .type = SLURMDL_F32,
                              .n = n / 4 };
    void *in = on_device (NULL, n), *out = on_device (NULL, n);
    struct slurmdl_error err = { "" };
    double t = 0;

    how.in = in;
    how.out = out;
    for (int i = 0; i < 6; i++) {
        if (i == 1)
            t = monotonic ();
        if (b->run (self, &how, &err) < 0)
            break;
    }
    t = (monotonic () - t) / 5;
    if (ok (!*err.text, "all-reduces of %zu MiB %s", n >> 20, err.text))
        figure ("nccl.allreduce-one-rank", (double)n / t / 1e9, "GB/s");
    how.n = 1;
    t = monotonic ();
    for (int i = 0; i < 1000 && b->run (self, &how, &err) == 0; i++)
        continue;
    t = monotonic () - t;
    if (ok (!*err.text, "1,000 all-reduces of 4 bytes %s", err.text))
        figure ("nccl.allreduce-4-bytes", t * 1e3, "us");
    cuda.free (in);
    cuda.free (out);
}

/* ---- streams ---- */

/* A stream that is busy for some time, and whose last deed is to write what
 * is to be reduced: the collective comes after it, and the call before it.
 */
static void in_a_stream (const struct comm_backend *b, void *self, size_t n)
{
    struct slurmdl_error err = { "" };
    unsigned char *data = malloc (n);
    void *late = on_device (NULL, n), *in = on_device (NULL, n);
    void *out = on_device (NULL, n), *end = on_device (NULL, n);
    struct collective how = { .what = COMM_ALLREDUCE,
                              .type = SLURMDL_F32,
                              .n = n / 4,
                              .in = in,
                              .out = out };
    void *stream;
    bool is_busy;
    bool good;
    double t;
    int rv;

    fill (data, n / 4, SLURMDL_F32, 2);
    need (cuda.copy (late, data, n, TO_DEVICE), "cudaMemcpy");
    need (cuda.stream (&stream, NON_BLOCKING), "cudaStreamCreateWithFlags");
    ok (b->stream (self, stream) == 0, "a stream of the caller's is taken");
    for (int i = 0; i < (stand_ins ? 3 : 300); i++)
        cuda.copy_later (in, end, n, ON_DEVICE, stream);
    cuda.copy_later (in, late, n, ON_DEVICE, stream);
    t = monotonic ();
    rv = b->run (self, &how, &err);
    t = monotonic () - t;
    is_busy = cuda.query (stream) != 0;
    cuda.copy_later (end, out, n, ON_DEVICE, stream);
    need (cuda.finish (stream), "cudaStreamSynchronize");
    good = ok (rv == 0, "an all-reduce in a stream that is busy %s", err.text);
    if (stand_ins)
        skip ("the call returns before the stream has come to it",
              "the stand-in's streams run when they are asked");
    else
        ok (is_busy, "the call returns before the stream has come to it");
    good = ok (has_bytes ("in a stream", out, data, n),
               "it has reduced what the stream had written before")
           && good;
    good = ok (has_bytes ("after it", end, data, n),
               "what the stream does after it sees the result")
           && good;
    if (good)
        figure ("nccl.queue-a-collective", t * 1e6, "us");
    b->stream (self, NULL);
    cuda.free (late);
    cuda.free (in);
    cuda.free (out);
    cuda.free (end);
    free (data);
}

/* ---- the queue of named tensors ---- */

enum { PIECES = 1000 };

static bool queue_round (const struct comm_backend *b,
                         void *self,
                         struct comm_copy *list,
                         const struct memory_mark *m,
                         struct slurmdl_error *err)
{
    const struct comm_queue *q = b->queue;
    size_t n = list[0].n * PIECES;
    struct collective how = { .what = COMM_ALLREDUCE,
                              .type = SLURMDL_F32,
                              .n = n / 4 };
    struct comm_copy back[PIECES];
    char *room;
    bool good = q->begin (self, err) == 0;

    good = good && (!m || q->after (self, m, err) == 0)
           && (room = q->room (self, 0, n, err));
    for (int i = 0; good && i < PIECES; i++) {
        back[i] =
            (struct comm_copy){ list[i].to, room + i * list[i].n, list[i].n };
        list[i].to = room + i * list[i].n;
    }
    good = good && q->copy (self, list, PIECES, err) == 0;
    if (good) {
        how.in = how.out = room;
        q->factor (self, 0.5);
        good = b->run (self, &how, err) == 0
               && q->copy (self, back, PIECES, err) == 0;
    }
    return q->end (self, err) == 0 && good;
}

static void queue (const struct comm_backend *b, void *self)
{
    struct slurmdl_error err = { "" };
    size_t each = 4096, n = each * PIECES;
    float *data = malloc (n);
    char *in = on_device (NULL, n), *out = on_device (NULL, n);
    const struct memory_ops *ops = memory_ops_of (in);
    struct memory_mark *m;
    struct comm_copy list[PIECES];
    double t = 0;
    bool good = true;

    for (size_t i = 0; i < n / 4; i++)
        data[i] = (float)(i % 1000) * 2;
    need (cuda.copy (in, data, n, TO_DEVICE), "cudaMemcpy");
    if (!ok (ops && ops->mark, "slurmdl-cuda.so knows the device's memory"))
        return;
    m = ops->mark (in, NULL);
    for (int round = 0; good && round < 3; round++) {
        for (size_t i = 0; i < PIECES; i++)
            list[i] = (struct comm_copy){ out + i * each,
                                          i == 7 ? NULL : in + i * each,
                                          each };
        t = monotonic ();
        good = queue_round (b, self, list, m, &err);
    }
    t = monotonic () - t;
    ok (m && ops->passed (m) == 1, "the mark of the default stream has passed");
    for (size_t i = 0; i < n / 4; i++)
        data[i] = i / (each / 4) == 7 ? 0 : data[i] / 2;
    if (ok (good && has_bytes ("queue", out, data, n),
            "1,000 pieces are put together, halved and taken apart %s",
            err.text))
        figure ("nccl.queue-1000-pieces-of-4-KiB", t * 1e3, "ms");
    if (m)
        ops->unmark (m);
    cuda.free (in);
    cuda.free (out);
    free (data);
}

/* ---- time-outs ---- */

static void wait_long (void *seconds)
{
    sleep (*(unsigned *)seconds);
}

/* The default stream is busy for longer than the time-out; last, as it ends
 * the communicator.
 */
static void
late_stream (struct slurmdl_comm *w, const struct comm_backend *b, void *self)
{
    static unsigned seconds = 6;
    struct slurmdl_error err = { "" };
    /* NCCL's one rank does nothing where 'in' is 'out' */
    void *x = on_device (NULL, 4), *y = on_device (NULL, 4);
    struct collective how = {
        .what = COMM_ALLREDUCE, .type = SLURMDL_F32, .n = 1, .in = x, .out = y
    };
    bool timed_out;
    double t;
    int rv;

    (void)w;
    if (!cuda.call_host) {
        skip ("a collective behind a stream that hangs",
              "no cudaLaunchHostFunc");
        return;
    }
    need (cuda.call_host (NULL, wait_long, &seconds), "cudaLaunchHostFunc");
    errno = 0;
    t = monotonic ();
    rv = b->run (self, &how, &err);
    t = monotonic () - t;
    timed_out = ok (
        rv < 0 && errno == ETIMEDOUT && strstr (err.text, "for an all-reduce"),
        "a collective behind a stream that hangs: %d, %s (errno %d)",
        rv,
        err.text,
        errno);
    if (ok (t > 1.9 && t < 30,
            "and it ends after %.1f s, with a time-out of 2 s",
            t)
        && timed_out)
        figure ("nccl.time-out-of-2-s", t, "s");
    ok (timed_out && b->run (self, &how, &err) < 0 && errno == ENOTCONN,
        "the next call says so: %s",
        err.text);
}

/* A world of two, the second on another GPU. */
static long two (const struct mesh *m)
{
    (void)m;
    return 2;
}

static int gather_alone (struct mesh *m,
                         const void *mine,
                         size_t bytes,
                         void *all,
                         struct slurmdl_error *err)
{
    (void)m;
    (void)err;
    memcpy (all, mine, bytes);
    memcpy ((char *)all + bytes, mine, bytes);
    *((char *)all + bytes) ^= 1; /* of its GPU's bus */
    return 0;
}

static const char *host_of (const struct mesh *m, long rank)
{
    (void)m;
    return rank ? "elsewhere" : "here";
}

static int check_nothing (struct mesh *m, struct slurmdl_error *err)
{
    (void)m;
    (void)err;
    return 0;
}

static void rank_that_does_not_come (struct slurmdl_comm *w,
                                     const struct comm_backend *b)
{
    static const struct comm_services lonely = {
        mesh_rank,   two,           mesh_timeout,   mesh_local_rank,
        host_of,     check_nothing, gather_alone,   slurmdl_type_size,
        reduce_pair, reduce_scale,  reduce_convert, NULL,
    };
    struct slurmdl_error err = { "" };
    void *self = NULL;
    double t = monotonic ();
    bool timed_out;
    int rv;

    if (stand_ins)
        setenv ("FAKE_NCCL", "hang", 1);
    b->attach (&lonely);
    rv = b->open (w->mesh, &self, &err);
    t = monotonic () - t;
    timed_out = ok (rv < 0 && errno == ETIMEDOUT
                        && strstr (err.text, "for the ranks of a communicator"),
                    "a rank that does not come: %s (errno %d)",
                    err.text,
                    errno);
    if (ok (t > 1.9 && t < 30,
            "and it ends after %.1f s, with a time-out of 2 s",
            t)
        && timed_out)
        figure ("nccl.absent-rank-time-out-of-2-s", t, "s");
}

/* ---- two ranks ---- */

static int find_gpu (void **p)
{
    const struct comm_backend *b = comm_backend_load ("nccl", NULL);

    if (!b || !find_cuda ())
        return -1;
    *p = on_device (NULL, 4096);
    return 0;
}

static int twins (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };
    void *x;

    (void)arg;
    if (find_gpu (&x) < 0)
        return 1;
    if (slurmdl_allreduce (w, x, x, 4, SLURMDL_F32, SLURMDL_SUM, &err) == 0)
        return 2;
    if (slurmdl_comm_rank (w) == 0)
        printf ("# rank 0: %s (errno %d)\n", err.text, errno);
    return errno == EBUSY && strstr (err.text, "have the same GPU") ? 0 : 3;
}

static int through_the_host (struct slurmdl_comm *w, void *arg)
{
    float want[1024], data[1024];
    struct slurmdl_error err = { "" };
    void *x;

    (void)arg;
    if (find_gpu (&x) < 0)
        return 1;
    for (int i = 0; i < 1024; i++) {
        data[i] = (float)(i * (slurmdl_comm_rank (w) + 1));
        want[i] = (float)(i * 3);
    }
    need (cuda.copy (x, data, 4096, TO_DEVICE), "cudaMemcpy");
    if (slurmdl_allreduce (w, x, x, 1024, SLURMDL_F32, SLURMDL_SUM, &err) < 0)
        printf ("# %s\n", err.text);
    return !has_bytes ("through the host", x, want, 4096);
}

/* One rank is there, and calls nothing. */
static int absent (struct slurmdl_comm *w, void *arg)
{
    struct slurmdl_error err = { "" };
    double t = monotonic ();
    void *x;

    (void)arg;
    mesh_set_timeout (w->mesh, 2);
    if (slurmdl_comm_rank (w) == 1) {
        sleep (8);
        return 0;
    }
    if (find_gpu (&x) < 0)
        return 1;
    if (slurmdl_allreduce (w, x, x, 4, SLURMDL_F32, SLURMDL_SUM, &err) == 0)
        return 2;
    t = monotonic () - t;
    printf ("# rank 0 after %.1f s: %s\n", t, err.text);
    return errno == ETIMEDOUT && strstr (err.text, "rank 1") && t < 30 ? 0 : 3;
}

/* Before this process has touched CUDA, which does not survive a fork. */
static void worlds (void)
{
    int s[2];

    if (stand_ins)
        setenv ("FAKE_NCCL", "alone", 1);
    world_run (2, 0, twins, NULL, 120, s);
    ok (s[0] == 0 && s[1] == 0,
        "two ranks on one GPU are told so in one line (0x%x, 0x%x)",
        (unsigned)s[0],
        (unsigned)s[1]);
    setenv ("DL_COMM_BACKEND", "native", 1);
    world_run (2, 0, through_the_host, NULL, 120, s);
    ok (s[0] == 0 && s[1] == 0,
        "and DL_COMM_BACKEND=native goes through the host (0x%x, 0x%x)",
        (unsigned)s[0],
        (unsigned)s[1]);
    unsetenv ("DL_COMM_BACKEND");
    if (stand_ins) {
        skip ("a rank that is there and calls nothing",
              "8 s; tests/runtime has it");
    } else {
        world_run (2, 0, absent, NULL, 120, s);
        ok (s[0] == 0,
            "a rank that is there and calls nothing is named (0x%x)",
            (unsigned)s[0]);
    }
    unsetenv ("FAKE_NCCL");
}

static void one_rank (void)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *w =
        slurmdl_comm_open (&(struct slurmdl_comm_options){ .size = 1 }, &err);
    const struct comm_backend *b = w ? comm_backend_load ("nccl", &err) : NULL;
    void *self = NULL;
    double t = monotonic ();

    if (!ok (b && find_cuda (), "the module is loaded %s", err.text)
        || !ok (b->probe (&err) == 0, "there is a GPU %s", err.text)
        || !ok (b->open (w->mesh, &self, &err) == 0,
                "a communicator of one rank %s",
                err.text))
        return;
    figure ("nccl.open-one-rank", monotonic () - t, "s");
    reductions (b, self, 100003);
    copies (b, self, 1000003);
    speed (b, self, (size_t)(stand_ins ? 1 : 256) << 20);
    in_a_stream (b, self, (size_t)(stand_ins ? 1 : 64) << 20);
    queue (b, self);
    t = monotonic ();
    b->close (self);
    ok (true, "it is closed in %.2f s", monotonic () - t);
    mesh_set_timeout (w->mesh, 2);
    if (ok (b->open (w->mesh, &self, &err) == 0,
            "and opened again %s",
            err.text))
        late_stream (w, b, self);
    if (self)
        b->close (self);
    rank_that_does_not_come (w, b);
}

/* Argument "alone": no worlds of two, which say the same with each NCCL. */
int main (int argc, char **argv)
{
    const char *value = getenv ("DL_GPU_STAND_INS");

    stand_ins = value && !strcmp (value, "1");
    setvbuf (stdout, NULL, _IOLBF, 0);
    alarm (200);
    if (argc < 2 || strcmp (argv[1], "alone"))
        worlds ();
    one_rank ();
    printf ("1..%d\n", count);
    fflush (stdout);
    _exit (failed ? 1 : 0); /* what CUDA still has to do is not waited for */
}
