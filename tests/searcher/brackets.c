/* SPDX-License-Identifier: Apache-2.0 */
/* ASHA terminates and keeps to its preview, its limits and its progress. */
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static double smooth (const struct sweep *w, long trial, int64_t length)
{
    uint64_t r = w->config.seed * 31 + trial;

    (void)sweep_random (&r, 2);
    return sweep_random (&r, 1000000) + 1.0 / length;
}

CASE (test_out_of_order)
{
    static const double divisors[] = { 2, 2.5, 3, 4, 1.1 };

    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t r = seed * 7;
        struct sweep w = { .config = { .name = seed % 4 ? "adaptive_asha" : "asha",
                                       .seed = seed,
                                       .max_trials = 1 + sweep_random (&r, 150),
                                       .max_length = 1 + sweep_random (&r, 2000),
                                       .smaller_is_better = seed % 2,
                                       .divisor = divisors[seed % COUNT (divisors)],
                                       .max_rungs = 1 + sweep_random (&r, 7),
                                       .mode = seed % 3,
                                       .max_concurrent = sweep_random (&r, 40) },
                           .metric = smooth,
                           .workers = sweep_random (&r, 30),
                           .shuffle = seed };
        struct search_rung rungs[32];
        int n = searcher_preview (&w.config, NULL, 0, rungs, 32);

        sweep_run (&w);
        assert_int_equal (w.trials, w.config.max_trials);
        assert_int_equal (w.n_running, 0);
        assert_true (searcher_progress (w.s) == 1);
        assert_true (sweep_count (&w, rungs[n - 1].length) >= rungs[n - 1].trials);
        assert_int_equal (rungs[n - 1].length, w.config.max_length);
        if (w.config.max_concurrent)
            assert_true (w.most_running <= w.config.max_concurrent);
        sweep_free (&w);
    }
}

/* The preview is exact if the trials run from best to worst. */
CASE (test_preview_is_met)
{
    double values[500];

    for (int i = 0; i < 500; i++)
        values[i] = i;
    for (int mode = SEARCH_AGGRESSIVE; mode <= SEARCH_CONSERVATIVE; mode++)
        for (long trials = 1; trials <= 500; trials += 1 + trials / 3) {
            struct sweep w = { .config = SEARCH ("adaptive_asha", LADDER (trials, 937, 4, 5),
                                                 .mode = mode),
                               .metric = sweep_given,
                               .values = values,
                               .workers = 1 };
            struct search_rung rungs[5];
            int n = searcher_preview (&w.config, NULL, 0, rungs, 5);

            sweep_run (&w);
            for (int i = 0; i < n; i++)
                assert_int_equal (sweep_count (&w, rungs[i].length), rungs[i].trials);
            sweep_free (&w);
        }
}

static double not_a_number (const struct sweep *w, long trial, int64_t length)
{
    return trial % 3 == 0 ? INFINITY : trial % 3 == 1 ? -INFINITY : NAN;
}

static bool always (const struct sweep *w, long trial, int segment)
{
    return true;
}

CASE (test_all_bad)
{
    static const char *const names[] = { "single", "grid", "random", "asha", "adaptive_asha" };

    for (size_t i = 0; i < 2 * COUNT (names); i++) {
        struct sweep w = { .config = { .name = names[i / 2],
                                       LADDER (10, 1000, 3, 4),
                                       .smaller_is_better = i % 4 < 2,
                                       .mode = SEARCH_CONSERVATIVE },
                           .metric = not_a_number,
                           .fails = i % 2 ? always : NULL,
                           .workers = 4,
                           .shuffle = 5 };

        sweep_run (&w);
        assert_int_equal (w.trials, i / 2 < 2 ? 1 : 10);
        for (long t = 1; t <= w.trials; t++)
            assert_int_equal (w.segments[t], 1);
        sweep_free (&w);
    }
}

/* A bad trial counts as a result of its rung.  ASHA promotes the good trial once the two bad ones
 * make it the best third.
 */
CASE (test_bad_counts)
{
    static const double values[] = { .5, NAN, INFINITY };
    struct sweep w = { .config = SEARCH ("asha", LADDER (3, 3, 3, 2)),
                       .metric = sweep_given,
                       .values = values };

    sweep_run (&w);
    assert_int_equal (w.segments[1], 2);
    assert_int_equal (w.segments[2], 1);
    assert_int_equal (w.segments[3], 1);
    sweep_free (&w);
}

/* max_concurrent holds even if it is below the number of brackets, here 3. */
CASE (test_limit_below_brackets)
{
    struct sweep w = { .config = SEARCH ("adaptive_asha", LADDER (64, 1000, 4, 5),
                                         .mode = SEARCH_STANDARD, .max_concurrent = 2),
                       .metric = smooth };

    sweep_run (&w);
    assert_int_equal (w.trials, 64);
    assert_int_equal (w.most_running, 2);
    sweep_free (&w);
}

/* Split max_concurrent between the brackets.  Without a limit, each bracket starts all its trials
 * at once; the last one has 5.
 */
CASE (test_limits)
{
    static const struct {
        long concurrent;
        long running[3]; /* trials that start at 15, 62 and 250 */
    } cases[] = { { 16, { 6, 5, 5 } }, { 0, { 45, 14, 5 } }, { 7, { 3, 2, 2 } } };
    struct search_config config = { .name = "adaptive_asha",
                                    .max_trials = 64,
                                    .max_length = 1000,
                                    .divisor = 4,
                                    .max_rungs = 5,
                                    .mode = SEARCH_STANDARD };

    for (size_t i = 0; i < COUNT (cases); i++) {
        long seen[3] = { 0 };
        struct search_op op;
        struct searcher *s;

        config.max_concurrent = cases[i].concurrent;
        s = searcher_create (&config, NULL, 0);
        assert_non_null (s);
        while (searcher_ask (s, &op, NULL) == SEARCH_RUN) {
            assert_int_equal (searcher_begin (s, &op, NULL), 0);
            seen[op.length == 15 ? 0 : op.length == 62 ? 1 : 2]++;
        }
        for (int k = 0; k < 3; k++)
            assert_int_equal (seen[k], cases[i].running[k]);
        searcher_destroy (s);
    }
}

/* With one worker, 7 trials that start at 25 and 3 that start at 100 take turns. */
CASE (test_turns)
{
    static const int64_t first[] = { 25, 100, 25, 25, 100, 25, 25, 100, 25, 25 };
    struct sweep w = { .config = SEARCH ("adaptive_asha", LADDER (10, 100, 4, 5),
                                         .mode = SEARCH_STANDARD),
                       .metric = smooth,
                       .workers = 1 };

    sweep_run (&w);
    assert_int_equal (w.trials, 10);
    for (long t = 1; t <= 10; t++)
        assert_int_equal (w.first[t], first[t - 1]);
    sweep_free (&w);
}

/* ASHA plans 12 segments of 1000, 4 of 2000 and 1 of 6000, in total 26000. */
CASE (test_progress)
{
    struct search_config config = SEARCH ("asha", LADDER (12, 9000, 3, 3));
    struct searcher *s = searcher_create (&config, NULL, 0);
    struct search_op op;

    assert_non_null (s);
    for (int i = 1; i <= 4; i++)
        sweep_next (s, NULL);
    for (int i = 1; i <= 4; i++) {
        assert_int_equal (searcher_observe (s, i, 1000, &(double){ i }), 0);
        assert_true (searcher_progress (s) == i / 26.0);
    }
    searcher_destroy (s);
    config.name = "random";
    config.max_trials = 4;
    s = searcher_create (&config, NULL, 0);
    assert_non_null (s);
    while (searcher_ask (s, &op, NULL) == SEARCH_RUN)
        assert_int_equal (searcher_begin (s, &op, NULL), 0);
    for (int i = 1; i <= 4; i++) {
        assert_int_equal (searcher_exit (s, i), 0);
        assert_true (searcher_progress (s) == i / 4.0);
    }
    assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_DONE);
    searcher_destroy (s);
}

RUN_CASES ()
