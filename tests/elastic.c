/* SPDX-License-Identifier: Apache-2.0 */
/* Training goes on when ranks are killed, frozen, added and taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime/clock.h"
#include "runtime/comm/elastic/elastic.h"
#include "tests/folder.h"

/* A model whose arithmetic is exact (integers modulo 2^64), so that any number
 * of ranks must come to the very weights of the serial computation: the sum
 * over SAMPLES of a hash, a momentum of which each rank has a slab, weights
 * that all have.
 */
enum { N = 1000, SAMPLES = 24, RANKS_MAX = 8 };

struct job {
    int64_t steps;
    long start, min, max;
    double settle, timeout;
    long pause_us;     /* of a step */
    int64_t die_at;    /* step in whose commit it kills itself; 0: never */
    long die_us;       /* so long after it has begun */
    int64_t freeze_at; /* step before which it stops itself */
    const char *unit;
    bool loud;
};

struct result {
    int rv, error; /* 0: trained to the end; error: errno of form() */
    int64_t step, world, size, lost;
    int64_t worlds;    /* formed */
    int64_t committed; /* the last step of which a commit was whole */
    int64_t restarts;  /* times that commits were lost */
    uint64_t weights;
    double longest; /* s to form a world, but the first */
    char text[256];
};

struct model {
    uint64_t w[N], m[N], g[N];
};

static uint64_t mix (uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void gradient (struct model *t, int64_t step, long rank, long size)
{
    memset (t->g, 0, sizeof (t->g));
    for (long i = rank; i < SAMPLES; i += size)
        for (uint64_t k = 0; k < N; k++)
            t->g[k] +=
                mix (t->w[k] + (uint64_t)step * 131 + (uint64_t)i * 7919 + k);
}

static void begin (struct model *t)
{
    for (uint64_t k = 0; k < N; k++) {
        t->w[k] = mix (k);
        t->m[k] = 0;
    }
}

static uint64_t digest (const struct model *t)
{
    uint64_t h = 0;

    for (size_t k = 0; k < N; k++)
        h = mix (h ^ t->w[k]);
    return h;
}

static uint64_t serial (int64_t steps)
{
    static struct model t;

    begin (&t);
    for (int64_t s = 0; s < steps; s++) {
        gradient (&t, s, 0, 1);
        for (size_t k = 0; k < N; k++) {
            t.m[k] = t.m[k] * 3 + t.g[k];
            t.w[k] += t.m[k];
        }
    }
    return digest (&t);
}

/* ---- a rank ---- */

struct part {
    uint64_t offset, n;
};

static struct part part_of (long rank, long size)
{
    uint64_t r = (uint64_t)rank, s = (uint64_t)size;
    uint64_t more = N % s;
    struct part p = { r * (N / s) + (r < more ? r : more), N / s + (r < more) };

    return p;
}

static int one_step (struct slurmdl_comm *c,
                     struct model *t,
                     int64_t step,
                     struct slurmdl_error *err)
{
    long rank = slurmdl_comm_rank (c), size = slurmdl_comm_size (c);
    struct part own = part_of (rank, size);
    size_t bytes[RANKS_MAX];
    static uint64_t all[N];

    gradient (t, step, rank, size);
    if (slurmdl_allreduce (c, t->g, t->g, N, SLURMDL_U64, SLURMDL_SUM, err) < 0)
        return -1;
    for (uint64_t k = own.offset; k < own.offset + own.n; k++)
        t->m[k] = t->m[k] * 3 + t->g[k];
    for (long r = 0; r < size; r++)
        bytes[r] = part_of (r, size).n * sizeof (*all);
    if (slurmdl_allgather (c, t->m + own.offset, bytes[rank], all, bytes, err)
        < 0)
        return -1;
    for (size_t k = 0; k < N; k++)
        t->w[k] += all[k];
    return 0;
}

static int protect (struct slurmdl_elastic *e,
                    struct model *t,
                    struct slurmdl_comm *c,
                    struct slurmdl_error *err)
{
    uint64_t n = N;
    struct part own = { 0, N };

    if (!c)
        return slurmdl_elastic_protect (
            e, "model/w", SLURMDL_U64, 1, &n, t->w, err);
    own = part_of (slurmdl_comm_rank (c), slurmdl_comm_size (c));
    /* what is not restored must show */
    memset (t->m, 0xee, sizeof (t->m));
    return slurmdl_elastic_protect_shard (e,
                                          "momentum",
                                          SLURMDL_U64,
                                          1,
                                          &n,
                                          &own.offset,
                                          &own.n,
                                          t->m + own.offset,
                                          err);
}

static void die (int sig)
{
    (void)sig;
    kill (getpid (), SIGKILL);
}

static void die_soon (long us)
{
    struct itimerval t = { .it_value = { 0, us > 0 ? us : 1 } };

    signal (SIGALRM, die);
    setitimer (ITIMER_REAL, &t, NULL);
}

/* The state has what the step was, too. */
static int check_state (struct slurmdl_elastic *e, int64_t step)
{
    int64_t was = -1;
    void *bytes;
    size_t n;

    if (slurmdl_elastic_read_state (e, "step", &bytes, &n) < 0)
        return -1;
    if (n == sizeof (was))
        memcpy (&was, bytes, n);
    free (bytes);
    return was == step ? 0 : -1;
}

static int train (struct slurmdl_elastic *e,
                  const struct job *j,
                  struct model *t,
                  struct slurmdl_comm *c,
                  struct result *r,
                  struct slurmdl_error *err)
{
    int64_t *step = &r->step;

    while (*step < j->steps) {
        int rv;
        if (*step == j->freeze_at && j->freeze_at > 0
            && slurmdl_comm_size (c) > 1)
            raise (SIGSTOP);
        if (one_step (c, t, *step, err) < 0)
            return -1;
        ++*step;
        usleep ((useconds_t)j->pause_us);
        slurmdl_elastic_state (e, "step", step, sizeof (*step), err);
        if (*step == j->die_at)
            die_soon (j->die_us);
        rv = slurmdl_elastic_commit (e, *step, err);
        if (rv >= 0)
            r->committed = *step;
        if (rv != 0)
            return rv;
    }
    return 0;
}

static int run (struct slurmdl_elastic *e,
                const struct job *j,
                struct result *r,
                struct slurmdl_error *err)
{
    static struct model t;
    struct slurmdl_elastic_world w;
    struct slurmdl_comm *c;
    int rv;

    begin (&t);
    protect (e, &t, NULL, err);
    while (r->step < j->steps) {
        double start = monotonic ();
        if (!(c = slurmdl_elastic_form (e, err))) {
            r->error = errno;
            return -1;
        }
        slurmdl_elastic_world (e, &w);
        if (r->worlds++ > 0 && monotonic () - start > r->longest)
            r->longest = monotonic () - start;
        if (j->loud && slurmdl_comm_rank (c) == 0) {
            printf ("%ld: world %ld has %ld ranks, %ld lost, %ld left, at step "
                    "%ld, in %.1f s\n",
                    (long)time (NULL),
                    (long)w.generation,
                    w.size,
                    w.lost,
                    w.left,
                    (long)r->step,
                    w.seconds);
            fflush (stdout);
        }
        protect (e, &t, c, err);
        if ((rv = slurmdl_elastic_restore (e, &r->step, err)) < 0) {
            if (errno == EINVAL)
                return -1;
            continue;
        }
        if (rv == 0) {
            begin (&t);
            r->restarts += r->committed > 0;
            r->step = r->committed = 0;
        } else if (check_state (e, r->step) < 0)
            return -2;
        train (e, j, &t, c, r, err);
    }
    r->world = w.generation;
    r->size = w.size;
    r->lost = w.lost;
    r->weights = digest (&t);
    return 0;
}

static void rank_main (const struct job *j)
{
    struct slurmdl_elastic_options o = {
        dir, j->min, j->max, j->settle, j->timeout
    };
    struct slurmdl_error err = { "" };
    struct result r = { .rv = -1 };
    struct slurmdl_elastic *e;
    char path[128], tmp[140], start[32];
    FILE *f;

    snprintf (start, sizeof (start), "%ld", j->start);
    setenv ("DL_ELASTIC_START", start, 1);
    setenv ("DL_COMM_TIMEOUT", "3", 0);
    if (j->unit)
        setenv ("DL_ELASTIC_UNIT", j->unit, 1);
    if ((e = slurmdl_elastic_open (&o, &err))) {
        r.rv = run (e, j, &r, &err);
        slurmdl_elastic_close (e);
    }
    snprintf (r.text, sizeof (r.text), "%s", err.text);
    snprintf (path, sizeof (path), "%s/result.%ld", dir, (long)getpid ());
    snprintf (tmp, sizeof (tmp), "%s.tmp", path);
    f = fopen (tmp, "we");
    if (!f || fwrite (&r, sizeof (r), 1, f) != 1 || fclose (f) != 0)
        _exit (2);
    rename (tmp, path);
    _exit (r.rv == 0 ? 0 : 1);
}

/* ---- a world of them ---- */

struct crowd {
    pid_t pids[RANKS_MAX * 2];
    bool killed[RANKS_MAX * 2];
    struct result results[RANKS_MAX * 2];
    int n;
};

static void add (struct crowd *c, const struct job *j)
{
    pid_t pid;

    fflush (NULL);
    if ((pid = fork ()) == 0)
        rank_main (j);
    assert_true (pid > 0);
    c->pids[c->n++] = pid;
}

static void kill_one (struct crowd *c, int i)
{
    kill (c->pids[i], SIGKILL);
    c->killed[i] = true;
}

static bool read_result (struct crowd *c, int i)
{
    char path[128];
    FILE *f;
    bool rv;

    snprintf (path, sizeof (path), "%s/result.%ld", dir, (long)c->pids[i]);
    if (!(f = fopen (path, "re")))
        return false;
    rv = fread (&c->results[i], sizeof (*c->results), 1, f) == 1;
    fclose (f);
    return rv;
}

/* Wait until all have ended; after 60 s that is a failure. */
static void wait_all (struct crowd *c)
{
    double end = monotonic () + 60;
    int status;

    for (int i = 0; i < c->n; i++) {
        while (waitpid (c->pids[i], &status, WNOHANG) == 0) {
            if (monotonic () > end) {
                for (int k = 0; k < c->n; k++)
                    kill (c->pids[k], SIGKILL);
                fail_msg ("rank %d hangs", i);
            }
            usleep (1000);
        }
        /* the one that was killed may have ended before */
        if (!read_result (c, i) && !c->killed[i])
            fail_msg ("rank %d ended with %x", i, status);
    }
}

/* One that was started so late that the training had ended. */
static bool came_late (const struct result *r)
{
    return r->rv != 0 && strstr (r->text, "the training has ended");
}

/* All that were not killed have trained to the end, to the right weights, or
 * have come too late.
 */
static long check_trained (struct crowd *c, int64_t steps, int64_t *restarts)
{
    uint64_t right = serial (steps);
    long n = 0;

    for (int i = 0; i < c->n; i++) {
        struct result *r = &c->results[i];
        if (c->killed[i])
            continue;
        if (came_late (r)) {
            n++;
            continue;
        }
        if (r->rv != 0)
            print_message ("# rank %d: rv %d at step %ld: %s\n",
                           i,
                           r->rv,
                           (long)r->step,
                           r->text);
        assert_int_equal (r->rv, 0);
        assert_int_equal (r->step, steps);
        assert_true (r->weights == right);
        if (restarts)
            *restarts += r->restarts;
        else
            assert_int_equal (r->restarts, 0);
        n++;
    }
    return n;
}

static long rounds (long usual)
{
    const char *text = getenv ("DL_ELASTIC_ROUNDS");

    return text ? atol (text) : usual;
}

static void nap (long us)
{
    struct timespec t = { us / 1000000, us % 1000000 * 1000 };

    nanosleep (&t, NULL);
}

static uint64_t random_state;

static long below (long n)
{
    return (long)(mix (++random_state) % (uint64_t)n);
}

static void clean (void)
{
    char cmd[128];

    snprintf (cmd, sizeof (cmd), "rm -rf %s/*", dir);
    assert_int_equal (system (cmd), 0);
}

static const struct job usual = {
    .steps = 40,
    .start = 4,
    .min = 1,
    .settle = 5,
    .timeout = 20,
    .pause_us = 1000,
};

static void test_undisturbed (void **state)
{
    struct crowd c = { .n = 0 };

    (void)state;
    for (int i = 0; i < 4; i++)
        add (&c, &usual);
    wait_all (&c);
    assert_int_equal (check_trained (&c, usual.steps, NULL), 4);
    assert_int_equal (c.results[0].world, 1);
    assert_int_equal (c.results[0].size, 4);
}

static void test_alone (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    (void)state;
    j.start = 1;
    add (&c, &j);
    wait_all (&c);
    assert_int_equal (check_trained (&c, j.steps, NULL), 1);
}

/* Kill 'n' of four at any instant, together or one after the other. */
static void kill_some (int n, bool first, long apart_us, int64_t *restarts)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    for (int i = 0; i < 4; i++)
        add (&c, &j);
    nap (below (150000));
    for (int k = 0; k < n; k++) {
        int i = first ? k : (int)below (4);
        while (c.killed[i])
            i = (i + 1) % 4;
        kill_one (&c, i);
        nap (apart_us ? below (apart_us) : 0);
    }
    wait_all (&c);
    assert_int_equal (check_trained (&c, j.steps, restarts), 4 - n);
    clean ();
}

static void test_one_killed (void **state)
{
    (void)state;
    for (long i = rounds (10); i > 0; i--)
        kill_some (1, false, 0, NULL);
}

static void test_rank_0_killed (void **state)
{
    (void)state;
    for (long i = rounds (4); i > 0; i--)
        kill_some (1, true, 0, NULL);
}

/* A rank may be lost with the one that has its copy: then they begin anew. */
static void test_two_killed (void **state)
{
    int64_t restarts = 0;

    (void)state;
    for (long i = rounds (6); i > 0; i--)
        kill_some (2, false, 0, &restarts);
    print_message ("# %ld times from the start\n", (long)restarts);
}

static void test_killed_while_forming (void **state)
{
    int64_t restarts = 0;

    (void)state;
    for (long i = rounds (6); i > 0; i--)
        kill_some (2, false, 30000, &restarts);
    for (long i = rounds (2); i > 0; i--)
        kill_some (3, false, 30000, &restarts);
    print_message ("# %ld times from the start\n", (long)restarts);
}

/* It dies while it commits: the commit before is whole. */
static void test_killed_in_commit (void **state)
{
    (void)state;
    for (long i = rounds (8); i > 0; i--) {
        struct crowd c = { .n = 0 };
        struct job j = usual, mortal = usual;
        mortal.die_at = 3 + below (30);
        mortal.die_us = below (600);
        for (int k = 0; k < 4; k++)
            add (&c, k == 2 ? &mortal : &j);
        c.killed[2] = true;
        wait_all (&c);
        assert_int_equal (check_trained (&c, j.steps, NULL), 3);
        clean ();
    }
}

/* One that comes later is taken in at a commit, and has the weights. */
static void test_joiner (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    (void)state;
    j.steps = 1000;
    j.start = 2;
    add (&c, &j);
    add (&c, &j);
    nap (100000);
    assert_int_equal (gate_put_target (dir, 3), 0);
    add (&c, &j);
    wait_all (&c);
    assert_int_equal (check_trained (&c, j.steps, NULL), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal (c.results[i].world, 2);
        assert_int_equal (c.results[i].size, 3);
        assert_int_equal (c.results[i].lost, 0);
    }
}

/* 2, 4, 1, 3 ranks by request; who is not needed is told so. */
static void test_scaled (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;
    int status, left = 0;

    (void)state;
    j.steps = 4000;
    j.start = 2;
    add (&c, &j);
    add (&c, &j);
    nap (100000);
    assert_int_equal (gate_put_target (dir, 4), 0);
    add (&c, &j);
    add (&c, &j);
    nap (2500000);
    assert_int_equal (gate_put_target (dir, 1), 0);
    for (double end = monotonic () + 10; left < 3 && monotonic () < end;) {
        for (int i = 0; i < 4; i++)
            if (!c.killed[i] && waitpid (c.pids[i], &status, WNOHANG) > 0) {
                assert_true (read_result (&c, i));
                assert_int_equal (c.results[i].rv, -1);
                assert_int_equal (c.results[i].error, ECANCELED);
                c.killed[i] = true;
                left++;
            }
        nap (1000);
    }
    assert_int_equal (left, 3);
    assert_int_equal (gate_put_target (dir, 3), 0);
    add (&c, &j);
    add (&c, &j);
    wait_all (&c);
    assert_int_equal (check_trained (&c, j.steps, NULL), 3);
    assert_int_equal (c.results[4].size, 3);
    assert_int_equal (c.results[4].world, 4);
}

/* A spare one waits, takes the place of one that was killed, and when the
 * training is over one that still waits is told so.
 */
static void test_spare (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    (void)state;
    j.steps = 600;
    j.start = 3;
    for (int i = 0; i < 3; i++)
        add (&c, &j);
    nap (100000);
    add (&c, &j);
    add (&c, &j);
    nap (300000);
    kill_one (&c, 1);
    wait_all (&c);
    for (int i = 3; i < 5; i++)
        if (c.results[i].rv != 0) {
            assert_int_equal (c.results[i].error, ECANCELED);
            assert_non_null (strstr (c.results[i].text, "has ended"));
            c.killed[i] = true;
        }
    assert_int_equal (check_trained (&c, j.steps, NULL), 3);
    assert_int_equal (c.results[0].size, 3);
    assert_int_equal (c.results[0].lost, 1);
    assert_true (c.killed[3] != c.killed[4]);
}

/* One that was frozen finds that the world went on, and comes in again. */
static void test_frozen (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual, sleepy = usual;

    (void)state;
    j.steps = sleepy.steps = 3000;
    j.settle = sleepy.settle = 1;
    sleepy.freeze_at = 20;
    for (int k = 0; k < 4; k++)
        add (&c, k == 1 ? &sleepy : &j);
    /* a time-out of 3 s, and 1 s to come */
    nap (6000000);
    kill (c.pids[1], SIGCONT);
    wait_all (&c);
    assert_int_equal (check_trained (&c, j.steps, NULL), 4);
    assert_int_equal (c.results[1].world, 3);
    assert_int_equal (c.results[0].size, 4);
}

/* Fewer than are needed say so, and do not wait for ever. */
static void test_too_few (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    (void)state;
    j.steps = 100000;
    j.start = j.min = 3;
    j.timeout = 2;
    for (int i = 0; i < 3; i++)
        add (&c, &j);
    nap (200000);
    kill_one (&c, 2);
    wait_all (&c);
    for (int i = 0; i < 2; i++) {
        assert_int_equal (c.results[i].rv, -1);
        assert_int_equal (c.results[i].error, ETIMEDOUT);
        assert_non_null (
            strstr (c.results[i].text, "2 of at least 3 ranks came in 2 s"));
    }
}

/* What dl elastic starts again takes part again; all at any instant. */
static void test_started_again (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    (void)state;
    j.steps = 1500;
    for (int i = 0; i < 4; i++)
        add (&c, &j);
    for (int i = 0; i < 6; i++) {
        nap (below (400000));
        kill_one (&c, i);
        add (&c, &j);
    }
    wait_all (&c);
    assert_int_equal (check_trained (&c, j.steps, &(int64_t){ 0 }), 4);
}

/* elastic.t rank STEPS PAUSE_US: a rank for elasticrun.t, where dl elastic
 * says the rest.
 */
static int be_rank (char **args)
{
    struct job j = { .steps = atol (args[0]),
                     .pause_us = atol (args[1]),
                     .loud = true };
    struct slurmdl_error err = { "" };
    struct slurmdl_elastic *e = slurmdl_elastic_open (NULL, &err);
    struct result r = { .rv = -1 };

    if (e && run (e, &j, &r, &err) == 0) {
        printf ("trained to step %ld: the weights are %s, %ld times lost\n",
                (long)r.step,
                r.weights == serial (j.steps) ? "right" : "wrong",
                (long)r.restarts);
        r.rv = r.weights == serial (j.steps) ? 0 : 1;
    } else if (r.error == ECANCELED) {
        printf ("%s\n", err.text);
        r.rv = 0;
    } else
        printf ("failed: %s\n", err.text);
    slurmdl_elastic_close (e);
    return r.rv ? 1 : 0;
}

#define T(f) IN_FOLDER (f)

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T (test_undisturbed),      T (test_alone),
        T (test_one_killed),       T (test_rank_0_killed),
        T (test_two_killed),       T (test_killed_while_forming),
        T (test_killed_in_commit), T (test_joiner),
        T (test_scaled),           T (test_spare),
        T (test_frozen),           T (test_too_few),
        T (test_started_again),
    };
    const char *seed;

    if (argc == 4 && !strcmp (argv[1], "rank"))
        return be_rank (argv + 2);
    seed = getenv ("DL_TEST_SEED");

    random_state =
        seed ? strtoull (seed, NULL, 10) : (uint64_t)time (NULL) * 1000;
    print_message ("# DL_TEST_SEED=%llu\n", (unsigned long long)random_state);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
