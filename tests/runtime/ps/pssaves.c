/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers and workers: what is saved, and restored by others. */
#include "runtime/ps/snapshot.h"
#include "tests/ranks.h"
#include "tests/runtime/ps/psgroup.h"
#include "tests/unit.h"

/* All end, and others go on from the save of the last iteration. */
static void all_go_on_from_a_save (void **state)
{
    struct train t = { SLURMDL_PS_ADAGRAD, BIG, 5, 0 };

    options.save_every = 100;
    run_group (train, &t);
    t.until = 9;
    run_group (train, &t);
    check_values (&t);
}

enum { IDS = 200, ROW = 3 };

static void train_rows (struct slurmdl_ps *ps, void *arg)
{
    const struct train *t = arg;
    struct slurmdl_ps_table s = table_of (t);
    uint64_t ids[IDS];
    float g[IDS * ROW];
    float v[IDS * ROW];
    int e;

    s.name = "e";
    s.n = 0;
    s.row = ROW;
    s.high = 1;
    e = slurmdl_ps_table (ps, &s, NULL, NULL);
    for (uint64_t i = 0; i < IDS; i++)
        ids[i] = i * i;
    for (int64_t k = slurmdl_ps_iteration (ps); k < t->until; k++) {
        /* not the same rows each time: each has its own time */
        size_t n = (size_t)(IDS - 20 * (k % 3));
        for (uint64_t i = 0; i < n * ROW; i++)
            g[i] = gradient (slurmdl_ps_index (ps), k, i);
        NEED (slurmdl_ps_push_rows (ps, e, ids, n, g, NULL, NULL) == 0);
        NEED (slurmdl_ps_clock (ps, NULL) == 0);
    }
    NEED (slurmdl_ps_pull_rows (ps, e, ids, IDS, v, NULL, NULL) == 0);
    if (slurmdl_ps_index (ps) == 0)
        memcpy (board->values, v, sizeof (v));
}

static void rows_go_on_from_a_save (void **state)
{
    struct train t = { .rule = SLURMDL_PS_ADAGRAD, .until = 8 };
    float v[IDS * ROW];

    run_group (train_rows, &t);
    memcpy (v, board->values, sizeof (v));
    options.dir = group_file ("again");
    options.save_every = 5;
    t.until = 5;
    run_group (train_rows, &t);
    t.until = 8;
    run_group (train_rows, &t);
    assert_memory_equal (board->values, v, sizeof (v));
}

/* ---- another number of servers ---- */

static const long counts[] = { 2, 3, 1, 5, 2 };
enum { COUNTS = COUNT (counts), EACH = 2 };

static const enum slurmdl_ps_rule rules[] = {
    SLURMDL_PS_ADD, SLURMDL_PS_SGD, SLURMDL_PS_ADAGRAD, SLURMDL_PS_ADAM
};
enum { RULES = COUNT (rules) };

/* What other servers have saved, with the state of the rule. */
static void run_by_others (worker_f f, struct train *t, const char *name)
{
    options.dir = group_file (name);
    options.save_every = 100;
    for (int i = 0; i < COUNTS; i++) {
        options.servers = counts[i];
        t->until = (i + 1) * EACH;
        run_group (f, t);
    }
}

static void dense_is_spread_anew (void **state)
{
    for (int i = 0; i < RULES; i++) {
        struct train t = { .rule = rules[i], .n = BIG };
        char name[16];
        snprintf (name, sizeof (name), "%d", i);
        run_by_others (train, &t, name);
        check_values (&t);
    }
}

static void rows_are_spread_anew (void **state)
{
    for (int i = 0; i < RULES; i++) {
        struct train t = { .rule = rules[i], .until = COUNTS * EACH };
        float v[IDS * ROW];
        char name[16];
        snprintf (name, sizeof (name), "once-%d", i);
        options.dir = group_file (name);
        options.save_every = 0;
        run_group (train_rows, &t);
        memcpy (v, board->values, sizeof (v));
        snprintf (name, sizeof (name), "%d", i);
        run_by_others (train_rows, &t, name);
        assert_memory_equal (board->values, v, sizeof (v));
    }
}

/* A server is lost before they have saved anything themselves. */
static void a_server_of_another_number_is_lost (void **state)
{
    struct train t = { SLURMDL_PS_ADAM, BIG, 4, 0.02 };
    struct group g;

    options.save_every = 100;
    run_group (train, &t);
    options.servers = 3;
    t.until = 20;
    g = start_group (train, &t);
    await_clock (0, 8);
    lose (g.servers[2]);
    g.servers[2] = start_server ("server", 2);
    end_group (&g);
    check_values (&t);
}

static void wait_for_stage (struct slurmdl_ps *ps, void *arg)
{
    reach (slurmdl_ps_index (ps), 1);
    await (1, 1);
}

/* Not while the others serve. */
static void a_wrong_number_is_refused (void **state)
{
    struct group g;

    options.workers = 1;
    g = start_group (wait_for_stage, NULL);
    await (0, 1);
    options.servers = 3;
    assert_int_equal (end_of (start_server ("server", 1)), 2);
    reach (1, 1);
    end_group (&g);
}

/* ---- a table whose initial values come later ---- */

static void declare_late (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "late",
                                  .n = BIG,
                                  .rule = SLURMDL_PS_ADD };
    float *v = malloc (BIG * sizeof (*v));
    long me = slurmdl_ps_index (ps);
    int w = 0;

    for (uint64_t i = 0; i < BIG; i++)
        v[i] = gradient (me, 0, i);
    if (me > 0) {
        w = slurmdl_ps_table (ps, &s, v, NULL);
        NEED (w == 0);
    }
    reach (me, 1);
    for (long i = 0; i < options.workers; i++)
        await (i, 1);
    if (me == 0)
        NEED (slurmdl_ps_save (ps, NULL) == 0);
    for (int k = 0; k < 3; k++)
        NEED (slurmdl_ps_clock (ps, NULL) == 0);
    NEED (slurmdl_ps_wait (ps, 0, NULL) == 0);
    reach (me, 2);
    await (GROUP - 1, 1); /* the server was replaced */
    if (me == 0)
        NEED (slurmdl_ps_table (ps, &s, v, NULL) == 0);
    NEED (slurmdl_ps_pull (ps, w, v, NULL, NULL) == 0);
    for (uint64_t i = 0; i < BIG; i++)
        NEED (v[i] == gradient (0, 0, i));
    free (v);
}

static void initial_values_are_still_awaited (void **state)
{
    struct group g;

    options.servers = 1;
    options.workers = 2;
    g = start_group (declare_late, NULL);
    await (0, 2);
    await (1, 2);
    nap (1); /* it saves */
    lose (g.servers[0]);
    g.servers[0] = start_server ("server", 0);
    reach (GROUP - 1, 1);
    end_group (&g);
}

/* ---- a copy of a table that changes ---- */

static void check_copy (struct ps_table *t, const float *v, const float *slot)
{
    struct ps_copy *c = t->copy;
    size_t n = ps_table_is_dense (t) ? t->n : c->rows * c->width;
    uint64_t rows = c->rows;
    float *g = calloc (2 * PS_BLOCK, sizeof (*g));
    uint64_t ids[] = { 7, 1000007, 12345678901 };

    for (int i = 0; i < PS_BLOCK; i++)
        g[i] = 1;
    assert_true (ps_copy_some (t));
    for (int k = 0; k < 3; k++)
        if (ps_table_is_dense (t))
            ps_table_apply (t, (uint64_t)k * PS_BLOCK, g, PS_BLOCK);
        else
            assert_int_equal (ps_table_apply_rows (t, ids, g, 3), 0);
    while (ps_copy_some (t))
        ;
    assert_null (t->copy);
    assert_memory_equal (c->value[0], v, n * sizeof (*v));
    assert_memory_equal (c->value[1], slot, n * sizeof (*v));
    assert_true (memcmp (t->value[0], v, n * sizeof (*v)) != 0);
    for (uint64_t i = 0; i < rows; i++)
        assert_int_equal (c->times[i], 1);
    ps_copy_destroy (c);
    free (g);
}

static void a_copy_is_of_one_moment (void **state)
{
    struct ps_spec dense = {
        .name = "d", .n = 5 * PS_BLOCK + 99, .rule = SLURMDL_PS_SGD, .rate = 0.5
    };
    struct ps_spec sparse = dense;
    struct ps_table *t[2];

    sparse.n = 0;
    sparse.row = 300; /* some parts */
    t[0] = ps_table_create (&dense, 0, 1, 1);
    t[1] = ps_table_create (&sparse, 0, 1, 1);
    ps_table_initial (t[0], 0, NULL, 0);
    for (int i = 0; i < 2; i++) {
        float *g = malloc (dense.n * sizeof (*g));
        float *v, *slot;
        size_t n;
        for (uint64_t k = 0; k < dense.n; k++)
            g[k] = gradient (0, i, k);
        if (i == 0)
            ps_table_apply (t[0], 0, g, dense.n);
        for (uint64_t id = 0; i == 1 && id < 1000; id++)
            assert_int_equal (
                ps_table_apply_rows (t[1], (uint64_t[]){ id * 1000007 }, g, 1),
                0);
        n = i ? 1000 * 300 : dense.n;
        v = malloc (n * sizeof (*v));
        slot = malloc (n * sizeof (*v));
        memcpy (v, t[i]->value[0], n * sizeof (*v));
        memcpy (slot, t[i]->value[1], n * sizeof (*v));
        assert_non_null (ps_copy_create (t[i]));
        check_copy (t[i], v, slot);
        free (g);
        free (v);
        free (slot);
        ps_table_destroy (t[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test (a_copy_is_of_one_moment),
    IN_GROUP (all_go_on_from_a_save),
    IN_GROUP (rows_go_on_from_a_save),
    IN_GROUP (dense_is_spread_anew),
    IN_GROUP (rows_are_spread_anew),
    IN_GROUP (a_server_of_another_number_is_lost),
    IN_GROUP (a_wrong_number_is_refused),
    IN_GROUP (initial_values_are_still_awaited),
};

RUN_TESTS (tests)
