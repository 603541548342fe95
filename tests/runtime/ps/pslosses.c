/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers and workers as processes: who is lost and replaced, and
 * what is saved. */
#include <signal.h>
#include <string.h>

#include "tests/ranks.h"
#include "tests/runtime/ps/psgroup.h"
#include "tests/unit.h"

/* Kill server 'who' in the middle, and put another one in its place. */
static void lose_server (worker_f f, void *arg, bool spare)
{
    pid_t servers[GROUP];
    pid_t workers[GROUP];
    pid_t stand_by = 0;

    for (long i = 0; i < options.servers; i++)
        servers[i] = start_server ("server", i);
    for (long i = 0; i < options.workers; i++)
        workers[i] = start_worker (i, f, arg);
    if (spare)
        stand_by = start_server ("scheduler", 0);
    for (int i = 0; board->clocks[0] < 4 && i < 40000; i++)
        nap (0.005);
    assert_true (board->clocks[0] >= 4);
    kill (servers[1], SIGKILL);
    assert_int_equal (end_of (servers[1]), -SIGKILL);
    servers[1] = spare ? stand_by : start_server ("server", 1);
    for (long i = 0; i < options.workers; i++)
        assert_int_equal (end_of (workers[i]), 0);
    for (long i = 0; i < options.servers; i++)
        assert_int_equal (end_of (servers[i]), 0);
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
    pid_t servers[2];
    pid_t workers[GROUP];

    options.save_every = 3;
    for (long i = 0; i < 2; i++)
        servers[i] = start_server ("server", i);
    for (long i = 0; i < options.workers; i++)
        workers[i] = start_worker (i, train, &t);
    for (int i = 0; board->clocks[0] < 5 && i < 40000; i++)
        nap (0.005);
    for (long i = 0; i < 2; i++) {
        kill (servers[i], SIGKILL);
        assert_int_equal (end_of (servers[i]), -SIGKILL);
    }
    for (long i = 0; i < 2; i++)
        servers[i] = start_server ("server", i);
    for (long i = 0; i < options.workers; i++)
        assert_int_equal (end_of (workers[i]), 0);
    for (long i = 0; i < 2; i++)
        assert_int_equal (end_of (servers[i]), 0);
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

static void
lose_worker (const struct train *t, bool replace, struct slurmdl_error *err)
{
    pid_t servers[GROUP];
    pid_t workers[GROUP];

    for (long i = 0; i < options.servers; i++)
        servers[i] = start_server ("server", i);
    for (long i = 0; i < options.workers; i++)
        workers[i] = start_worker (
            i,
            options.mode == SLURMDL_PS_SYNC ? train : train_counts,
            (void *)(uintptr_t)t);
    for (int i = 0; board->clocks[1] < 4 && i < 40000; i++)
        nap (0.005);
    kill (workers[1], SIGKILL);
    assert_int_equal (end_of (workers[1]), -SIGKILL);
    if (replace)
        workers[1] = start_worker (1, train, (void *)(uintptr_t)t);
    for (long i = 0; i < options.workers; i++)
        if (i != 1 || replace)
            assert_int_equal (end_of (workers[i]), 0);
    for (long i = 0; i < options.servers; i++)
        assert_int_equal (end_of (servers[i]), 0);
}

static void a_lost_worker_holds_nobody (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 12, 0.02 };

    lose_worker (&t, false, NULL);
    assert_int_equal (board->clocks[0], 12);
    assert_int_equal (board->clocks[2], 12);
}

static void a_lost_worker_is_replaced (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 40, 0.02, true };

    lose_worker (&t, true, NULL);
    assert_int_equal (board->clocks[1], 40);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        IN_GROUP (a_lost_server_is_replaced),
        IN_GROUP (a_spare_takes_over_from_a_save),
        IN_GROUP (a_server_is_replaced_when_some_have_left),
        IN_GROUP (all_servers_are_replaced),
        IN_GROUP (async_loses_nothing_with_a_server),
        IN_GROUP (a_small_log_makes_servers_save),
        IN_GROUP (a_lost_worker_holds_nobody),
        IN_GROUP (a_lost_worker_is_replaced),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
