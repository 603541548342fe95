/* SPDX-License-Identifier: Apache-2.0 */
/* Training continues when ranks are killed, frozen, added and removed. */
#include <glob.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/comm/elastic/folder.h"
#include "tests/folder.h"
#include "tests/runtime/comm/elasticcrowd.h"

static void add (struct crowd *c, const struct job *j)
{
    crowd_add (c, dir, j);
}

/* How many rounds: DL_ELASTIC_ROUNDS, else 50 with DL_TEST_SOAK. */
static long rounds (long usual)
{
    const char *text = getenv ("DL_ELASTIC_ROUNDS");

    return text ? atol (text) : getenv ("DL_TEST_SOAK") ? 50 : usual;
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

/* Whether this world has been agreed on and its ranks have met: rank 0 then
 * removes the member files.
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
    for (double end = monotonic () + 50; !has_met (number) && monotonic () < end;)
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

/* Wait for a newest world of this size whose ranks have met; return its number. */
static long await_size (long size)
{
    for (double end = monotonic () + 50; monotonic () < end; nap (5000)) {
        struct signs v = { 0 };
        struct generation *w;
        long number, n;
        assert_int_equal (signs_look (&v, dir, NULL), 0);
        number = (long)v.highest;
        w = folder_get_generation (dir, v.highest);
        n = w ? w->size : 0;
        free (w);
        signs_free (&v);
        if (n == size && has_met (number))
            return number;
    }
    fail_msg ("no world of %ld ranks", size);
    return -1;
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

FOLDER_CASE (test_undisturbed)
{
    struct crowd c = { .n = 0 };

    for (int i = 0; i < 4; i++)
        add (&c, &usual);
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, usual.steps, NULL), 4);
    assert_int_equal (c.results[0].generation, 1);
    assert_int_equal (c.results[0].size, 4);
}

FOLDER_CASE (test_alone)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    j.start = 1;
    add (&c, &j);
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, j.steps, NULL), 1);
}

/* Kill 'n' of four at a random time, at once or one by one. */
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
        crowd_kill (&c, i);
        nap (apart_us ? below (apart_us) : 0);
    }
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, j.steps, restarts), 4 - n);
    clean ();
}

FOLDER_CASE (test_one_killed)
{
    for (long i = rounds (5); i > 0; i--)
        kill_some (1, false, 0, NULL);
}

FOLDER_CASE (test_rank_0_killed)
{
    for (long i = rounds (2); i > 0; i--)
        kill_some (1, true, 0, NULL);
}

/* If a rank dies together with the one that has its copy, training restarts. */
FOLDER_CASE (test_two_killed)
{
    int64_t restarts = 0;

    for (long i = rounds (3); i > 0; i--)
        kill_some (2, false, 0, &restarts);
    print_message ("# %ld times from the start\n", (long)restarts);
}

FOLDER_CASE (test_killed_while_forming)
{
    int64_t restarts = 0;

    for (long i = rounds (3); i > 0; i--)
        kill_some (2, false, 30000, &restarts);
    for (long i = rounds (1); i > 0; i--)
        kill_some (3, false, 30000, &restarts);
    print_message ("# %ld times from the start\n", (long)restarts);
}

/* A rank dies while it commits: the previous commit must survive. */
FOLDER_CASE (test_killed_in_commit)
{
    for (long i = rounds (4); i > 0; i--) {
        struct crowd c = { .n = 0 };
        struct job j = usual, mortal = usual;
        mortal.die_at = 3 + below (30);
        mortal.die_us = below (600);
        for (int k = 0; k < 4; k++)
            add (&c, k == 2 ? &mortal : &j);
        c.killed[2] = true;
        crowd_wait (&c);
        assert_int_equal (crowd_check (&c, j.steps, NULL), 3);
        clean ();
    }
}

/* A late rank joins at a commit and receives the weights. */
FOLDER_CASE (join_joiner)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    j.steps = 1000;
    j.start = 2;
    add (&c, &j);
    add (&c, &j);
    await_world (1);
    assert_int_equal (membership_put_target (dir, 3), 0);
    add (&c, &j);
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, j.steps, NULL), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal (c.results[i].generation, 2);
        assert_int_equal (c.results[i].size, 3);
        assert_int_equal (c.results[i].lost, 0);
    }
}

/* Ranks that joined number their commits like the first ones.  A commit that
 * only neighbouring joiners hold must survive the loss of another rank.
 */
FOLDER_CASE (join_joiners_keep)
{
    char enough[128];

    snprintf (enough, sizeof (enough), "%s/enough", dir);
    for (long i = rounds (2); i > 0; i--) {
        struct crowd c = { .n = 0 };
        struct job j = usual;
        long world;
        j.steps = 1000000;
        j.until = enough;
        j.start = 2;
        add (&c, &j);
        add (&c, &j);
        await_world (1);
        assert_int_equal (membership_put_target (dir, 5), 0);
        for (int k = 0; k < 3; k++)
            add (&c, &j);
        world = await_size (5);
        nap (below (150000));
        crowd_kill (&c, (int)below (2));
        await_world (world + 1);
        assert_int_equal (fclose (fopen (enough, "we")), 0);
        crowd_wait (&c);
        assert_int_equal (crowd_check (&c, c.results[2].step, NULL), 4);
        clean ();
    }
}

/* Scale to 2, 4, 1 and 3 ranks; a rank that is not needed gets ECANCELED. */
FOLDER_CASE (join_scaled)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;
    int status, left = 0;

    j.steps = 3000;
    j.start = 2;
    add (&c, &j);
    add (&c, &j);
    await_world (1);
    assert_int_equal (membership_put_target (dir, 4), 0);
    add (&c, &j);
    add (&c, &j);
    await_world (2);
    assert_int_equal (membership_put_target (dir, 1), 0);
    for (double end = monotonic () + 50; left < 3 && monotonic () < end;) {
        for (int i = 0; i < 4; i++)
            if (!c.killed[i] && waitpid (c.pids[i], &status, WNOHANG) > 0) {
                assert_true (crowd_read (&c, i));
                assert_int_equal (c.results[i].rv, -1);
                assert_int_equal (c.results[i].error, ECANCELED);
                c.killed[i] = true;
                left++;
            }
        nap (1000);
    }
    assert_int_equal (left, 3);
    assert_int_equal (membership_put_target (dir, 3), 0);
    add (&c, &j);
    add (&c, &j);
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, j.steps, NULL), 3);
    assert_int_equal (c.results[4].size, 3);
    assert_int_equal (c.results[4].generation, 4);
}

/* A spare waits and replaces a rank that is killed.  A spare that still waits
 * when the training is over gets ECANCELED.
 */
FOLDER_CASE (join_spare)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    j.steps = 600;
    j.start = 3;
    for (int i = 0; i < 3; i++)
        add (&c, &j);
    await_world (1);
    add (&c, &j);
    add (&c, &j);
    nap (300000);
    crowd_kill (&c, 1);
    crowd_wait (&c);
    for (int i = 3; i < 5; i++)
        if (c.results[i].rv != 0) {
            assert_int_equal (c.results[i].error, ECANCELED);
            assert_non_null (strstr (c.results[i].text, "has ended"));
            c.killed[i] = true;
        }
    assert_int_equal (crowd_check (&c, j.steps, NULL), 3);
    assert_int_equal (c.results[0].size, 3);
    assert_int_equal (c.results[0].lost, 1);
    assert_true (c.killed[3] != c.killed[4]);
}

/* A spare may wait longer than the timeout for forming a world. */
FOLDER_CASE (join_patient_spare)
{
    struct crowd c = { .n = 0 };
    struct job j = usual, spare = usual;

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
    crowd_kill (&c, 1);
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, j.steps, NULL), 2);
    assert_int_equal (c.results[0].size, 2);
}

/* A rank that was frozen finds that the world moved on, and joins again. */
FOLDER_CASE (test_frozen)
{
    struct crowd c = { .n = 0 };
    struct job j = usual, sleepy = usual;

    j.steps = sleepy.steps = 3000;
    j.settle = sleepy.settle = 1;
    sleepy.freeze_at = 20;
    for (int k = 0; k < 4; k++)
        add (&c, k == 1 ? &sleepy : &j);
    /* the others time out after 3 s, and settle for 1 s */
    await_world (2);
    kill (c.pids[1], SIGCONT);
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, j.steps, NULL), 4);
    assert_int_equal (c.results[1].generation, 3);
    assert_int_equal (c.results[0].size, 4);
}

/* Too few ranks report it, and do not wait forever. */
FOLDER_CASE (test_too_few)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    j.steps = 100000;
    j.start = j.min = 3;
    j.timeout = 4;
    for (int i = 0; i < 3; i++)
        add (&c, &j);
    await_world (1);
    crowd_kill (&c, 2);
    crowd_wait (&c);
    for (int i = 0; i < 2; i++) {
        assert_int_equal (c.results[i].rv, -1);
        assert_int_equal (c.results[i].error, ETIMEDOUT);
        assert_non_null (strstr (c.results[i].text, "of at least 3 ranks joined within 4 s"));
    }
}

/* Ranks that are alive but were given up with their node exit, or join again. */
FOLDER_CASE (test_thought_lost)
{
    struct crowd c = { .n = 0 };
    struct job j = usual, old = usual;
    char enough[128], trace[128];
    int i = 0;

    snprintf (enough, sizeof (enough), "%s/enough", dir);
    snprintf (trace, sizeof (trace), "%s/trace", dir);
    j.steps = 1000000;
    j.start = 2;
    j.until = enough;
    j.trace = trace;
    old = j;
    old.unit = "0.1";
    add (&c, &old);
    add (&c, &old);
    await_world (1);
    assert_int_equal (membership_put_ended (dir, old.unit), 0);
    add (&c, &j);
    add (&c, &j);
    for (double end = monotonic () + 50; !crowd_rests (trace, 1) && monotonic () < end;)
        nap (5000);
    assert_true (crowd_rests (trace, 1));
    assert_int_equal (fclose (fopen (enough, "we")), 0);
    crowd_wait (&c);
    while (i < 3 && c.results[i].rv != 0)
        i++;
    for (int k = 0; k < 2; k++)
        c.killed[k] = c.results[k].error == ECANCELED;
    assert_true (crowd_check (&c, c.results[i].step, NULL) >= 2);
}

/* Kill ranks at random times; those that dl elastic starts again join in. */
FOLDER_CASE (join_started_again)
{
    struct crowd c = { .n = 0 };
    struct job j = usual;

    j.steps = 1500;
    for (int i = 0; i < 4; i++)
        add (&c, &j);
    for (int i = 0; i < 6; i++) {
        nap (below (400000));
        crowd_kill (&c, i);
        add (&c, &j);
    }
    crowd_wait (&c);
    assert_int_equal (crowd_check (&c, j.steps, &(int64_t){ 0 }), 4);
}

/* Two programs with this source run at the same time. */
int main (int argc, char **argv)
{
    const char *seed = getenv ("DL_TEST_SEED");

    if (argc >= 4 && !strcmp (argv[1], "rank"))
        return rank_main (argv + 2);
    random_state = seed ? strtoull (seed, NULL, 10) : (uint64_t)time (NULL) * 1000;
    print_message ("# DL_TEST_SEED=%llu\n", (unsigned long long)random_state);
    if (strstr (argv[0], "elasticjoins"))
        cmocka_set_test_filter ("join_*");
    else
        cmocka_set_skip_filter ("join_*");
    return run_cases (NULL, NULL);
}
