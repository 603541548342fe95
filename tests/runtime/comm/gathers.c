/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors other than all-reduces: all-gathers of rows, broadcasts, and
 * reduce-scatters.
 */
#include "tests/runtime/comm/named.h"
#include "tests/unit.h"

/* ---- ragged all-gathers, several at once ---- */

static int gather (struct slurmdl_comm *c, int round)
{
    enum { N = 5 };
    struct slurmdl_error err = { "" };
    long rank = slurmdl_comm_rank (c);
    size_t counts[4];
    int64_t mine[N][40], t[N];
    char name[8];

    for (int i = 0; i < N; i++) {
        struct slurmdl_request r = { .name = name,
                                     .what = SLURMDL_ALLGATHER,
                                     .type = SLURMDL_I64,
                                     .row = 2,
                                     .n = 2 * (size_t)(rank + i * round),
                                     .in = mine[i] };
        for (size_t j = 0; j < r.n; j++)
            mine[i][j] = rank * 1000 + (int64_t)j;
        snprintf (name, sizeof (name), "g%d", i);
        CHECK (c, (t[i] = slurmdl_submit (c, &r, &err)) > 0);
    }
    for (int i = 0; i < N; i++) {
        int64_t *all, *at;
        size_t n;
        CHECK (c, slurmdl_take (c, t[i], (void **)&all, &n, counts, &err) == 0);
        at = all;
        for (long r = 0; r < slurmdl_comm_size (c); r++) {
            CHECK (c, counts[r] == 2 * (size_t)(r + i * round));
            for (size_t j = 0; j < counts[r]; j++)
                CHECK (c, *at++ == r * 1000 + (int64_t)j);
        }
        CHECK (c, (size_t)(at - all) == n);
        free (all);
    }
    return 0;
}

static int ragged (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_comm_stats s;

    for (int round = 0; round < 6; round++)
        if (gather (c, round / 2))
            return 1;
    slurmdl_comm_stats (c, &s);
    /* "g0" never changes; the others change in every other round */
    CHECK (c, s.hits >= 5 + 4 + 5 && s.hits <= 25);
    return 0;
}

CASE (test_ragged)
{
    assert_int_equal (world_run (4, 0, ragged, NULL, 300, NULL), 0);
    assert_int_equal (world_run (3, 1, ragged, NULL, 300, NULL), 0);
}

/* Rows of zero width are counted, even if fused with others; all ranks must
 * have the same width.
 */
static int zero_width (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    size_t rank = (size_t)slurmdl_comm_rank (c);
    float mine[2] = { (float)rank, 7 };
    struct slurmdl_request r = {
        .name = "wide", .what = SLURMDL_ALLGATHER, .type = SLURMDL_F32, .n = 2, .row = 2, .in = mine
    };
    struct slurmdl_request none = {
        .name = "none", .what = SLURMDL_ALLGATHER, .type = SLURMDL_F32, .row = SLURMDL_ZERO_WIDTH
    };
    size_t n, counts[3];
    int64_t t, u;
    float *all;

    for (int round = 0; round < 3; round++) {
        none.n = 1000000 * rank;
        CHECK (c, (t = slurmdl_submit (c, &none, &err)) > 0);
        CHECK (c, (u = slurmdl_submit (c, &r, &err)) > 0);
        CHECK (c, slurmdl_take (c, t, (void **)&all, &n, counts, &err) == 0);
        CHECK (c, n == 3000000 && counts[0] == 0 && counts[2] == 2000000);
        free (all);
        CHECK (c, slurmdl_take (c, u, (void **)&all, &n, counts, &err) == 0);
        CHECK (c, n == 6 && all[4] == 2 && all[5] == 7);
        free (all);
    }
    none.row = rank ? SLURMDL_ZERO_WIDTH : 1;
    none.n = rank;
    none.name = "unlike";
    CHECK (c, (t = slurmdl_submit (c, &none, &err)) > 0);
    CHECK (c, slurmdl_take (c, t, (void **)&all, &n, counts, &err) < 0);
    CHECK (c, errno == EPROTO && strstr (err.text, "rows of 0 f32"));
    none.row = SLURMDL_ZERO_WIDTH;
    none.what = SLURMDL_REDUCE_SCATTER;
    CHECK (c, slurmdl_submit (c, &none, &err) < 0 && errno == EINVAL);
    return 0;
}

WORLD_CASE (test_zero_width, 3, 0, zero_width)

/* ---- broadcasts of initial state, and parts for sharded optimizers ---- */

static int broadcasts (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    long rank = slurmdl_comm_rank (c);
    float x[20][50];
    char name[16];

    for (int i = 0; i < 20; i++) {
        struct slurmdl_request r = { .name = name,
                                     .what = SLURMDL_BROADCAST,
                                     .type = SLURMDL_F32,
                                     .n = (size_t)(50 - i),
                                     .root = i % 2,
                                     .out = x[i] };
        for (int j = 0; j < 50; j++)
            x[i][j] = rank == i % 2 ? (float)(i + j) : -1;
        snprintf (name, sizeof (name), "w%d", i);
        CHECK (c, slurmdl_submit (c, &r, &err) > 0);
    }
    CHECK (c, slurmdl_wait (c, 0, &err) == 0);
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 50 - i; j++)
            CHECK (c, x[i][j] == (float)(i + j));
    return 0;
}

static int scatters (struct slurmdl_comm *c, void *arg)
{
    struct slurmdl_error err = { "" };
    size_t rank = (size_t)slurmdl_comm_rank (c);
    size_t size = (size_t)slurmdl_comm_size (c);
    int64_t t[8];
    double in[8][120];
    char name[16];

    for (size_t i = 0; i < 8; i++) {
        size_t row = 1 + i % 3;
        struct slurmdl_request r = { .name = name,
                                     .what = SLURMDL_REDUCE_SCATTER,
                                     .type = SLURMDL_F64,
                                     .op = SLURMDL_AVERAGE,
                                     .n = 5 * i * row,
                                     .row = row,
                                     .in = in[i],
                                     .prescale = 4,
                                     .postscale = 0.5 };
        for (size_t j = 0; j < r.n; j++)
            in[i][j] = (double)(j * (rank + 1));
        snprintf (name, sizeof (name), "s%zu", i);
        CHECK (c, (t[i] = slurmdl_submit (c, &r, &err)) > 0);
    }
    for (size_t i = 0; i < 8; i++) {
        size_t n = 5 * i, row = 1 + i % 3, got;
        size_t more = rank < n % size ? rank : n % size;
        size_t begin = (rank * (n / size) + more) * row;
        double *part;
        CHECK (c, slurmdl_take (c, t[i], (void **)&part, &got, NULL, &err) == 0);
        CHECK (c, got == (n / size + (rank < n % size)) * row);
        for (size_t j = 0; j < got; j++)
            CHECK (c, fabs (part[j] - (double)((begin + j) * (size + 1))) < 1e-9);
        free (part);
    }
    return 0;
}

CASE (test_state_and_parts)
{
    assert_int_equal (world_run (3, 2, broadcasts, NULL, 300, NULL), 0);
    assert_int_equal (world_run (4, 2, scatters, NULL, 300, NULL), 0);
}

RUN_CASES ()
