/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that stop trials early, and the rungs of stopping_asha. */
#include "tests/searcher/stopping.h"

struct ladder {
    int rungs;
    int64_t length[8];
    double values[8][TRIALS];
    int n[8];
    int passed[TRIALS];
};

/* Number of results out of n that pass a rung. */
static double share_of (const struct search_config *c, int n)
{
    return fmax (floor (n / c->divisor + 1e-9), 1);
}

static bool ladder_stops (struct ladder *l, const struct sweep *w, size_t i)
{
    const struct event *e = w->events + i;
    int *rung = l->passed + e->op.trial;

    if (!isfinite (e->value))
        return true;
    for (; *rung < l->rungs && l->length[*rung] <= e->op.length; ++*rung) {
        int n = l->n[*rung]++, better = 0;
        for (int k = 0; k < n; k++)
            better += l->values[*rung][k] <= e->value;
        l->values[*rung][n] = e->value;
        if (better >= share_of (&w->config, n + 1))
            return true;
    }
    return false;
}

CASE (test_ladder)
{
    long stopped = 0, whole = 0;

    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct sweep w = start ("stopping_asha", seed);
        struct search_config asha = w.config;
        struct search_rung rungs[8];
        struct ladder *l = calloc (1, sizeof (*l));

        asha.name = "asha";
        l->rungs = searcher_preview (&asha, NULL, 0, rungs, 8) - 1;
        for (int i = 0; i < l->rungs; i++)
            l->length[i] = rungs[i].length;
        sweep_run (&w);
        assert_int_equal (w.trials, w.config.max_trials);
        for (size_t i = 0; i < w.n_events; i++) {
            const struct event *e = w.events + i;
            if (e->what != EVENT_REPORT)
                continue;
            if (ladder_stops (l, &w, i)) {
                assert_int_equal (w.length[e->op.trial], e->op.length);
                stopped++;
            } else {
                assert_true (w.length[e->op.trial] > e->op.length);
                whole += w.length[e->op.trial] == w.config.max_length;
            }
        }
        free (l);
        sweep_free (&w);
    }
    assert_true (stopped > 1000 && whole > 1000);
}

/* The rungs are at 1 and 3.  A report at 5 counts at both. */
CASE (test_skipped)
{
    struct searcher *s = create ("stopping_asha", 0);
    long a = begin (s), b = begin (s), c = begin (s), d = begin (s);

    assert_false (report (s, a, 5, 1.0)); /* first at both */
    assert_true (report (s, b, 1, 2.0));  /* second of 2, and only 1 passes */
    assert_false (report (s, c, 1, 0.5));
    assert_true (report (s, c, 4, 1.5));
    assert_false (report (s, d, 9, 0.1));
    searcher_destroy (s);
}

/* Of four results, max (floor (4 / 3), 1) = 1 passes.  The reports of a rejected trial stop no
 * other trial.
 */
CASE (test_share)
{
    struct searcher *s = create ("stopping_asha", 0);
    long a = begin (s), b = begin (s), c = begin (s), d = begin (s);
    long e = begin (s);

    assert_false (report (s, a, 1, 0.1));
    assert_true (report (s, b, 1, 0.4));
    assert_true (report (s, c, 1, 0.3));
    assert_true (report (s, d, 1, 0.2));
    assert_int_equal (searcher_reject (s, a), 0);
    assert_false (report (s, e, 1, 0.15)); /* the best of four */
    searcher_destroy (s);
}

/* Train the next trial, the i-th, until it is stopped or reaches 4, and count its length in
 * 'at'.
 */
static long train (struct searcher *s, int i, int at[4])
{
    struct search_op op;
    int64_t length = 1;

    op = sweep_next (s, NULL);
    while (length < 4 && !report (s, op.trial, length, i - 1.0 / length))
        length++;
    at[length - 1]++;
    return op.trial;
}

/* Of 20 trials, twelve are compared at 1 and 3, five only at 3, and three never.  Later trials
 * are worse, so the first of each bracket passes.  A rejected trial leaves its own bracket, and
 * an extended search keeps the first rung of each bracket.
 */
CASE (test_brackets)
{
    const struct search_config config =
        SEARCH ("adaptive_stopping", LADDER (20, 9, 3, 3), .mode = SEARCH_CONSERVATIVE);
    struct searcher *s = searcher_create (&config, NULL, 0);
    int at[4] = { 0 };
    long first, last;

    assert_non_null (s);
    first = train (s, 1, at);
    for (int i = 2; i <= 20; i++)
        train (s, i, at);
    assert_int_equal (at[0], 11);
    assert_int_equal (at[1], 0);
    assert_int_equal (at[2], 4);
    assert_int_equal (at[3], 5);
    assert_int_equal (searcher_reject (s, first), 0);
    assert_int_equal (searcher_extend (&s, 40, 27, 0), 0);
    memset (at, 0, sizeof (at));
    for (int i = 21; i <= 41; i++)
        last = train (s, i, at);
    assert_int_equal (last, 41);
    assert_int_equal (at[0] + at[2] + at[3], 21);
    assert_int_equal (at[3], 3); /* the bracket that never stops a trial */
    searcher_destroy (s);
}

static void unchanged (const struct searcher *s, const struct searcher *copy)
{
    assert_true (same_bytes (s, copy));
}

static const char *const names[] = { "stopping_asha", "adaptive_stopping", "median" };

/* Reports after a stop change nothing.  The trial then ends at its current length, or it runs to
 * the full length because the training script ignores the stop, or it fails or is rejected.
 */
CASE (test_after_stop)
{
    for (size_t k = 0; k < COUNT (names); k++)
        for (int end = 0; end < 4; end++) {
            struct searcher *s = create (names[k], 1), *copy;
            long t = begin (s);
            struct search_op op;

            assert_false (report (s, t, 2, 1));
            assert_int_equal (searcher_observe (s, t, 2, &(double){ 1 }), -1);
            assert_true (report (s, t, 4, NAN));
            copy = searcher_copy (s);
            assert_true (report (s, t, 5, -1));
            unchanged (s, copy);
            assert_int_equal (searcher_observe (s, t, 0, &(double){ 1 }), -1);
            assert_int_equal (searcher_observe (s, t, 10, &(double){ 1 }), -1);
            assert_int_equal (searcher_report (s, t, 10, 1), -1);
            assert_int_equal (searcher_report (s, t, 0, 1), -1);
            assert_int_equal (searcher_report (s, t + 1, 1, 1), -1);
            unchanged (s, copy);
            if (end < 2)
                assert_int_equal (searcher_observe (s, t, end ? 9 : 4, &(double){ 1 }), 0);
            else if (end == 2)
                assert_int_equal (searcher_exit (s, t), 0);
            else
                assert_int_equal (searcher_reject (s, t), 0);
            assert_false (searcher_stops (s, t));
            assert_int_equal (searcher_report (s, t, 6, 1), -1);
            assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_RUN);
            assert_int_equal (op.trial, 2);
            searcher_destroy (s);
            searcher_destroy (copy);
        }
}

/* A repeated report, or one for an earlier length, changes nothing. */
CASE (test_old_reports)
{
    for (size_t k = 0; k < COUNT (names); k++) {
        struct searcher *s = create (names[k], 1), *copy;
        long t = begin (s);

        assert_false (report (s, t, 4, 1));
        copy = searcher_copy (s);
        assert_false (report (s, t, 4, 1));
        assert_false (report (s, t, 3, 7));
        assert_false (report (s, t, 1, 9));
        unchanged (s, copy);
        searcher_destroy (s);
        searcher_destroy (copy);
    }
}

CASE (test_never_reported)
{
    for (size_t k = 0; k < COUNT (names); k++) {
        struct sweep w = start (names[k], 3);
        w.report = 0;
        sweep_run (&w);
        assert_int_equal (w.trials, w.config.max_trials);
        for (long t = 1; t <= w.trials; t++)
            assert_int_equal (w.length[t], w.config.max_length);
        sweep_free (&w);
    }
}

RUN_CASES ()
