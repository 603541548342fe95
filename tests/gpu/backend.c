/* SPDX-License-Identifier: Apache-2.0 */
/* Test slurmdl-nccl.so with one rank on a GPU or a fake GPU; prints TAP. */
#include "runtime/base/clock.h"

#include "runtime/base/device_memory.h"
#include "runtime/comm/api/comm.h"
#include "tests/gpu/device.h"
#include "tests/gpu/worlds.h"
#include "tests/runtime/comm/numbers.h"

static bool stand_ins;

/* ---- collectives: with one rank, the output equals the input ---- */

static const char *const op_names[] = { "sum", "average", "min", "max", "product" };

/* Fill with zeros, ones and twos, which are exact in every type. */
static void fill (unsigned char *to, size_t n, enum slurmdl_type type, unsigned salt)
{
    for (size_t i = 0; i < n; i++) {
        double v = (double)((i * 7 + salt) % (type == SLURMDL_BOOL ? 2 : 3));
        put_complex (to, i, type, v, 1);
    }
}

static void one_collective (const struct comm_backend *b, void *self, struct collective how,
                            size_t bytes, const unsigned char *data, const char *name)
{
    struct slurmdl_error err = { "" };
    void *in = cuda_copy_of (data, bytes);
    void *out = how.what == COMM_BROADCAST ? in : cuda_copy_of (NULL, bytes);
    int rv;

    how.in = in;
    how.out = out;
    rv = b->run (self, &how, &err);
    tap_ok (rv == 0 && cuda_has (name, out, data, bytes), "%s%s%s", name, *err.text ? ": " : "",
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
            static const enum collective_kind kinds[] = { COMM_ALLREDUCE, COMM_REDUCE,
                                                          COMM_REDUCE_SCATTER };
            static const char *const names[] = { "all-reduce", "reduction", "reduce-scatter" };
            if (!reduce_defined (t, op) || !b->takes (self, t, op))
                continue;
            fill (data, n, t, (unsigned)op);
            for (int k = 0; k < 3; k++) {
                char name[96];
                snprintf (name, sizeof (name), "%s, %s, %s", names[k], slurmdl_type_name (t),
                          op_names[op]);
                one_collective (b, self,
                                (struct collective){
                                    .what = kinds[k], .type = t, .op = op, .n = n, .counts = &n },
                                n * slurmdl_type_size (t), data, name);
            }
        }
    free (data);
}

static void copies (const struct comm_backend *b, void *self, size_t n)
{
    unsigned char *data = malloc (n);
    struct slurmdl_error err = { "" };

    fill (data, n, SLURMDL_U8, 1);
    one_collective (b, self, (struct collective){ .what = COMM_ALLGATHER, .counts = &n }, n, data,
                    "all-gather");
    one_collective (b, self, (struct collective){ .what = COMM_BROADCAST, .n = n }, n, data,
                    "broadcast");
    one_collective (b, self, (struct collective){ .what = COMM_ALLTOALL, .counts = &n, .from = &n },
                    n, data, "all-to-all");
    tap_ok (b->run (self, &(struct collective){ .what = COMM_BARRIER }, &err) == 0, "barrier%s%s",
            *err.text ? ": " : "", err.text);
    free (data);
}

static void speed (const struct comm_backend *b, void *self, size_t n)
{
    struct collective how = { .what = COMM_ALLREDUCE, .type = SLURMDL_F32, .n = n / 4 };
    void *in = cuda_copy_of (NULL, n), *out = cuda_copy_of (NULL, n);
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
    if (tap_ok (!*err.text, "all-reduces of %zu MiB %s", n >> 20, err.text))
        tap_figure ("nccl.allreduce-one-rank", (double)n / t / 1e9, "GB/s");
    how.n = 1;
    t = monotonic ();
    for (int i = 0; i < 1000 && b->run (self, &how, &err) == 0; i++)
        continue;
    t = monotonic () - t;
    if (tap_ok (!*err.text, "1,000 all-reduces of 4 bytes %s", err.text))
        tap_figure ("nccl.allreduce-4-bytes", t * 1e3, "us");
    cuda.free (in);
    cuda.free (out);
}

/* ---- streams ---- */

/* A stream is busy for a while and then writes the input.  The call must return before that, and
 * the collective must run after it.
 */
static void in_a_stream (const struct comm_backend *b, void *self, size_t n)
{
    struct slurmdl_error err = { "" };
    unsigned char *data = malloc (n);
    void *late = cuda_copy_of (NULL, n), *in = cuda_copy_of (NULL, n);
    void *out = cuda_copy_of (NULL, n), *end = cuda_copy_of (NULL, n);
    struct collective how = {
        .what = COMM_ALLREDUCE, .type = SLURMDL_F32, .n = n / 4, .in = in, .out = out
    };
    bool is_busy, good;
    void *stream;
    double t;
    int rv;

    fill (data, n / 4, SLURMDL_F32, 2);
    cuda_need (cuda.copy (late, data, n, TO_DEVICE), "cudaMemcpy");
    cuda_need (cuda.stream (&stream, NON_BLOCKING), "cudaStreamCreateWithFlags");
    tap_ok (b->stream (self, stream) == 0, "a stream of the caller's is taken");
    for (int i = 0; i < (stand_ins ? 3 : 300); i++)
        cuda.copy_later (in, end, n, ON_DEVICE, stream);
    cuda.copy_later (in, late, n, ON_DEVICE, stream);
    t = monotonic ();
    rv = b->run (self, &how, &err);
    t = monotonic () - t;
    is_busy = cuda.query (stream) != 0;
    cuda.copy_later (end, out, n, ON_DEVICE, stream);
    cuda_need (cuda.finish (stream), "cudaStreamSynchronize");
    good = tap_ok (rv == 0, "an all-reduce in a busy stream %s", err.text);
    if (stand_ins)
        tap_skip ("the call returns before the stream has come to it",
                  "the stand-in's streams run when they are asked");
    else
        tap_ok (is_busy, "the call returns before the stream has come to it");
    good &= tap_ok (cuda_has ("in a stream", out, data, n),
                    "it has reduced what the stream had written before");
    good &= tap_ok (cuda_has ("after it", end, data, n),
                    "what the stream does after it sees the result");
    if (good)
        tap_figure ("nccl.queue-a-collective", t * 1e6, "us");
    b->stream (self, NULL);
    cuda.free (late);
    cuda.free (in);
    cuda.free (out);
    cuda.free (end);
    free (data);
}

/* ---- the queue of named tensors ---- */

enum { PIECES = 1000 };

static bool queue_round (const struct comm_backend *b, void *self, struct comm_copy *list,
                         const struct memory_mark *m, struct slurmdl_error *err)
{
    const struct comm_queue *q = b->queue;
    size_t n = list[0].n * PIECES;
    struct collective how = { .what = COMM_ALLREDUCE, .type = SLURMDL_F32, .n = n / 4 };
    struct comm_copy back[PIECES];
    char *room = NULL;
    bool good = q->begin (self, err) == 0;

    good = good && (!m || q->after (self, m, err) == 0) && (room = q->room (self, 0, n, err));
    for (int i = 0; good && i < PIECES; i++) {
        back[i] = (struct comm_copy){ list[i].to, room + i * list[i].n, list[i].n };
        list[i].to = room + i * list[i].n;
    }
    good = good && q->copy (self, list, PIECES, err) == 0;
    if (good) {
        how.in = how.out = room;
        q->factor (self, 0.5);
        good = b->run (self, &how, err) == 0 && q->copy (self, back, PIECES, err) == 0;
    }
    return q->end (self, err) == 0 && good;
}

static void queue (const struct comm_backend *b, void *self)
{
    struct slurmdl_error err = { "" };
    size_t each = 4096, n = each * PIECES;
    float *data = malloc (n);
    char *in = cuda_copy_of (NULL, n), *out = cuda_copy_of (NULL, n);
    const struct memory_ops *ops = memory_ops_of (in);
    struct memory_mark *m;
    struct comm_copy list[PIECES];
    double t = 0;
    bool good = true;

    for (size_t i = 0; i < n / 4; i++)
        data[i] = (float)(i % 1000) * 2;
    cuda_need (cuda.copy (in, data, n, TO_DEVICE), "cudaMemcpy");
    if (!tap_ok (ops && ops->mark, "slurmdl-cuda.so knows the device's memory"))
        return;
    m = ops->mark (in, NULL);
    for (int round = 0; good && round < 3; round++) {
        for (size_t i = 0; i < PIECES; i++)
            list[i] = (struct comm_copy){ out + i * each, i == 7 ? NULL : in + i * each, each };
        t = monotonic ();
        good = queue_round (b, self, list, m, &err);
    }
    t = monotonic () - t;
    tap_ok (m && ops->state (m) == MARK_PASSED, "the mark of the default stream has passed");
    for (size_t i = 0; i < n / 4; i++)
        data[i] = i / (each / 4) == 7 ? 0 : data[i] / 2;
    if (tap_ok (good && cuda_has ("queue", out, data, n),
                "1,000 pieces are put together, halved and taken apart %s", err.text))
        tap_figure ("nccl.queue-1000-pieces-of-4-KiB", t * 1e3, "ms");
    if (m)
        ops->unmark (m);
    cuda.free (in);
    cuda.free (out);
    free (data);
}

/* ---- timeouts ---- */

static void wait_long (void *seconds)
{
    sleep (*(unsigned *)seconds);
}

/* Keep the default stream busy for longer than the timeout.  This ends the communicator, so it must
 * run last.
 */
static void late_stream (struct slurmdl_comm *w, const struct comm_backend *b, void *self)
{
    static unsigned seconds = 6;
    struct slurmdl_error err = { "" };
    /* with one rank, NCCL does nothing if 'in' equals 'out' */
    void *x = cuda_copy_of (NULL, 4), *y = cuda_copy_of (NULL, 4);
    struct collective how = {
        .what = COMM_ALLREDUCE, .type = SLURMDL_F32, .n = 1, .in = x, .out = y
    };
    bool timed_out;
    double t;
    int rv;

    (void)w;
    if (!cuda.call_host) {
        tap_skip ("a collective behind a stream that hangs", "no cudaLaunchHostFunc");
        return;
    }
    cuda_need (cuda.call_host (NULL, wait_long, &seconds), "cudaLaunchHostFunc");
    errno = 0;
    t = monotonic ();
    rv = b->run (self, &how, &err);
    t = monotonic () - t;
    timed_out =
        tap_ok (rv < 0 && errno == ETIMEDOUT && strstr (err.text, "for an all-reduce"),
                "a collective behind a stream that hangs: %d, %s (errno %d)", rv, err.text, errno);
    if (tap_ok (t > 1.9 && t < 30, "and it ends after %.1f s, with a time-out of 2 s", t)
        && timed_out)
        tap_figure ("nccl.time-out-of-2-s", t, "s");
    tap_ok (timed_out && b->run (self, &how, &err) < 0 && errno == ENOTCONN,
            "the next call says so: %s", err.text);
}

/* A world of two ranks; rank 1 pretends to be on another GPU, but never joins. */
static long two (const struct mesh *m)
{
    (void)m;
    return 2;
}

static int gather_alone (struct mesh *m, const void *mine, size_t bytes, void *all,
                         struct slurmdl_error *err)
{
    (void)m;
    (void)err;
    memcpy (all, mine, bytes);
    memcpy ((char *)all + bytes, mine, bytes);
    *((char *)all + bytes) ^= 1; /* another bus ID */
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

static void rank_that_does_not_come (struct slurmdl_comm *w, const struct comm_backend *b)
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
    timed_out = tap_ok (rv < 0 && errno == ETIMEDOUT
                            && strstr (err.text, "for the ranks of a communicator"),
                        "a rank that does not come: %s (errno %d)", err.text, errno);
    if (tap_ok (t > 1.9 && t < 30, "and it ends after %.1f s, with a time-out of 2 s", t)
        && timed_out)
        tap_figure ("nccl.absent-rank-time-out-of-2-s", t, "s");
}

static void one_rank (void)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *w = slurmdl_comm_open (&(struct slurmdl_comm_options){ .size = 1 }, &err);
    const struct comm_backend *b = w ? comm_backend_load ("nccl", &err) : NULL;
    void *self = NULL;
    double t = monotonic ();

    if (!tap_ok (b && cuda_find (), "the module is loaded %s", err.text)
        || !tap_ok (b->probe (&err) == 0, "there is a GPU %s", err.text)
        || !tap_ok (b->open (w->mesh, &self, &err) == 0, "a communicator of one rank %s", err.text))
        return;
    tap_figure ("nccl.open-one-rank", monotonic () - t, "s");
    reductions (b, self, 100003);
    copies (b, self, 1000003);
    speed (b, self, (size_t)(stand_ins ? 1 : 256) << 20);
    in_a_stream (b, self, (size_t)(stand_ins ? 1 : 64) << 20);
    queue (b, self);
    t = monotonic ();
    b->close (self);
    tap_ok (true, "it is closed in %.2f s", monotonic () - t);
    mesh_set_timeout (w->mesh, 2);
    if (tap_ok (b->open (w->mesh, &self, &err) == 0, "and opened again %s", err.text))
        late_stream (w, b, self);
    if (self)
        b->close (self);
    rank_that_does_not_come (w, b);
}

/* The argument "alone" skips the cases with two ranks, which do not depend on the NCCL version. */
int main (int argc, char **argv)
{
    const char *value = getenv ("DL_GPU_STAND_INS");

    stand_ins = value && !strcmp (value, "1");
    setvbuf (stdout, NULL, _IOLBF, 0);
    alarm (200);
    if (argc < 2 || strcmp (argv[1], "alone"))
        two_ranks (stand_ins);
    one_rank ();
    _exit (tap_end ()); /* do not wait for pending CUDA work */
}
