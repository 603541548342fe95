/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors, submitted in any order, give the serial sum. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "runtime/comm/engine/control.h"
#include "tests/runtime/comm/named.h"
#include "tests/unit.h"

enum { TENSORS = 300, TYPES = SLURMDL_F8_E5M2 + 1 };

/* ---- the values of tensor i on rank r: 0 or 1, so that sums are exact ---- */

static int value (int i, size_t j, long r)
{
    return (int)((j * 5 + (size_t)i * 3 + (size_t)r * (j % 7 + 1)) >> 1 & 1);
}

static size_t elements (int i)
{
    static const size_t sizes[] = { 0, 1, 7, 100, 1000, 4097, 33, 12000 };
    uint32_t state = (uint32_t)i * 2654435761u + 1;

    if (i % 75 == 74)
        return (4 << 20) / 16;
    return sizes[draw (&state) % 8] + draw (&state) % 3;
}

static enum slurmdl_type type_of (int i)
{
    return (enum slurmdl_type) (i % TYPES);
}

static enum slurmdl_op op_of (int i)
{
    return type_of (i) == SLURMDL_BOOL ? SLURMDL_MAX : SLURMDL_SUM;
}

struct held {
    void *in, *out;
    int64_t ticket;
};

static void fill (struct held *h, int i, long rank)
{
    size_t n = elements (i);
    size_t size = slurmdl_type_size (type_of (i));

    h->in = malloc (n * size + 1);
    h->out = malloc (n * size + 1);
    for (size_t j = 0; j < n; j++)
        put_number (h->in, j, type_of (i), value (i, j, rank));
}

static bool is_right (const struct held *h, int i, long size)
{
    size_t each = slurmdl_type_size (type_of (i));
    char want[16];

    for (size_t j = 0; j < elements (i); j++) {
        int sum = 0;
        for (long r = 0; r < size; r++)
            sum += value (i, j, r);
        put_number (want, 0, type_of (i), op_of (i) == SLURMDL_MAX ? sum > 0 : sum);
        if (memcmp (want, (char *)h->out + j * each, each))
            return false;
    }
    return true;
}

static int64_t submit_one (struct slurmdl_comm *c, struct held *h, int i, struct slurmdl_error *err)
{
    char name[32];
    struct slurmdl_request r = { .name = name,
                                 .what = SLURMDL_ALLREDUCE,
                                 .type = type_of (i),
                                 .op = op_of (i),
                                 .n = elements (i),
                                 .in = h->in,
                                 .out = h->out };

    snprintf (name, sizeof (name), "layer%d.weight", i);
    return h->ticket = slurmdl_submit (c, &r, err);
}

static void shuffle (int *order, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(draw (&seed) % (uint32_t)(i + 1));
        int x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
}

static int all_orders (struct slurmdl_comm *c, void *arg)
{
    struct held *h = calloc (TENSORS, sizeof (*h));
    struct slurmdl_error err = { "" };
    struct slurmdl_comm_stats s;
    long rank = slurmdl_comm_rank (c);
    int order[TENSORS];

    for (int i = 0; i < TENSORS; i++)
        fill (&h[i], i, rank);
    for (uint32_t round = 0; round < 3; round++) {
        shuffle (order, TENSORS, (uint32_t)rank * 77 + round + 1);
        for (int i = 0; i < TENSORS; i++)
            memset (h[i].out, 0xff, 1);
        for (int i = 0; i < TENSORS; i++)
            CHECK (c, submit_one (c, &h[order[i]], order[i], &err) > 0);
        if (round == 1)
            CHECK (c, slurmdl_wait (c, 0, &err) == 0);
        for (int i = 0; round != 1 && i < TENSORS; i++)
            CHECK (c, slurmdl_wait (c, h[i].ticket, &err) == 0);
        for (int i = 0; i < TENSORS; i++)
            CHECK (c, is_right (&h[i], i, slurmdl_comm_size (c)));
    }
    slurmdl_comm_stats (c, &s);
    CHECK (c, s.negotiated == TENSORS && s.hits == 2 * TENSORS);
    CHECK (c, s.tensors == 3 * TENSORS && s.fused < s.tensors);
    for (int i = 0; i < TENSORS; i++) {
        free (h[i].in);
        free (h[i].out);
    }
    free (h);
    return 0;
}

CASE (test_orders)
{
    assert_int_equal (world_run (1, 0, all_orders, NULL, 300, NULL), 0);
    assert_int_equal (world_run (4, 0, all_orders, NULL, 300, NULL), 0);
    assert_int_equal (world_run (3, 1, all_orders, NULL, 300, NULL), 0);
}

/* A chain, in which ranks relay messages for others. */
CASE (test_chain)
{
    setenv ("DL_COMM_FAN", "1", 1);
    assert_int_equal (world_run (5, 2, all_orders, NULL, 300, NULL), 0);
    unsetenv ("DL_COMM_FAN");
}

/* ---- threads, with direct collectives at the same time ---- */

struct submitter {
    struct slurmdl_comm *c;
    struct held *h;
    int from, to;
    int failed;
};

static void *submit_some (void *arg)
{
    struct submitter *s = arg;
    struct slurmdl_error err = { "" };

    for (int i = s->from; i < s->to; i++)
        s->failed |= submit_one (s->c, &s->h[i], i, &err) < 0;
    for (int i = s->from; i < s->to; i++)
        s->failed |= slurmdl_wait (s->c, s->h[i].ticket, &err) < 0;
    return NULL;
}

static int in_threads (struct slurmdl_comm *c, void *arg)
{
    enum { THREADS = 4, EACH = 30 };
    struct held h[THREADS * EACH];
    struct submitter s[THREADS];
    pthread_t threads[THREADS];
    struct slurmdl_error err = { "" };
    float x[1000];

    for (int i = 0; i < THREADS * EACH; i++)
        fill (&h[i], i, slurmdl_comm_rank (c));
    for (int i = 0; i < THREADS; i++) {
        s[i] = (struct submitter){ c, h, i * EACH, (i + 1) * EACH, 0 };
        pthread_create (&threads[i], NULL, submit_some, &s[i]);
    }
    for (int k = 0; k < 50; k++) {
        for (int j = 0; j < 1000; j++)
            x[j] = 1;
        CHECK (c, slurmdl_allreduce (c, x, x, 1000, SLURMDL_F32, SLURMDL_SUM, &err) == 0);
        CHECK (c, x[999] == (float)slurmdl_comm_size (c));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join (threads[i], NULL);
        CHECK (c, !s[i].failed);
    }
    for (int i = 0; i < THREADS * EACH; i++) {
        CHECK (c, is_right (&h[i], i, slurmdl_comm_size (c)));
        free (h[i].in);
        free (h[i].out);
    }
    return 0;
}

WORLD_CASE (test_threads, 3, 2, in_threads)

/* ---- groups: no tensor is reduced before all are submitted ---- */

static int64_t submit_member (struct slurmdl_comm *c, const char *name, float *x,
                              struct slurmdl_error *err)
{
    struct slurmdl_request r = { .name = name,
                                 .type = SLURMDL_F32,
                                 .op = SLURMDL_AVERAGE,
                                 .n = 1,
                                 .in = x,
                                 .out = x,
                                 .group = "block",
                                 .members = 3 };

    return slurmdl_submit (c, &r, err);
}

static int in_groups (struct slurmdl_comm *c, void *arg)
{
    static const char *const names[] = { "a", "b", "c" };
    struct slurmdl_error err = { "" };
    float x[3] = { 1, 2, 3 };
    int64_t t[3];
    long rank = slurmdl_comm_rank (c);

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++)
            t[i] = submit_member (c, names[(i + rank) % 3], &x[i], &err);
        CHECK (c, t[0] > 0 && t[1] > 0);
        CHECK (c, slurmdl_barrier (c, &err) == 0);
        nap (0.05);
        CHECK (c, !slurmdl_done (c, t[0]) && !slurmdl_done (c, t[1]));
        CHECK (c, slurmdl_barrier (c, &err) == 0);
        t[2] = submit_member (c, names[(2 + rank) % 3], &x[2], &err);
        CHECK (c, slurmdl_wait (c, 0, &err) == 0);
    }
    return 0;
}

WORLD_CASE (test_groups, 3, 0, in_groups)

/* ---- join: rank r has 2 * r + 1 steps ---- */

static int uneven (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    long rank = slurmdl_comm_rank (c);
    long size = slurmdl_comm_size (c);
    long last = -1;

    for (int epoch = 0; epoch < 2; epoch++) {
        for (long step = 0; step < 2 * rank + 1; step++) {
            float x = 1, y[3] = { 2, 2, 2 };
            long active = size - (step + 1) / 2;
            CHECK (c, sum_floats (c, "x", &x, 1, &err) > 0);
            CHECK (c, sum_floats (c, "y", y, 3, &err) > 0);
            CHECK (c, slurmdl_wait (c, 0, &err) == 0);
            CHECK (c, x == (float)active && y[2] == 2 * (float)active);
        }
        CHECK (c, slurmdl_join (c, &last, &err) == 0);
        CHECK (c, last == size - 1);
    }
    return 0;
}

/* A rank that has joined contributes no rows, and a minimum over it fails. */
static int joined_rows (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_request r = {
        .name = "rows", .what = SLURMDL_ALLGATHER, .type = SLURMDL_I32, .n = 2
    };
    int32_t mine[2] = { 5, 6 };
    float x = 1;
    int32_t *all;
    size_t n, counts[3];

    r.in = mine;
    for (int round = 0; round < 3; round++) {
        size_t want = round ? 4 : 6;
        if (round == 1 && slurmdl_comm_rank (c) == 1)
            break;
        CHECK (c, slurmdl_take (c, slurmdl_submit (c, &r, &err), (void **)&all, &n, counts, &err)
                      == 0);
        CHECK (c, n == want && counts[1] == want - 4 && all[n - 1] == 6);
        free (all);
    }
    if (slurmdl_comm_rank (c) != 1) {
        r = (struct slurmdl_request){
            .name = "least", .type = SLURMDL_F32, .op = SLURMDL_MIN, .n = 1, .in = &x, .out = &x
        };
        CHECK (c, slurmdl_wait (c, slurmdl_submit (c, &r, &err), &err) < 0);
        CHECK (c, errno == EPROTO);
    }
    *err.text = '\0';
    CHECK (c, slurmdl_join (c, NULL, &err) == 0);
    return 0;
}

/* A rank that waits for others to join is told if one of them dies. */
static int one_dies (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };

    CHECK (c, slurmdl_join (c, NULL, &err) == 0);
    if (slurmdl_comm_rank (c) == 1) {
        usleep (200000); /* by then the others are usually in the call */
        _exit (7);
    }
    CHECK (c, slurmdl_join (c, NULL, &err) < 0 && *err.text);
    return 0;
}

CASE (test_join)
{
    int status[3];

    assert_int_equal (world_run (3, 0, one_dies, NULL, 300, status), 1);
    assert_int_equal (WEXITSTATUS (status[1]), 7);
    assert_int_equal (world_run (4, 2, uneven, NULL, 300, NULL), 0);
    assert_int_equal (world_run (3, 0, joined_rows, NULL, 300, NULL), 0);
}

/* ---- engines of subcommunicators, together with the world's ---- */

static int in_parts (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    long rank = slurmdl_comm_rank (c);
    struct slurmdl_comm *part = slurmdl_comm_split (c, rank % 2, -rank, &err);

    CHECK (c, part);
    for (int step = 0; step < 20; step++) {
        float x = (float)rank, y = (float)rank;
        int64_t tx = sum_floats (part, "same name", &x, 1, &err);
        int64_t ty = sum_floats (c, "same name", &y, 1, &err);
        CHECK (c, slurmdl_wait (c, ty, &err) == 0);
        CHECK (c, slurmdl_wait (part, tx, &err) == 0);
        CHECK (c, y == 10 && x == (rank % 2 ? 4 : 6));
    }
    CHECK (c, slurmdl_comm_close (part, NULL) == 0);
    return 0;
}

WORLD_CASE (test_parts, 5, 0, in_parts)

/* ---- all ranks round alike, whatever is fused ---- */

static int same_bits (struct slurmdl_comm *c, void *arg)
{
    enum { N = 30, LEN = 999 };
    static float x[N][LEN], all[5][N][LEN];
    struct slurmdl_error err = { "" };
    uint32_t seed = (uint32_t)slurmdl_comm_rank (c) + 17;
    char name[16];

    for (int i = 0; i < N; i++)
        for (int j = 0; j < LEN; j++)
            x[i][j] = (float)draw (&seed) * 1e-7f;
    for (int i = 0; i < N; i++) {
        snprintf (name, sizeof (name), "t%d", i);
        CHECK (c, sum_floats (c, name, x[i], LEN, &err) > 0);
        if (i % 10 == (int)(seed % 10))
            nap (0.003);
    }
    CHECK (c, slurmdl_wait (c, 0, &err) == 0);
    CHECK (c, slurmdl_allgather (c, x, sizeof (x), all, NULL, &err) == 0);
    for (long r = 0; r < slurmdl_comm_size (c); r++)
        CHECK (c, memcmp (all[r], x, sizeof (x)) == 0);
    return 0;
}

WORLD_CASE (test_same_bits, 5, 2, same_bits)

/* ---- packets between the engine's threads ---- */

static struct connection opened (int fd, unsigned char out, unsigned char in)
{
    unsigned char keys[2][SEAL_KEY] = { { out }, { in } };
    struct connection w = { .fd = -1 };

    assert_int_equal (connection_open (&w, fd, seal_create (keys[0], keys[1], false)), 0);
    return w;
}

/* Send three packets, the first before the connection is open, and alter byte
 * 'flip' on the way; returns how many arrive.
 */
static int come_through (size_t flip)
{
    static const unsigned char one[SEAL_KEY] = { 1 }, two[SEAL_KEY] = { 2 };
    struct connection to, from = { .fd = -1 };
    struct packet p = { .data = (unsigned char *)"hello", .n = 5 };
    char bytes[1000];
    int n = 0, in[2], out[2];
    ssize_t all;

    assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM, 0, in), 0);
    assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM, 0, out), 0);
    connection_expect (&from);
    assert_int_equal (connection_send (&from, &p), 0);
    assert_int_equal (connection_open (&from, in[0], seal_create (one, two, false)), 0);
    assert_int_equal (connection_send (&from, &p), 0);
    assert_int_equal (connection_send (&from, &p), 0);
    all = recv (in[1], bytes, sizeof (bytes), 0);
    assert_int_equal (all, 3 * (4 + 5 + 2 * SEAL_TAG));
    if (flip < sizeof (bytes))
        bytes[flip] ^= 1;
    assert_int_equal (send (out[0], bytes, (size_t)all, 0), all);
    to = opened (out[1], 2, 1);
    assert_int_equal (connection_read (&to), 0);
    while (connection_take (&to, &p)) {
        assert_int_equal (p.n, 5);
        assert_memory_equal (p.data, "hello", 5);
        n++;
    }
    assert_int_equal (to.altered, flip < sizeof (bytes));
    connection_close (&to);
    connection_close (&from);
    close (in[1]);
    close (out[0]);
    return n;
}

CASE (test_altered)
{
    const int packet = 4 + 5 + 2 * SEAL_TAG;

    assert_int_equal (come_through (SIZE_MAX), 3);
    for (int i = 0; i < 3 * packet; i++)
        assert_int_equal (come_through ((size_t)i), i / packet);
}

RUN_CASES ()
