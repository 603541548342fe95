/* SPDX-License-Identifier: Apache-2.0 */
/* The median rule. */
#include "searcher/numeric/row.h"
#include "tests/searcher/stopping.h"

struct medians {
    double report[TRIALS][LENGTH + 1]; /* NaN: none */
    bool ended[TRIALS];
};

/* Return the average of the reports up to a length, or the first report if all are later.  NaN if
 * the trial never reached the length.
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
    int64_t least = w->config.min_length ? w->config.min_length : (w->config.max_length + 19) / 20;
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
    qsort (list, n, sizeof (*list), row_ascending);
    return best > (list[(n - 1) / 2] + list[n / 2]) / 2;
}

CASE (test_median)
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
    assert_int_equal (searcher_observe (s, t, 9, &(double){ from + by * 8 }), 0);
}

/* The averages are 0.1, 0.1, 0.1 and 9, so the median is 0.1 but the mean 2.325. */
CASE (test_outlier)
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

/* The rule applies at every report: the others improve, and this trial does not. */
CASE (test_late)
{
    struct searcher *s = create ("median", 1);
    long t;

    for (int i = 0; i < 3; i++)
        complete (s, 1, -0.1); /* averages 1, 0.95, 0.9, ... */
    t = begin (s);
    for (int64_t l = 1; l <= 5; l++)
        assert_false (report (s, t, l, 0.8));
    assert_false (report (s, t, 4, 0.8));
    assert_true (report (s, t, 6, 0.8)); /* median 0.75 */
    searcher_destroy (s);
}

/* Between two reports, the average of the earlier ones counts. */
CASE (test_gap)
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
    assert_true (report (s, begin (s), 6, 0.76)); /* averages 0.75, 0.75 and 5 */
    assert_false (report (s, begin (s), 6, 0.75));
    searcher_destroy (s);
}

/* The rule stops no trial until three others have ended. */
CASE (test_few)
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

RUN_CASES ()
