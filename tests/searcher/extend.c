/* SPDX-License-Identifier: Apache-2.0 */
/* Searches that continue with changed limits. */
#include <limits.h>

#include "tests/searcher/extend.h"

/* ---- extend a finished search ---- */

CASE (test_more_trials)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct run *r = run_open (k, NULL);
        long before;
        finish (r);
        before = r->trials;
        if (takes_trials (k))
            assert_int_equal (before, 12);
        for (long want = 20; want <= 45; want += 25) {
            extend (r, want, 0);
            assert_true ((searcher_progress (r->s) < 1) == takes_trials (k));
            finish (r);
            assert_int_equal (r->trials, takes_trials (k) ? want : before);
            assert_true (count_at (r, 9) > 0);
        }
        extend (r, 5, 0);
        extend (r, 0, 0);
        extend (r, 0, 9);
        assert_true (searcher_progress (r->s) == 1);
        finish (r);
        extend (r, 46, 9);
        finish (r);
        if (takes_trials (k))
            assert_int_equal (r->trials, 46);
        run_close (r);
    }
}

/* After an extension to a greater length, methods without rungs train every trial that was not
 * stopped to the new length; methods with rungs train the best of those at the old maximum.
 */
CASE (test_longer)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct run *r = run_open (k, NULL);
        bool full = !(k->needs & HAS_RUNGS);
        long at_top, stopped = 0;
        finish (r);
        at_top = count_at (r, 9);
        assert_true (at_top > 0 && count_above (r, 9) == 0);
        extend (r, 0, 60);
        assert_true (searcher_progress (r->s) < 1);
        finish (r);
        for (long i = 1; i <= r->trials; i++)
            stopped += r->job[i].stopped && r->job[i].length < 60;
        assert_true (count_at (r, 60) > 0);
        assert_int_equal (count_above (r, 60), 0);
        if (full)
            assert_int_equal (count_at (r, 60), r->trials - stopped);
        else if (!strcmp (k->name, "pbt"))
            assert_int_equal (count_at (r, 60), 4);
        else /* at least one per bracket continues */
            assert_in_range (count_above (r, 9), 1, at_top);
        extend (r, takes_trials (k) ? r->trials + 8 : 0, 100);
        finish (r);
        assert_true (count_at (r, 100) > 0);
        run_close (r);
    }
}

/* Compare the counts per rung with numbers worked out by hand. */
CASE (test_ladders)
{
    struct run *r =
        run_open (kind ("halving"), &(struct search_config){ .max_trials = 27, .max_length = 9 });

    finish (r);
    assert_int_equal (count_at (r, 1), 18);
    assert_int_equal (count_at (r, 3), 6);
    assert_int_equal (count_at (r, 9), 3);
    extend (r, 36, 100);
    finish (r);
    /* of the first 27 trials 3 reached 9 and 1 continues; the new 9 use 1, 3, 9, 27, 81, 100 */
    assert_int_equal (count_at (r, 1), 18 + 6);
    assert_int_equal (count_at (r, 3), 6 + 2);
    assert_int_equal (count_at (r, 9), 2);
    assert_int_equal (count_at (r, 27), 0);
    assert_int_equal (count_at (r, 100), 2);
    run_close (r);
    r = run_open (kind ("asha"), &(struct search_config){ .max_trials = 81, .max_length = 3 });
    finish (r);
    assert_true (count_at (r, 3) >= 27);
    extend (r, 0, 20);
    assert_int_equal (searcher_ask (r->s, &(struct search_op){ 0 }, (double[DIMS]){ 0 }),
                      SEARCH_RUN);
    finish (r);
    assert_in_range (count_above (r, 3), 9, 12);
    assert_in_range (count_above (r, 9), 3, 4);
    assert_int_equal (count_above (r, 9), count_at (r, 20));
    run_close (r);
}

/* ---- extend a running search ---- */

CASE (test_midst)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (int seed = 1; seed <= (is_slow (k) ? 2 : 12); seed++) {
            struct run *r = run_open (k, NULL);
            r->random = seed;
            r->workers = 1 + seed % 6;
            (void)advance (r, 3 * seed);
            extend (r, 24, 27);
            (void)advance (r, 5);
            extend (r, 30, 0);
            extend (r, 0, 30);
            (void)advance (r, 7);
            finish (r);
            if (takes_trials (k))
                assert_int_equal (r->trials, 30);
            assert_true (count_at (r, 30) > 0);
            if (!(k->needs & (HAS_RUNGS | HAS_REPORTS)))
                assert_int_equal (count_at (r, 30), r->trials);
            run_close (r);
        }
}

static long accepted (const struct run *r)
{
    long n = 0;

    for (long i = 1; i <= r->trials; i++)
        n += !r->job[i].bad;
    return n;
}

/* After rejections, some brackets may have started more trials than their share of the new
 * total.
 */
CASE (test_rejected)
{
    const struct search_config brackets = { .max_trials = 40, .mode = SEARCH_CONSERVATIVE };

    for (long seed = 1; seed < 200; seed++) {
        struct run *r = run_open (kind ("adaptive_asha"), &brackets);
        long want;
        r->random = (uint64_t)seed;
        r->workers = 1;
        r->rejects = 50;
        (void)advance (r, 3 + seed % 20);
        want = accepted (r) > 0 ? accepted (r) : 1;
        extend (r, want, 0);
        r->rejects = 0;
        finish (r);
        assert_int_equal (accepted (r), want);
        run_close (r);
    }
}

CASE (test_fewer)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (int events = 1; events <= 24; events += is_slow (k) ? 6 : 1) {
            struct run *r = run_open (k, NULL);
            long before;
            (void)advance (r, events);
            before = r->trials;
            extend (r, 3, 0);
            finish (r);
            if (takes_trials (k))
                assert_int_equal (r->trials, before > 3 ? before : 3);
            assert_true (count_at (r, 9) > 0);
            extend (r, 15, 0);
            finish (r);
            if (takes_trials (k))
                assert_int_equal (r->trials, 15);
            run_close (r);
        }
}

/* Random extensions, failures, rejections and revivals: the search still finishes. */
CASE (test_anything)
{
    const char *more = getenv ("FUZZ"); /* multiplies the number of seeds */
    int times = more ? atoi (more) : 1;

    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (int seed = 1; seed <= (is_slow (k) ? 4 : 20) * times; seed++) {
            bool repeats = !(k->needs & HAS_REPORTS) && strcmp (k->name, "pbt");
            struct run *r = run_open (
                k, &(struct search_config){
                       .repeats = repeats && seed % 3 == 0 ? 3 : 0,
                       .objectives = seed % 3 && seed % 4 == 0 && k->needs & HAS_OBJECTIVES ? 2 : 0,
                       .max_length = seed % 4 == 0 && strcmp (k->name, "pbt") ? 1 : 9,
                       .cost_aware = seed % 2 && !strcmp (k->name, "gp"),
                   });
            int64_t length = r->config.max_length;
            r->random = 77 * seed;
            r->fails = seed % 5 * 15;
            /* repeats of a rejected point cannot be revived */
            r->rejects = r->config.repeats ? 0 : seed % 2 * 10;
            for (int i = 0; i < 8; i++) {
                (void)advance (r, sweep_random (&r->random, 30));
                if (chance (r, 40))
                    extend (r, 1 + sweep_random (&r->random, 40), 0);
                if (chance (r, 30) && length < 60)
                    extend (r, 0, length += sweep_random (&r->random, 12));
                for (long t = 1; t <= r->trials; t++)
                    if (r->job[t].failed && chance (r, 50))
                        revive (r, t);
            }
            r->fails = r->rejects = 0;
            finish (r);
            for (long t = 1; t <= r->trials; t++)
                if (r->job[t].failed)
                    revive (r, t);
            finish (r);
            run_close (r);
        }
}

/* ---- what the model knows after an extension ---- */

/* An extended search continues like one that had the greater length from the start and saw the
 * same values.
 */
CASE (test_values)
{
    static const char *const names[] = { "gp", "tpe", "nsga2", "auto" };

    for (size_t k = 0; k < COUNT (names); k++) {
        struct run *a = run_open (kind (names[k]), &(struct search_config){ .max_length = 1 });
        struct search_config config = a->config;
        struct searcher *b;
        struct search_op op, same;
        double x[DIMS], y[DIMS];
        config.max_length = strcmp (names[k], "auto") ? 40 : 1;
        config.max_trials = 13;
        b = searcher_create (&config, space, DIMS);
        finish (a);
        extend (a, 0, 40);
        finish (a);
        extend (a, 13, 0);
        for (long i = 1; i <= 12; i++) {
            op = (struct search_op){ .trial = i, .fresh = true, .length = config.max_length };
            assert_int_equal (searcher_begin (b, &op, a->job[i].x), 0);
            assert_int_equal (
                searcher_observe (b, i, config.max_length, &(double){ metric (a->job + i, 40) }),
                0);
        }
        assert_int_equal (searcher_ask (a->s, &op, x), SEARCH_RUN);
        assert_int_equal (searcher_ask (b, &same, y), SEARCH_RUN);
        assert_memory_equal (x, y, sizeof (x));
        searcher_destroy (b);
        run_close (a);
    }
}

CASE (test_cube)
{
    struct run *r = run_open (kind ("lhs"), &(struct search_config){ .max_trials = 10 });
    bool same = true;

    finish (r);
    extend (r, 20, 0);
    finish (r);
    for (long block = 0; block < 2; block++) {
        int seen = 0;
        for (long i = 1; i <= 10; i++)
            seen |= 1 << (int)(r->job[10 * block + i].x[0] * 10);
        assert_int_equal (seen, 1023);
    }
    for (long i = 1; i <= 10; i++)
        same = same && (int)(r->job[i].x[0] * 10) == (int)(r->job[10 + i].x[0] * 10);
    assert_false (same);
    run_close (r);
}

/* ---- limits ---- */

CASE (test_budget)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct run *r = run_open (k, &(struct search_config){ .max_seconds = 1 });
        finish (r);
        extend (r, 30, 20);
        assert_true (searcher_progress (r->s) == 1); /* the budget is still used up */
        assert_int_equal (searcher_extend (&r->s, 0, 0, 1e6), 0);
        assert_int_equal (searcher_extend (&r->twin, 0, 0, 1e6), 0);
        assert_true (searcher_progress (r->s) < 1);
        finish (r);
        assert_true (count_at (r, 20) > 0);
        if (takes_trials (k))
            assert_int_equal (r->trials, 30);
        run_close (r);
    }
}

CASE (test_errors)
{
    static const struct {
        long trials;
        int64_t length;
        double seconds;
    } bad[] = {
        { -1, 0, 0 },       { 10000001, 0, 0 },  { 0, 8, 0 },      { 0, -1, 0 },
        { 20, 8, 0 },       { 0, INT64_MAX, 0 }, { 0, 0, -1 },     { 0, 0, NAN },
        { LONG_MIN, 0, 0 }, { 0, INT64_MIN, 0 }, { 30, 30, -1e9 },
    };

    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct run *r = run_open (k, NULL);
        (void)advance (r, 9);
        for (size_t i = 0; i < COUNT (bad); i++) {
            struct searcher *before = r->s;
            errno = 0;
            assert_int_equal (searcher_extend (&r->s, bad[i].trials, bad[i].length, bad[i].seconds),
                              -1);
            assert_int_equal (errno, EINVAL);
            assert_ptr_equal (r->s, before);
            assert_true (same_bytes (r->s, r->twin));
        }
        for (long i = -2; i <= r->trials + 2; i++) {
            assert_int_equal (searcher_revive (r->s, i), -1);
            assert_int_equal (errno, EINVAL);
        }
        assert_int_equal (searcher_revive (r->s, LONG_MIN), -1);
        assert_int_equal (searcher_revive (r->s, LONG_MAX), -1);
        assert_true (same_bytes (r->s, r->twin));
        run_close (r);
    }
}

/* Extend the length until the table is full; the search can still finish after that. */
CASE (test_room)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct run *r = run_open (k, NULL);
        int64_t length = 9;
        int rv = 0, n = 0;
        for (; rv == 0; n++) {
            (void)advance (r, 3);
            length++;
            rv = searcher_extend (&r->s, 0, length, 0);
            assert_int_equal (searcher_extend (&r->twin, 0, length, 0), rv);
            swap (r);
        }
        assert_int_equal (errno, EINVAL);
        assert_in_range (n, 20, 33);
        finish (r);
        assert_true (count_at (r, length - 1) > 0);
        run_close (r);
    }
}

RUN_CASES ()
