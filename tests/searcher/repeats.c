/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated trials, and searches with a limit on their seconds. */
#include "tests/searcher/plane.h"

static double repeated (const struct sweep *w, long trial, int64_t length)
{
    return bowl (w, trial, length) + 0.1 * (trial % 3);
}

static bool third_fails (const struct sweep *w, long trial, int segment)
{
    return trial == 5 || trial == 30;
}

/* Run one segment in 's' that stands for these three repeats, and observe their mean. */
static void tell_mean (struct searcher *s, const struct event e[6])
{
    struct search_op op;
    double x[2], sum = 0;

    assert_int_equal (searcher_ask (s, &op, x), SEARCH_RUN);
    assert_int_equal (op.length, e->op.length);
    for (int r = 0; r < 6; r++) {
        assert_int_equal (e[r].op.trial, 3 * op.trial - 2 + r / 2);
        assert_int_equal (e[r].op.fresh, op.fresh);
        if (op.fresh && r % 2 == 0)
            assert_memory_equal (e[r].x, x, sizeof (x));
        sum += e[r].what == EVENT_TELL ? e[r].value : e[r].what == EVENT_EXIT ? (double)NAN : 0;
    }
    assert_int_equal (searcher_begin (s, &op, x), 0);
    sum /= 3;
    assert_int_equal (searcher_observe (s, op.trial, op.length, &sum), 0);
}

/* A search with repeats proposes the same points as one without that observes the means. */
CASE (test_repeats)
{
    static const char *const names[] = { "random", "tpe", "asha", "halving", "cmaes", "pasha" };

    for (size_t k = 0; k < COUNT (names); k++)
        for (int fails = 0; fails < 2; fails++) {
            struct sweep w = start (names[k], k + 1), plain = w;
            struct searcher *s;
            long done = 0;

            w.config.repeats = 3;
            w.metric = repeated;
            w.fails = fails ? third_fails : NULL;
            w.workers = plain.workers = 1;
            w.shuffle = plain.shuffle = 0;
            sweep_run (&w);
            assert_int_equal (w.trials, 90);
            s = searcher_create (&plain.config, plane, 2);
            for (size_t i = 0; i < w.n_events; i += 6, done++)
                tell_mean (s, w.events + i);
            assert_true (done >= 30);
            searcher_destroy (s);
            sweep_free (&w);
        }
    for (long t = 1; t < 3; t++)
        assert_int_not_equal (searcher_trial_seed (1, t), searcher_trial_seed (1, t + 1));
}

CASE (test_repeats_at_once)
{
    for (long limit = 1; limit <= 7; limit++) {
        struct sweep w = start ("asha", limit);
        w.config.repeats = 3;
        w.config.max_concurrent = limit;
        w.workers = 0;
        w.metric = repeated;
        sweep_run (&w);
        assert_int_equal (w.trials, 90);
        assert_int_equal (w.most_running, limit);
        for (long t = 1; t <= w.trials; t++) {
            assert_int_equal (w.length[t], w.length[(t - 1) / 3 * 3 + 1]);
            assert_memory_equal (w.x[t], w.x[(t - 1) / 3 * 3 + 1], sizeof (w.x[t]));
        }
        sweep_free (&w);
    }
}

CASE (test_repeats_nonsense)
{
    struct search_config config = start ("random", 1).config;
    struct searcher *s, *copy;
    struct search_op op, odd;
    double x[2];

    config.repeats = 3;
    s = searcher_create (&config, plane, 2);
    assert_int_equal (searcher_ask (s, &op, x), SEARCH_RUN);
    odd = op;
    odd.trial = 2;
    assert_int_equal (searcher_begin (s, &odd, x), -1);
    assert_int_equal (searcher_begin (s, &op, x), 0);
    copy = searcher_copy (s);
    assert_int_equal (searcher_begin (s, &op, x), -1);
    odd.trial = 3;
    assert_int_equal (searcher_begin (s, &odd, x), -1);
    odd.trial = 2;
    odd.length = 0;
    assert_int_equal (searcher_begin (s, &odd, x), -1);
    odd.length = 8;
    assert_int_equal (searcher_begin (s, &odd, x), -1);
    odd.length = 9;
    odd.fresh = false;
    assert_int_equal (searcher_begin (s, &odd, x), -1);
    assert_int_equal (searcher_observe (s, 2, 9, &(double){ 1 }), -1);
    assert_int_equal (searcher_observe (s, 1, 0, &(double){ 1 }), -1);
    assert_int_equal (searcher_exit (s, 2), -1);
    assert_true (same_bytes (s, copy));
    assert_int_equal (searcher_observe (s, 1, 9, &(double){ 1 }), 0);
    assert_int_equal (searcher_observe (s, 1, 9, &(double){ 1 }), -1);
    assert_int_equal (searcher_exit (s, 1), -1);
    config.name = "median";
    refused (&config, "this searcher cannot repeat a trial", 0);
    config.name = "pbt";
    refused (&config, "this searcher cannot repeat a trial", 0);
    config.repeats = 65;
    refused (&config, "repeats is not 0 to 64", 0);
    searcher_destroy (s);
    searcher_destroy (copy);
}

static double by_length (const struct sweep *w, long trial)
{
    return (double)w->length[trial];
}

CASE (test_seconds)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep w = start (k->name, 1);
        double spent = 0, begun_at = 0;

        if (!strcmp (k->name, "single"))
            continue;
        w.config.max_seconds = 40;
        w.seconds = by_length;
        sweep_run (&w);
        for (size_t i = 0; i < w.n_events; i++) {
            if (w.events[i].what == EVENT_BEGIN)
                begun_at = spent;
            if (w.events[i].what == EVENT_SPEND)
                spent += w.events[i].value;
        }
        assert_true (begun_at < 40 && spent >= 40 && spent < 80);
        assert_true (searcher_progress (w.s) == 1);
        assert_int_equal (w.n_running, 0);
        sweep_free (&w);
    }
}

CASE (test_spend_nonsense)
{
    static const double bad[] = { -1, NAN, INFINITY, -INFINITY };
    struct search_config config = start ("random", 1).config;
    struct searcher *s;
    struct search_op op;
    double x[2];

    config.max_seconds = NAN;
    refused (&config, "max_seconds is below 0", 0);
    config.max_seconds = -1;
    refused (&config, "max_seconds is below 0", 0);
    config.max_seconds = 10;
    s = searcher_create (&config, plane, 2);
    assert_int_equal (searcher_spend (s, 1, 1), -1);
    op = sweep_next (s, x);
    for (size_t i = 0; i < COUNT (bad); i++)
        assert_int_equal (searcher_spend (s, 1, bad[i]), -1);
    assert_int_equal (searcher_spend (s, 1, 1e308), 0);
    assert_int_equal (searcher_spend (s, 1, 1e308), 0);
    assert_true (searcher_progress (s) < 1);
    assert_int_equal (searcher_ask (s, &op, x), SEARCH_WAIT);
    assert_int_equal (searcher_observe (s, 1, 9, &(double){ 1 }), 0);
    assert_int_equal (searcher_ask (s, &op, x), SEARCH_DONE);
    assert_true (searcher_progress (s) == 1);
    searcher_destroy (s);
}

RUN_CASES ()
