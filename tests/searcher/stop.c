/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that stop trials on the way: asha's ladder and the median rule. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/searcher/sweep.h"
#include "tests/unit.h"

enum { TRIALS = 200, LENGTH = 64 };

/* Few different values, so that there are many ties, and some bad ones. */
static double noisy (const struct sweep *w, long trial, int64_t length)
{
    uint64_t r = w->config.seed + trial * 1000 + length;
    uint64_t value = sweep_random (&r, 200);

    value = sweep_random (&r, 200);
    return value == 0 ? NAN : trial % 5 + 0.25 * (double)(value % 32);
}

static bool seldom (const struct sweep *w, long trial, int segment)
{
    uint64_t r = w->config.seed * 77 + trial * 10 + segment;

    (void)sweep_random (&r, 2);
    return sweep_random (&r, 12) == 0;
}

static struct sweep start (const char *name, uint64_t seed)
{
    uint64_t r = seed;
    struct sweep w = { .config = { .name = name,
                                   .seed = seed,
                                   .max_trials = 1 + sweep_random (&r, 120),
                                   .max_length = 1 + sweep_random (&r, LENGTH),
                                   .smaller_is_better = true,
                                   .divisor = seed % 2 ? 3 : 2.5,
                                   .max_rungs = 1 + sweep_random (&r, 5),
                                   .min_length = sweep_random (&r, 6) },
                       .metric = noisy,
                       .fails = seed % 3 ? NULL : seldom,
                       .report = 1 + sweep_random (&r, 4),
                       .workers = sweep_random (&r, 12),
                       .shuffle = seed };

    w.config.rules = seed % 4 ? SEARCH_RULES_NOW : SEARCH_RULES_FIRST;
    return w;
}

/* ---- asha ---- */

struct ladder {
    int rungs;
    int64_t length[8];
    double values[8][TRIALS];
    int n[8];
    int passed[TRIALS];
};

/* So many of n results pass. */
static double share_of (const struct search_config *c, int n)
{
    return c->rules == SEARCH_RULES_FIRST
               ? ceil (n / c->divisor - 1e-9)
               : fmax (floor (n / c->divisor + 1e-9), 1);
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

static void test_ladder (void **state)
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

/* ---- one event after another ---- */

static struct searcher *
create_by (const char *name, int64_t min_length, int rules)
{
    const struct search_config config = { .name = name,
                                          .max_trials = 20,
                                          .max_length = 9,
                                          .smaller_is_better = true,
                                          .divisor = 3,
                                          .max_rungs = 3,
                                          .min_length = min_length,
                                          .rules = rules };
    struct searcher *s = searcher_create (&config, NULL, 0);

    assert_non_null (s);
    return s;
}

static struct searcher *create (const char *name, int64_t min_length)
{
    return create_by (name, min_length, 0);
}

static long begin (struct searcher *s)
{
    struct search_op op;

    assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_RUN);
    assert_int_equal (op.length, 9);
    assert_int_equal (searcher_begin (s, &op, NULL), 0);
    return op.trial;
}

static bool report (struct searcher *s, long trial, int64_t length, double y)
{
    assert_int_equal (searcher_report (s, trial, length, y), 0);
    return searcher_stops (s, trial);
}

/* Rungs at 1 and 3.  A report at 5 passes or fails both. */
static void test_skipped (void **state)
{
    struct searcher *s = create ("stopping_asha", 0);
    long a = begin (s), b = begin (s), c = begin (s), d = begin (s);

    assert_false (report (s, a, 5, 1.0)); /* first at both */
    assert_true (report (s, b, 1, 2.0));  /* second of 2: 1 runs on */
    assert_false (report (s, c, 1, 0.5));
    assert_true (report (s, c, 4, 1.5));
    assert_false (report (s, d, 9, 0.1));
    searcher_destroy (s);
}

/* Of four results one passes: max (floor (4 / 3), 1); by the first rules
 * ceil (4 / 3).  What a rejected trial has reported stops no other.
 */
static void test_share (void **state)
{
    for (int rules = SEARCH_RULES_FIRST; rules <= SEARCH_RULES_NOW; rules++) {
        struct searcher *s = create_by ("stopping_asha", 0, rules);
        bool now = rules == SEARCH_RULES_NOW;
        long a = begin (s), b = begin (s), c = begin (s), d = begin (s);
        long e = begin (s);

        assert_false (report (s, a, 1, 0.1));
        assert_true (report (s, b, 1, 0.4));
        assert_true (report (s, c, 1, 0.3));
        assert_int_equal (report (s, d, 1, 0.2), now);
        assert_int_equal (searcher_reject (s, a), 0);
        /* the best of four; by the first rules the third of five */
        assert_int_equal (report (s, e, 1, now ? 0.15 : 0.25), !now);
        searcher_destroy (s);
    }
}

/* Twelve trials of 20 are compared at 1 and 3, five at 3 alone, three never.
 * The later, the worse: of each bracket the first one passes.  A rejected
 * trial leaves its own bracket; a longer search keeps where each one begins.
 */
static void test_brackets (void **state)
{
    const struct search_config config = { .name = "adaptive_stopping",
                                          .max_trials = 20,
                                          .max_length = 9,
                                          .smaller_is_better = true,
                                          .divisor = 3,
                                          .max_rungs = 3,
                                          .mode = SEARCH_CONSERVATIVE };
    struct searcher *s = searcher_create (&config, NULL, 0);
    int at[4] = { 0 };
    long first = 0, last;

    assert_non_null (s);
    for (int i = 1; i <= 20; i++) {
        long t = begin (s);
        int64_t length = 1;
        while (length < 4 && !report (s, t, length, i - 1.0 / length))
            length++;
        at[length - 1]++;
        first = first ? first : t;
    }
    assert_int_equal (at[0], 11);
    assert_int_equal (at[1], 0);
    assert_int_equal (at[2], 4);
    assert_int_equal (at[3], 5);
    assert_int_equal (searcher_reject (s, first), 0);
    assert_int_equal (searcher_extend (&s, 40, 27, 0), 0);
    memset (at, 0, sizeof (at));
    for (int i = 21; i <= 41; i++) {
        struct search_op op;
        int64_t length = 1;
        assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_RUN);
        assert_int_equal (searcher_begin (s, &op, NULL), 0);
        while (length < 4 && !report (s, op.trial, length, i - 1.0 / length))
            length++;
        at[length - 1]++;
        last = op.trial;
    }
    assert_int_equal (last, 41);
    assert_int_equal (at[0] + at[2] + at[3], 21);
    assert_int_equal (at[3], 3); /* those of the bracket that never stops */
    searcher_destroy (s);
}

static void unchanged (const struct searcher *s, const struct searcher *copy)
{
    assert_true (same_bytes (s, copy));
}

/* After the stop nothing is learnt; it is told with the length that it has, or
 * fails, or (a trainer that does not listen) goes to the end.
 */
static void test_after_stop (void **state)
{
    static const char *const names[] = { "stopping_asha",
                                         "adaptive_stopping",
                                         "median" };

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
            if (end == 0)
                assert_int_equal (searcher_observe (s, t, 4, &(double){ 1 }),
                                  0);
            else if (end == 1)
                assert_int_equal (searcher_observe (s, t, 9, &(double){ 1 }),
                                  0);
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

/* Reports of old lengths, or twice the same one, change nothing. */
static void test_old_reports (void **state)
{
    static const char *const names[] = { "stopping_asha",
                                         "adaptive_stopping",
                                         "median" };

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

static void test_never_reported (void **state)
{
    static const char *const names[] = { "stopping_asha",
                                         "adaptive_stopping",
                                         "median" };

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

/* ---- the median rule ---- */

static int by_value (const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

struct medians {
    double report[TRIALS][LENGTH + 1]; /* NaN: none */
    bool ended[TRIALS];
};

/* The average of the reports up to a length, of the first one if there is none
 * so far; NaN if it did not come there.
 */
static double average (const struct medians *m, long trial, int64_t length)
{
    double sum = 0, n = 0;
    bool came = false;

    for (int64_t l = 1; l <= LENGTH; l++)
        if (!isnan (m->report[trial][l])) {
            came = came || l >= length;
            if (l <= length || n == 0) {
                sum += m->report[trial][l];
                n++;
            }
        }
    return came ? (double)(float)(sum / n) : NAN;
}

static bool median_stops (struct medians *m, const struct sweep *w, size_t i)
{
    const struct event *e = w->events + i;
    int64_t least = w->config.min_length ? w->config.min_length
                                         : (w->config.max_length + 19) / 20;
    double list[TRIALS], best = INFINITY;
    size_t n = 0;

    if (!isfinite (e->value))
        return true;
    m->report[e->op.trial][e->op.length] = e->value;
    for (int64_t l = 1; l <= e->op.length; l++)
        best = fmin (best, m->report[e->op.trial][l]);
    for (long t = 1; t <= w->trials; t++)
        if (m->ended[t] && !isnan (average (m, t, e->op.length)))
            list[n++] = average (m, t, e->op.length);
    if (n < 3 || e->op.length < least)
        return false;
    qsort (list, n, sizeof (*list), by_value);
    return best > (list[(n - 1) / 2] + list[n / 2]) / 2;
}

static void test_median (void **state)
{
    long stopped = 0, whole = 0;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct sweep w = start ("median", seed);
        struct medians *m = calloc (1, sizeof (*m));

        for (int t = 0; t < TRIALS; t++)
            for (int l = 0; l <= LENGTH; l++)
                m->report[t][l] = NAN;
        sweep_run (&w);
        for (size_t i = 0; i < w.n_events; i++) {
            const struct event *e = w.events + i;
            if (e->what == EVENT_TELL || e->what == EVENT_EXIT)
                m->ended[e->op.trial] = true;
            if (e->what != EVENT_REPORT)
                continue;
            if (median_stops (m, &w, i)) {
                assert_int_equal (w.length[e->op.trial], e->op.length);
                stopped++;
            } else {
                assert_true (w.length[e->op.trial] > e->op.length);
                whole += w.length[e->op.trial] == w.config.max_length;
            }
        }
        free (m);
        sweep_free (&w);
    }
    assert_true (stopped > 200 && whole > 1000);
}

static void complete (struct searcher *s, double from, double by)
{
    long t = begin (s);

    for (int64_t l = 1; l < 9; l++)
        assert_false (report (s, t, l, from + by * (l - 1)));
    assert_int_equal (searcher_observe (s, t, 9, &(double){ from + by * 8 }),
                      0);
}

/* Averages 0.1, 0.1, 0.1 and 9: the median is 0.1, the mean 2.325. */
static void test_outlier (void **state)
{
    struct searcher *s = create ("median", 5);
    long bad, good;

    complete (s, 9, 0);
    complete (s, 0.1, 0);
    complete (s, 0.1, 0);
    complete (s, 0.1, 0);
    bad = begin (s);
    good = begin (s);
    assert_false (report (s, bad, 4, 1.0)); /* not before min_length */
    assert_true (report (s, bad, 5, 1.0));
    assert_false (report (s, good, 5, 0.05));
    searcher_destroy (s);
}

/* It is asked at each report, not once: others get better, this one does not.
 */
static void test_late (void **state)
{
    struct searcher *s = create ("median", 1);
    long t;

    for (int i = 0; i < 3; i++)
        complete (s, 1, -0.1); /* averages 1, 0.95, 0.9, ... */
    t = begin (s);
    for (int64_t l = 1; l <= 5; l++)
        assert_false (report (s, t, l, 0.8));
    assert_false (report (s, t, 4, 0.8));
    assert_true (report (s, t, 6, 0.8)); /* 0.75 */
    searcher_destroy (s);
}

/* Between reports the average is that of those before. */
static void test_gap (void **state)
{
    struct searcher *s = create ("median", 1);
    long t;

    for (int i = 0; i < 3; i++) {
        t = begin (s);
        assert_false (report (s, t, 1, 1));
        assert_false (report (s, t, 6, i == 0 ? 9 : 0.5));
        assert_false (report (s, t, 8, i == 0 ? 9 : 0.5));
        assert_int_equal (searcher_observe (s, t, 9, &(double){ 1 }), 0);
    }
    t = begin (s);
    assert_false (report (s, t, 3, 1));
    assert_true (report (s, begin (s), 3, 2));
    assert_true (report (s, begin (s), 5, 1.01));
    assert_true (report (s, begin (s), 6, 0.76)); /* 0.75, 0.75 and 5 */
    assert_false (report (s, begin (s), 6, 0.75));
    searcher_destroy (s);
}

/* Three have to have ended. */
static void test_few (void **state)
{
    struct searcher *s = create ("median", 1);
    long t;

    complete (s, 1, 0);
    complete (s, 1, 0);
    t = begin (s);
    assert_false (report (s, t, 3, 5));
    complete (s, 1, 0);
    assert_true (report (s, t, 4, 5));
    searcher_destroy (s);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_ladder),
        cmocka_unit_test (test_skipped),
        cmocka_unit_test (test_share),
        cmocka_unit_test (test_brackets),
        cmocka_unit_test (test_after_stop),
        cmocka_unit_test (test_old_reports),
        cmocka_unit_test (test_never_reported),
        cmocka_unit_test (test_median),
        cmocka_unit_test (test_outlier),
        cmocka_unit_test (test_late),
        cmocka_unit_test (test_gap),
        cmocka_unit_test (test_few),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}
