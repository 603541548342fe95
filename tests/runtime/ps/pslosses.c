/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers and workers as processes: who is lost and replaced, and
 * what is saved. */
#include "runtime/ps/ps.h"
#include "tests/ranks.h"
#include "tests/runtime/ps/psgroup.h"
#include "tests/unit.h"

/* Kill server 1 in the middle, and put another one in its place; a spare has
 * looked for servers before there are any.
 */
static void lose_server (worker_f f, void *arg, bool spare)
{
    pid_t stand_by = spare ? start_server ("scheduler", 0) : 0;
    struct group g;

    if (spare)
        nap (1);
    g = start_group (f, arg);
    await_clock (0, 4);
    lose (g.servers[1]);
    g.servers[1] = spare ? stand_by : start_server ("server", 1);
    end_group (&g);
}

static void a_lost_server_is_replaced (void **state)
{
    struct train t = { SLURMDL_PS_ADAM, BIG, 12, 0.02 };

    lose_server (train, &t, false);
    check_values (&t);
}

static void a_spare_takes_over_from_a_save (void **state)
{
    struct train t = { SLURMDL_PS_ADAM, BIG, 12, 0.02 };

    options.save_every = 3;
    lose_server (train, &t, true);
    check_values (&t);
}

static void async_loses_nothing_with_a_server (void **state)
{
    struct train t = { .until = 20, .nap = 0.02 };

    options.mode = SLURMDL_PS_ASYNC;
    options.save_every = 3;
    lose_server (train_counts, &t, false);
}

/* Worker 2 does nothing but come and go. */
static void train_two (struct slurmdl_ps *ps, void *arg)
{
    const struct train *t = arg;
    struct slurmdl_ps_table s = table_of (t);

    if (slurmdl_ps_index (ps) == 2) {
        NEED (slurmdl_ps_table (ps, &s, NULL, NULL) == 0);
        board->clocks[2] = 1;
    } else
        train (ps, arg);
}

static void a_server_is_replaced_when_some_have_left (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 12, 0.02 };

    lose_server (train_two, &t, false);
    assert_int_equal (board->clocks[2], 1);
    assert_int_equal (board->clocks[0], 12);
    assert_int_equal (board->clocks[1], 12);
}

static void all_servers_are_replaced (void **state)
{
    struct train t = { SLURMDL_PS_ADAM, BIG, 12, 0.02 };
    struct group g;

    options.save_every = 3;
    g = start_group (train, &t);
    await_clock (0, 5);
    for (long i = 0; i < 2; i++)
        lose (g.servers[i]);
    for (long i = 0; i < 2; i++)
        g.servers[i] = start_server ("server", i);
    end_group (&g);
    check_values (&t);
}

/* A log of less than two iterations: each one asks for a save. */
static void a_small_log_makes_servers_save (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 10, 0.01 };

    options.log_bytes = BIG * sizeof (float) * 3 / 2;
    lose_server (train, &t, false);
    check_values (&t);
}

static void lose_worker (struct train *t, bool replace)
{
    struct group g = start_group (train, t);

    await_clock (1, 4);
    lose (g.workers[1]);
    g.workers[1] = replace ? start_worker (1, train, t) : 0;
    end_group (&g);
}

static void a_lost_worker_holds_nobody (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 12, 0.02 };

    lose_worker (&t, false);
    assert_int_equal (board->clocks[0], 12);
    assert_int_equal (board->clocks[2], 12);
}

static void a_lost_worker_is_replaced (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 40, 0.02, true };

    lose_worker (&t, true);
    assert_int_equal (board->clocks[1], 40);
}

/* Until a push finds nobody in the place of a lost server. */
static void push_until_it_fails (struct slurmdl_ps *ps, void *arg)
{
    const struct train *t = arg;
    struct slurmdl_ps_table s = table_of (t);
    struct slurmdl_error err;
    float *g = calloc (BIG, sizeof (*g));
    int n = slurmdl_ps_table (ps, &s, NULL, NULL);

    NEED (n >= 0 && g);
    while (slurmdl_ps_push (ps, n, g, NULL, &err) == 0) {
        NEED (slurmdl_ps_clock (ps, NULL) == 0);
        if (++board->clocks[0] == 4) {
            await (1, 1);
            ps->timeout = 0.5;
        }
    }
    fprintf (stderr, "# %s\n", err.text);
    NEED (errno == ETIMEDOUT && strstr (err.text, "server 1 (")
          && strstr (err.text, "is lost, and no process replaced it"));
    _exit (0);
}

static void a_push_names_the_lost_server (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG };
    struct group g;

    options.workers = 1;
    options.mode = SLURMDL_PS_ASYNC;
    g = start_group (push_until_it_fails, &t);
    await_clock (0, 4);
    lose (g.servers[1]);
    reach (1, 1);
    assert_int_equal (end_of (g.workers[0]), 0);
    lose (g.servers[0]);
}

static const struct CMUnitTest tests[] = {
    IN_GROUP (a_lost_server_is_replaced),
    IN_GROUP (a_spare_takes_over_from_a_save),
    IN_GROUP (a_server_is_replaced_when_some_have_left),
    IN_GROUP (all_servers_are_replaced),
    IN_GROUP (async_loses_nothing_with_a_server),
    IN_GROUP (a_small_log_makes_servers_save),
    IN_GROUP (a_push_names_the_lost_server),
    IN_GROUP (a_lost_worker_holds_nobody),
    IN_GROUP (a_lost_worker_is_replaced),
};

RUN_TESTS (tests)
