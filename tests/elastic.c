/* SPDX-License-Identifier: Apache-2.0 */
/* Training goes on when ranks are killed, frozen, added and taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime/clock.h"
#include "runtime/comm/elastic/elastic.h"
#include "tests/elasticrank.h"
#include "tests/folder.h"

static void be_rank (const struct job *j)
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
        r.rv = rank_train (e, j, &r, &err);
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
        be_rank (j);
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

/* Many: DL_TEST_LONG, or so many: DL_ELASTIC_ROUNDS. */
static long rounds (long usual)
{
    const char *text = getenv ("DL_ELASTIC_ROUNDS");

    return text ? atol (text) : getenv ("DL_TEST_LONG") ? 50 : usual;
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

/* Whether that world has been agreed on and, as rank 0 has taken away who came,
 * its ranks have met.
 */
static bool has_met (long number)
{
    char path[128];
    glob_t g = { 0 };
    bool rv;

    snprintf (path, sizeof (path), "%s/world.%ld", dir, number);
    if (access (path, F_OK) < 0)
        return false;
    snprintf (path, sizeof (path), "%s/member.%ld.*", dir, number);
    rv = glob (path, 0, NULL, &g) == GLOB_NOMATCH;
    globfree (&g);
    return rv;
}

static void await_world (long number)
{
    for (double end = monotonic () + 50;
         !has_met (number) && monotonic () < end;)
        nap (5000);
    assert_true (has_met (number));
}

static void await_file (const char *pattern)
{
    char path[128];
    glob_t g = { 0 };
    int rv = GLOB_NOMATCH;

    snprintf (path, sizeof (path), "%s/%s", dir, pattern);
    for (double end = monotonic () + 50; rv != 0 && monotonic () < end;) {
        rv = glob (path, 0, NULL, &g);
        globfree (&g);
        nap (5000);
    }
    assert_int_equal (rv, 0);
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
    for (long i = rounds (5); i > 0; i--)
        kill_some (1, false, 0, NULL);
}

static void test_rank_0_killed (void **state)
{
    (void)state;
    for (long i = rounds (2); i > 0; i--)
        kill_some (1, true, 0, NULL);
}

/* A rank may be lost with the one that has its copy: then they begin anew. */
static void test_two_killed (void **state)
{
    int64_t restarts = 0;

    (void)state;
    for (long i = rounds (3); i > 0; i--)
        kill_some (2, false, 0, &restarts);
    print_message ("# %ld times from the start\n", (long)restarts);
}

static void test_killed_while_forming (void **state)
{
    int64_t restarts = 0;

    (void)state;
    for (long i = rounds (3); i > 0; i--)
        kill_some (2, false, 30000, &restarts);
    for (long i = rounds (1); i > 0; i--)
        kill_some (3, false, 30000, &restarts);
    print_message ("# %ld times from the start\n", (long)restarts);
}

/* It dies while it commits: the commit before is whole. */
static void test_killed_in_commit (void **state)
{
    (void)state;
    for (long i = rounds (4); i > 0; i--) {
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
    await_world (1);
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
    j.steps = 3000;
    j.start = 2;
    add (&c, &j);
    add (&c, &j);
    await_world (1);
    assert_int_equal (gate_put_target (dir, 4), 0);
    add (&c, &j);
    add (&c, &j);
    await_world (2);
    assert_int_equal (gate_put_target (dir, 1), 0);
    for (double end = monotonic () + 50; left < 3 && monotonic () < end;) {
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
    await_world (1);
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

/* A spare one may wait for longer than a world may take to be formed. */
static void test_patient_spare (void **state)
{
    struct crowd c = { .n = 0 };
    struct job j = usual, spare = usual;

    (void)state;
    j.steps = spare.steps = 1000;
    j.start = spare.start = 2;
    spare.timeout = 4;
    j.pause_us = 10000;
    add (&c, &j);
    add (&c, &j);
    await_world (1);
    add (&c, &spare);
    await_file ("ask.*");
    nap (4500000);
    kill_one (&c, 1);
    wait_all (&c);
    assert_int_equal (check_trained (&c, j.steps, NULL), 2);
    assert_int_equal (c.results[0].size, 2);
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
    await_world (2);
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
    j.timeout = 4;
    for (int i = 0; i < 3; i++)
        add (&c, &j);
    await_world (1);
    kill_one (&c, 2);
    wait_all (&c);
    for (int i = 0; i < 2; i++) {
        assert_int_equal (c.results[i].rv, -1);
        assert_int_equal (c.results[i].error, ETIMEDOUT);
        assert_non_null (
            strstr (c.results[i].text, "of at least 3 ranks came in 4 s"));
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

#define T(f) IN_FOLDER (f)

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T (test_undisturbed),      T (test_alone),
        T (test_one_killed),       T (test_rank_0_killed),
        T (test_two_killed),       T (test_killed_while_forming),
        T (test_killed_in_commit), T (test_joiner),
        T (test_scaled),           T (test_spare),
        T (test_patient_spare),    T (test_frozen),
        T (test_too_few),          T (test_started_again),
    };
    const char *seed;

    if (argc >= 4 && !strcmp (argv[1], "rank"))
        return rank_main (argv + 2);
    seed = getenv ("DL_TEST_SEED");

    random_state =
        seed ? strtoull (seed, NULL, 10) : (uint64_t)time (NULL) * 1000;
    print_message ("# DL_TEST_SEED=%llu\n", (unsigned long long)random_state);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
