/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers and workers as processes: what is summed, kept and lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/comm/ps/rules.h"
#include "runtime/comm/ps/wire.h"
#include "runtime/slurmdl_ps.h"
#include "tests/folder.h"
#include "tests/ranks.h"

/* ---- a group of processes ---- */

enum { GROUP = 8 };

static struct slurmdl_ps_options options;

/* Shared by the processes of a test. */
struct board {
    float values[1 << 20];
    int64_t clocks[GROUP];
    int64_t most_ahead;
    volatile int stage[GROUP];
};
static struct board *board;

static int make_group (void **state)
{
    signal (SIGPIPE, SIG_IGN);
    board = mmap (NULL,
                  sizeof (*board),
                  PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS,
                  -1,
                  0);
    memset (&options, 0, sizeof (options));
    options.servers = 2;
    options.workers = 3;
    options.mode = SLURMDL_PS_SYNC;
    options.timeout = 100;
    options.grace = 1;
    if (board == MAP_FAILED || make_dir (state) < 0)
        return -1;
    options.dir = dir;
    return 0;
}

static int remove_group (void **state)
{
    munmap (board, sizeof (*board));
    return remove_dir (state);
}

#define IN_GROUP(f)                                                            \
    cmocka_unit_test_setup_teardown (f, make_group, remove_group)

typedef void (*worker_f) (struct slurmdl_ps *ps, void *arg);

static struct slurmdl_ps *open_as (const char *role, long index)
{
    struct slurmdl_ps_options o = options;
    struct slurmdl_error err;
    struct slurmdl_ps *ps;

    o.role = role;
    o.index = index;
    ps = slurmdl_ps_open (&o, &err);
    if (!ps)
        fprintf (stderr, "# %s %ld: %s\n", role, index, err.text);
    return ps;
}

static pid_t start_server (const char *role, long index)
{
    struct slurmdl_error err;
    struct slurmdl_ps *ps;
    pid_t pid = fork ();

    if (pid)
        return pid;
    alarm (300);
    NEED (ps = open_as (role, index));
    if (slurmdl_ps_serve (ps, &err) < 0) {
        fprintf (stderr, "# server %ld: %s\n", index, err.text);
        _exit (2);
    }
    NEED (slurmdl_ps_close (ps) == 0);
    _exit (0);
}

static pid_t start_worker (long index, worker_f f, void *arg)
{
    struct slurmdl_ps *ps;
    pid_t pid = fork ();

    if (pid)
        return pid;
    alarm (300);
    NEED (ps = open_as ("worker", index));
    f (ps, arg);
    NEED (slurmdl_ps_close (ps) == 0);
    _exit (0);
}

static int end_of (pid_t pid)
{
    int status;

    if (waitpid (pid, &status, 0) != pid)
        return -1;
    return WIFEXITED (status) ? WEXITSTATUS (status) : -WTERMSIG (status);
}

static void run_group (worker_f f, void *arg)
{
    pid_t pids[2 * GROUP];
    int n = 0;

    for (long i = 0; i < options.servers; i++)
        pids[n++] = start_server ("server", i);
    for (long i = 0; i < options.workers; i++)
        pids[n++] = start_worker (i, f, arg);
    for (int i = 0; i < n; i++)
        assert_int_equal (end_of (pids[i]), 0);
}

static void nap (double seconds)
{
    struct timespec t = { (time_t)seconds,
                          (long)((seconds - (double)(time_t)seconds) * 1e9) };

    nanosleep (&t, NULL);
}

static void reach (long who, int stage)
{
    board->stage[who] = stage;
}

static void await (long who, int stage)
{
    for (int i = 0; board->stage[who] < stage; i++) {
        NEED (i < 60000);
        nap (0.005);
    }
}

/* A gradient that rounds when it is added. */
static float gradient (long worker, int64_t t, uint64_t i)
{
    return (float)((double)(ps_mix (i + 1000003 * (uint64_t)t
                                    + 7919 * (uint64_t)worker)
                            >> 40)
                   / 16777216.0)
           - 0.49F;
}

/* ---- mode sync ---- */

enum { BIG = 200001, ITERATIONS = 7 };

struct train {
    enum slurmdl_ps_rule rule;
    uint64_t n;
    int64_t until;
    double nap;
    bool together; /* the others do not leave before worker 1 */
};

static struct slurmdl_ps_table table_of (const struct train *t)
{
    return (struct slurmdl_ps_table){ .name = "layer/w",
                                      .n = t->n,
                                      .rule = t->rule,
                                      .rate = 0.05,
                                      .momentum = 0.9,
                                      .decay = 0.001 };
}

/* What the servers are to have after iteration 'until', computed here. */
static float *serial (const struct train *t, long workers)
{
    struct slurmdl_ps_table s = table_of (t);
    struct ps_spec spec = { .rate = s.rate,
                            .momentum = s.momentum,
                            .decay = s.decay,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .epsilon = 1e-8 };
    float *v[3];
    float *g = malloc (t->n * sizeof (*g));

    for (int i = 0; i < 3; i++)
        v[i] = calloc (t->n, sizeof (float));
    for (uint64_t i = 0; i < t->n; i++)
        v[0][i] = gradient (99, 0, i);
    for (int64_t k = 0; k < t->until; k++) {
        for (uint64_t i = 0; i < t->n; i++) {
            g[i] = gradient (0, k, i);
            for (long w = 1; w < workers; w++)
                g[i] = t->rule == SLURMDL_PS_ASSIGN ? gradient (w, k, i)
                                                    : g[i] + gradient (w, k, i);
        }
        ps_rule (t->rule)->apply (&spec, (uint32_t)k + 1, v, g, t->n);
    }
    free (g);
    free (v[1]);
    free (v[2]);
    return v[0];
}

static void train (struct slurmdl_ps *ps, void *arg)
{
    const struct train *t = arg;
    struct slurmdl_ps_table s = table_of (t);
    float *g = malloc (t->n * sizeof (*g));
    float *v = malloc (t->n * sizeof (*v));
    long me = slurmdl_ps_index (ps);
    int w;

    for (uint64_t i = 0; i < t->n; i++)
        v[i] = gradient (99 - me, 0, i); /* that of worker 0 counts */
    w = slurmdl_ps_table (ps, &s, v, NULL);
    NEED (w == 0);
    for (int64_t k = slurmdl_ps_iteration (ps); k < t->until; k++) {
        nap (t->nap);
        NEED (slurmdl_ps_iteration (ps) == k);
        NEED (slurmdl_ps_pull (ps, w, v, NULL, NULL) == 0);
        for (uint64_t i = 0; i < t->n; i++)
            g[i] = gradient (me, k, i);
        NEED (slurmdl_ps_push (ps, w, g, NULL, NULL) == 0);
        NEED (slurmdl_ps_clock (ps, NULL) == 0);
        board->clocks[me] = k + 1;
    }
    NEED (slurmdl_ps_pull (ps, w, v, NULL, NULL) == 0);
    reach (me, 1);
    if (t->together)
        await (1, 1);
    if (me == 0)
        memcpy (board->values, v, t->n * sizeof (*v));
    free (g);
    free (v);
}

static void check_values (const struct train *t)
{
    float *v = serial (t, options.workers);

    assert_memory_equal (board->values, v, t->n * sizeof (*v));
    free (v);
}

static void sync_equals_the_serial_sum (void **state)
{
    /* clang-format off */
    struct train all[] = {
        { SLURMDL_PS_ADD,     BIG,      ITERATIONS, 0 },
        { SLURMDL_PS_ASSIGN,  BIG,      2,          0 },
        { SLURMDL_PS_SGD,     BIG,      ITERATIONS, 0 },
        { SLURMDL_PS_ADAGRAD, PS_BLOCK * 2, ITERATIONS, 0 },
        { SLURMDL_PS_ADAM,    BIG,      ITERATIONS, 0 },
        { SLURMDL_PS_SGD,     PS_SMALL - 1, 3,      0 },
        { SLURMDL_PS_SGD,     1,        3,          0 },
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < sizeof (all) / sizeof (*all); i++) {
        char name[128];
        snprintf (name, sizeof (name), "%s/%zu", dir, i);
        options.dir = name;
        run_group (train, &all[i]);
        check_values (&all[i]);
    }
}

static void push_pull (struct slurmdl_ps *ps, void *arg)
{
    struct train *t = arg;
    struct slurmdl_ps_table s = table_of (t);
    float *v = malloc (t->n * sizeof (*v));
    long me = slurmdl_ps_index (ps);
    int w;

    for (uint64_t i = 0; i < t->n; i++)
        v[i] = gradient (99, 0, i);
    w = slurmdl_ps_table (ps, &s, v, NULL);
    for (int64_t k = 0; k < t->until; k++) {
        for (uint64_t i = 0; i < t->n; i++)
            v[i] = gradient (me, k, i);
        NEED (slurmdl_ps_push_pull (ps, w, v, v, NULL) == 0);
    }
    if (me == 0)
        memcpy (board->values, v, t->n * sizeof (*v));
    free (v);
}

static void push_pull_is_a_step (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 4, 0 };

    (void)state;
    run_group (push_pull, &t);
    check_values (&t);
    options.log_bytes = -1;
    options.dir = in_dir ("nolog");
    run_group (push_pull, &t);
    check_values (&t);
}

/* ---- rows ---- */

enum { ROW = 5, IDS = 40 };

static void train_rows (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "embedding",
                                  .row = ROW,
                                  .rule = SLURMDL_PS_ADD,
                                  .low = -0.5,
                                  .high = 0.5,
                                  .seed = 7 };
    uint64_t ids[IDS + 2];
    float g[(IDS + 2) * ROW];
    float v[(IDS + 2) * ROW];
    float first[IDS * ROW];
    long me = slurmdl_ps_index (ps);
    int e = slurmdl_ps_table (ps, &s, NULL, NULL);
    int64_t ticket;

    (void)arg;
    NEED (e == 0);
    for (int i = 0; i < IDS; i++)
        ids[i] = (uint64_t)i * 1000000007;
    ids[IDS] = ids[3]; /* twice in a call */
    ids[IDS + 1] = ids[0];
    NEED (slurmdl_ps_pull_rows (ps, e, ids, IDS, first, NULL, NULL) == 0);
    for (int i = 0; i < IDS * ROW; i++)
        NEED (first[i] >= -0.5 && first[i] < 0.5);
    NEED (memcmp (first, first + ROW, sizeof (float) * ROW));
    NEED (slurmdl_ps_push_rows (ps, e, ids, 0, NULL, NULL, NULL) == 0);
    NEED (slurmdl_ps_pull_rows (ps, e, ids, 0, NULL, NULL, NULL) == 0);
    for (int i = 0; i < (IDS + 2) * ROW; i++)
        g[i] = (float)(me + 1);
    NEED (slurmdl_ps_push_rows (ps, e, ids, IDS + 2, g, NULL, NULL) == 0);
    NEED (slurmdl_ps_clock (ps, NULL) == 0);
    NEED (slurmdl_ps_pull_rows (ps, e, ids, IDS + 2, v, &ticket, NULL) == 0);
    NEED (ticket > 0 && slurmdl_ps_wait (ps, ticket, NULL) == 0);
    for (int i = 0; i < (IDS + 2) * ROW; i++) {
        int row = i / ROW == IDS ? 3 : i / ROW == IDS + 1 ? 0 : i / ROW;
        bool twice = row == 3 || row == 0;
        float was = first[row * ROW + i % ROW];
        float sum = twice ? 2.0F * 1 + 2.0F * 2 + 2.0F * 3 : 1.0F + 2 + 3;
        NEED (v[i] == was + sum);
    }
    ids[0] = UINT64_MAX;
    NEED (slurmdl_ps_pull_rows (ps, e, ids, 1, v, NULL, NULL) < 0
          && errno == EINVAL);
}

static void rows_are_made_and_summed (void **state)
{
    (void)state;
    run_group (train_rows, NULL);
}

/* One big message, and tables of no memory to speak of. */
static void train_large (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "large",
                                  .n = 16 << 20,
                                  .rule = SLURMDL_PS_ADD };
    float *v = malloc (s.n * sizeof (*v));
    int w = slurmdl_ps_table (ps, &s, NULL, NULL);

    (void)arg;
    for (uint64_t i = 0; i < s.n; i++)
        v[i] = (float)(i & 0xffff);
    NEED (slurmdl_ps_push (ps, w, v, NULL, NULL) == 0);
    NEED (slurmdl_ps_clock (ps, NULL) == 0);
    memset (v, 0, s.n * sizeof (*v));
    NEED (slurmdl_ps_pull (ps, w, v, NULL, NULL) == 0);
    for (uint64_t i = 0; i < s.n; i++)
        NEED (v[i] == 2 * (float)(i & 0xffff));
    free (v);
}

static void tensors_of_64_mib (void **state)
{
    (void)state;
    options.workers = 2;
    run_group (train_large, NULL);
}

/* ---- async and bounded ---- */

/* Integers: the order of sums does not matter. */
static void train_counts (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "counts",
                                  .n = BIG,
                                  .rule = SLURMDL_PS_ADD };
    struct train *t = arg;
    float *v = calloc (BIG, sizeof (*v));
    float *g = malloc (BIG * sizeof (*v));
    long me = slurmdl_ps_index (ps);
    int w = slurmdl_ps_table (ps, &s, NULL, NULL);

    for (int i = 0; i < BIG; i++)
        g[i] = (float)(me + 1 + i % 3);
    for (int64_t k = slurmdl_ps_iteration (ps); k < t->until; k++) {
        if (t->nap && me == 2)
            nap (t->nap);
        NEED (slurmdl_ps_pull (ps, w, v, NULL, NULL) == 0);
        /* the least that may be seen: of all but the last iterations */
        if (options.mode == SLURMDL_PS_BOUNDED && k > options.staleness)
            NEED (v[0] >= 6 * (float)(k - options.staleness));
        if (options.mode == SLURMDL_PS_BOUNDED
            && k - board->clocks[2] > board->most_ahead)
            board->most_ahead = k - board->clocks[2];
        NEED (slurmdl_ps_push (ps, w, g, NULL, NULL) == 0);
        board->clocks[me] = k + 1;
        NEED (slurmdl_ps_clock (ps, NULL) == 0);
    }
    NEED (slurmdl_ps_wait (ps, 0, NULL) == 0);
    reach (me, 1);
    for (long i = 0; i < options.workers; i++)
        await (i, 1);
    NEED (slurmdl_ps_pull (ps, w, v, NULL, NULL) == 0);
    for (int i = 0; i < BIG; i++)
        NEED (v[i] == (float)(t->until * (6 + 3 * (i % 3))));
    free (v);
    free (g);
}

static void async_loses_nothing (void **state)
{
    struct train t = { .until = 20 };

    (void)state;
    options.mode = SLURMDL_PS_ASYNC;
    run_group (train_counts, &t);
}

static void staleness_is_bounded (void **state)
{
    struct train t = { .until = 15, .nap = 0.01 };

    (void)state;
    options.mode = SLURMDL_PS_BOUNDED;
    options.staleness = 2;
    run_group (train_counts, &t);
    assert_in_range (board->most_ahead, 1, 2);
}

/* ---- losses ---- */

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

    (void)state;
    lose_server (train, &t, false);
    check_values (&t);
}

static void a_spare_takes_over_from_a_save (void **state)
{
    struct train t = { SLURMDL_PS_ADAM, BIG, 12, 0.02 };

    (void)state;
    options.save_every = 3;
    lose_server (train, &t, true);
    check_values (&t);
}

static void async_loses_nothing_with_a_server (void **state)
{
    struct train t = { .until = 20, .nap = 0.02 };

    (void)state;
    options.mode = SLURMDL_PS_ASYNC;
    options.save_every = 3;
    lose_server (train_counts, &t, false);
}

static void all_servers_are_replaced (void **state)
{
    struct train t = { SLURMDL_PS_ADAM, BIG, 12, 0.02 };
    pid_t servers[2];
    pid_t workers[GROUP];

    (void)state;
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

    (void)state;
    options.log_bytes = BIG * sizeof (float) * 3 / 2;
    lose_server (train, &t, false);
    check_values (&t);
}

static void
lose_worker (const struct train *t, bool replace, struct slurmdl_error *err)
{
    pid_t servers[GROUP];
    pid_t workers[GROUP];

    (void)err;
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

    (void)state;
    lose_worker (&t, false, NULL);
    assert_int_equal (board->clocks[0], 12);
    assert_int_equal (board->clocks[2], 12);
}

static void a_lost_worker_is_replaced (void **state)
{
    struct train t = { SLURMDL_PS_SGD, BIG, 40, 0.02, true };

    (void)state;
    lose_worker (&t, true, NULL);
    assert_int_equal (board->clocks[1], 40);
}

/* All end, and others go on from the save of the last iteration. */
static void all_go_on_from_a_save (void **state)
{
    struct train t = { SLURMDL_PS_ADAGRAD, BIG, 5, 0 };

    (void)state;
    options.save_every = 100;
    run_group (train, &t);
    t.until = 9;
    run_group (train, &t);
    check_values (&t);
    options.servers = 1;
    assert_int_equal (end_of (start_server ("server", 0)), 2);
}

static void train_rows_on (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "e",
                                  .row = 3,
                                  .rule = SLURMDL_PS_ADAGRAD,
                                  .rate = 0.5,
                                  .high = 1 };
    uint64_t ids[200];
    float g[600];
    float v[600];
    int e = slurmdl_ps_table (ps, &s, NULL, NULL);
    int64_t until = *(int64_t *)arg;

    for (uint64_t i = 0; i < 200; i++)
        ids[i] = i * i;
    for (int64_t k = slurmdl_ps_iteration (ps); k < until; k++) {
        for (uint64_t i = 0; i < 600; i++)
            g[i] = gradient (slurmdl_ps_index (ps), k, i);
        NEED (slurmdl_ps_push_rows (ps, e, ids, 200, g, NULL, NULL) == 0);
        NEED (slurmdl_ps_clock (ps, NULL) == 0);
    }
    NEED (slurmdl_ps_pull_rows (ps, e, ids, 200, v, NULL, NULL) == 0);
    if (slurmdl_ps_index (ps) == 0)
        memcpy (board->values, v, sizeof (v));
}

static void rows_go_on_from_a_save (void **state)
{
    int64_t until = 8;
    float v[600];

    (void)state;
    run_group (train_rows_on, &until);
    memcpy (v, board->values, sizeof (v));
    options.dir = in_dir ("again");
    options.save_every = 5;
    until = 5;
    run_group (train_rows_on, &until);
    until = 8;
    run_group (train_rows_on, &until);
    assert_memory_equal (board->values, v, sizeof (v));
}

/* ---- what goes wrong ---- */

static void wait_alone (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "w", .n = 9 };
    struct slurmdl_error err;
    float v[9];
    int w = slurmdl_ps_table (ps, &s, NULL, NULL);

    (void)arg;
    NEED (slurmdl_ps_clock (ps, NULL) == 0);
    NEED (slurmdl_ps_pull (ps, w, v, NULL, &err) < 0 && errno == ETIMEDOUT);
    NEED (strstr (err.text, "worker 1 has not come"));
    NEED (slurmdl_ps_clock (ps, &err) < 0 && errno == ENOTCONN);
    _exit (0);
}

static void who_does_not_come_is_named (void **state)
{
    pid_t server;

    (void)state;
    options.servers = 1;
    options.workers = 2;
    options.timeout = 3;
    server = start_server ("server", 0);
    assert_int_equal (end_of (start_worker (0, wait_alone, NULL)), 0);
    assert_int_equal (end_of (server), 2);
}

static void no_server_is_an_error (void **state)
{
    struct slurmdl_ps_options o = options;
    struct slurmdl_error err;

    (void)state;
    o.role = "worker";
    o.timeout = 0.5;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, ETIMEDOUT);
    assert_non_null (strstr (err.text, "server 0"));
    o.role = "chef";
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, EINVAL);
    o.role = "worker";
    o.index = 3;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, EINVAL);
    o.index = 0;
    setenv ("DL_PS_MODE", "asinc", 1);
    o.mode = 0;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_non_null (strstr (err.text, "sync, async, bounded"));
    unsetenv ("DL_PS_MODE");
}

/* Connect to server 0 as whoever, send, and read what it answers. */
static ssize_t
say (const void *data, size_t n, struct ps_header *answer, char *text)
{
    struct ps_entry e;
    uint64_t number;
    int fd;
    ssize_t got;

    for (int i = 0; i < 10000; i++) {
        if (psplace_newest (dir, "server", 0, &number, &e) == 1
            && e.state == PS_SERVING)
            break;
        nap (0.01);
    }
    fd = pswire_connect (&e);
    assert_true (fd >= 0);
    pswire_send (fd, data, n, 2);
    got = pswire_recv (fd, answer, sizeof (*answer), 2);
    text[0] = '\0';
    if (got == 0 && answer->bytes < 256)
        pswire_recv (fd, text, answer->bytes, 2);
    close (fd);
    return got;
}

static void strangers_are_refused (void **state)
{
    struct {
        struct ps_header head;
        struct ps_hello hello;
    } m = { .head = { PS_MAGIC, PS_VERSION, PS_HELLO } };
    struct train t = { SLURMDL_PS_SGD, 1000, 3, 0 };
    struct ps_header answer;
    char text[256];
    char garbage[5000];
    pid_t server;

    (void)state;
    options.servers = options.workers = 1;
    server = start_server ("server", 0);
    for (size_t i = 0; i < sizeof (garbage); i++)
        garbage[i] = (char)ps_mix (i);
    assert_int_equal (say (garbage, sizeof (garbage), &answer, text), -1);
    assert_int_equal (say ("GET / HTTP/1.1\r\n\r\n", 18, &answer, text), -1);
    m.head.bytes = sizeof (m.hello);
    assert_int_equal (say (&m, sizeof (m), &answer, text), 0);
    assert_int_equal (answer.status, EACCES);
    m.head.version = 2;
    assert_int_equal (say (&m, sizeof (m), &answer, text), 0);
    assert_int_equal (answer.status, EPROTO);
    assert_non_null (strstr (text, "version 1"));
    m.head.version = PS_VERSION;
    m.head.kind = PS_PUSH;
    assert_int_equal (say (&m, sizeof (m), &answer, text), -1);
    m.head.kind = PS_HELLO;
    m.head.bytes = UINT64_MAX;
    assert_int_equal (say (&m, sizeof (m), &answer, text), -1);
    assert_int_equal (end_of (start_worker (0, train, &t)), 0);
    assert_int_equal (end_of (server), 0);
    check_values (&t);
}

static void a_wrong_mode_is_refused (void **state)
{
    struct train t = { SLURMDL_PS_SGD, 1000, 3, 0 };
    struct slurmdl_ps_options o;
    struct slurmdl_error err;
    pid_t server;

    (void)state;
    options.servers = options.workers = 1;
    server = start_server ("server", 0);
    o = options;
    o.role = "worker";
    o.mode = SLURMDL_PS_ASYNC;
    assert_null (slurmdl_ps_open (&o, &err));
    assert_int_equal (errno, EPROTO);
    assert_non_null (strstr (err.text, "its mode is sync"));
    assert_int_equal (end_of (start_worker (0, train, &t)), 0);
    assert_int_equal (end_of (server), 0);
}

static void declare_wrongly (struct slurmdl_ps *ps, void *arg)
{
    struct slurmdl_ps_table s = { .name = "w", .n = 100 };
    struct slurmdl_error err;
    float v[100];

    (void)arg;
    NEED (slurmdl_ps_table (ps, &s, NULL, NULL) == 0);
    s.n = 101;
    NEED (slurmdl_ps_table (ps, &s, NULL, &err) < 0 && errno == EPROTO);
    s.name = "../w";
    NEED (slurmdl_ps_table (ps, &s, NULL, &err) < 0 && errno == EINVAL);
    s.name = "both";
    s.row = 4;
    NEED (slurmdl_ps_table (ps, &s, NULL, &err) < 0 && errno == EINVAL);
    NEED (slurmdl_ps_pull (ps, 7, v, NULL, &err) < 0 && errno == EINVAL);
    NEED (slurmdl_ps_pull_rows (ps, 0, NULL, 0, v, NULL, &err) < 0
          && errno == EINVAL);
    NEED (slurmdl_ps_wait (ps, 99, &err) < 0 && errno == EINVAL);
    NEED (slurmdl_ps_pull (ps, 0, v, NULL, &err) == 0);
}

static void wrong_calls_are_told (void **state)
{
    (void)state;
    options.workers = 1;
    run_group (declare_wrongly, NULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        IN_GROUP (sync_equals_the_serial_sum),
        IN_GROUP (push_pull_is_a_step),
        IN_GROUP (rows_are_made_and_summed),
        IN_GROUP (tensors_of_64_mib),
        IN_GROUP (async_loses_nothing),
        IN_GROUP (staleness_is_bounded),
        IN_GROUP (a_lost_server_is_replaced),
        IN_GROUP (a_spare_takes_over_from_a_save),
        IN_GROUP (all_servers_are_replaced),
        IN_GROUP (async_loses_nothing_with_a_server),
        IN_GROUP (a_small_log_makes_servers_save),
        IN_GROUP (a_lost_worker_holds_nobody),
        IN_GROUP (a_lost_worker_is_replaced),
        IN_GROUP (all_go_on_from_a_save),
        IN_GROUP (rows_go_on_from_a_save),
        IN_GROUP (who_does_not_come_is_named),
        IN_GROUP (no_server_is_an_error),
        IN_GROUP (strangers_are_refused),
        IN_GROUP (a_wrong_mode_is_refused),
        IN_GROUP (wrong_calls_are_told),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
