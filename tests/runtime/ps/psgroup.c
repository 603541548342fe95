/* SPDX-License-Identifier: Apache-2.0 */
/* Servers and workers as processes, and what they train. */
#include <sys/mman.h>
#include <time.h>

#include "runtime/ps/rules.h"
#include "tests/folder.h"
#include "tests/ranks.h"
#include "tests/runtime/ps/psgroup.h"

struct slurmdl_ps_options options;
struct board *board;

int make_group (void **state)
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

int remove_group (void **state)
{
    munmap (board, sizeof (*board));
    return remove_dir (state);
}

const char *group_file (const char *name)
{
    return in_dir (name);
}

struct slurmdl_ps *open_as (const char *role, long index)
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

pid_t start_server (const char *role, long index)
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

pid_t start_worker (long index, worker_f f, void *arg)
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

int end_of (pid_t pid)
{
    int status;

    if (waitpid (pid, &status, 0) != pid)
        return -1;
    return WIFEXITED (status) ? WEXITSTATUS (status) : -WTERMSIG (status);
}

void lose (pid_t pid)
{
    kill (pid, SIGKILL);
    assert_int_equal (end_of (pid), -SIGKILL);
}

void await_clock (long who, int64_t clock)
{
    for (int i = 0; board->clocks[who] < clock && i < 40000; i++)
        nap (0.005);
    assert_true (board->clocks[who] >= clock);
}

struct group start_group (worker_f f, void *arg)
{
    struct group g = { 0 };

    for (long i = 0; i < options.servers; i++)
        g.servers[i] = start_server ("server", i);
    for (long i = 0; i < options.workers; i++)
        g.workers[i] = start_worker (i, f, arg);
    return g;
}

void end_group (const struct group *g)
{
    for (int i = 0; i < GROUP; i++)
        if (g->workers[i])
            assert_int_equal (end_of (g->workers[i]), 0);
    for (int i = 0; i < GROUP; i++)
        if (g->servers[i])
            assert_int_equal (end_of (g->servers[i]), 0);
}

void run_group (worker_f f, void *arg)
{
    struct group g = start_group (f, arg);

    end_group (&g);
}

void nap (double seconds)
{
    struct timespec t = { (time_t)seconds,
                          (long)((seconds - (double)(time_t)seconds) * 1e9) };

    nanosleep (&t, NULL);
}

void reach (long who, int stage)
{
    board->stage[who] = stage;
}

void await (long who, int stage)
{
    for (int i = 0; board->stage[who] < stage; i++) {
        NEED (i < 60000);
        nap (0.005);
    }
}

float gradient (long worker, int64_t t, uint64_t i)
{
    return (float)((double)(ps_mix (i + 1000003 * (uint64_t)t
                                    + 7919 * (uint64_t)worker)
                            >> 40)
                   / 16777216.0)
           - 0.49F;
}

struct slurmdl_ps_table table_of (const struct train *t)
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

void train (struct slurmdl_ps *ps, void *arg)
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

void check_values (const struct train *t)
{
    float *v = serial (t, options.workers);

    assert_memory_equal (board->values, v, t->n * sizeof (*v));
    free (v);
}

void train_counts (struct slurmdl_ps *ps, void *arg)
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
