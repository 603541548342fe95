/* SPDX-License-Identifier: Apache-2.0 */
/* Combinations of two features, and limits. */
#include "searcher/models/models.h"
#include "searcher/state/state.h"
#include "tests/searcher/params.h"
#include "tests/searcher/search.h"
#include "tests/searcher/sweep.h"

static const struct param plane[] = { FLOAT ("x", 0, 1, 0), FLOAT ("y", 0, 1, 0) };

static double bowl (const double *x)
{
    return (x[0] - 0.3) * (x[0] - 0.3) + (x[1] - 0.6) * (x[1] - 0.6);
}

/* ---- extend a search that started from known results ---- */

enum { KNOWN = 7, BEGUN = 9 };

static void check_points (const struct searcher *s, double (*x)[2])
{
    for (long i = searcher_first (s); i <= BEGUN; i++) {
        /* known points have the ids 0, -1, ... */
        const double *want = x[i > 0 ? KNOWN + i - 1 : -i];
        assert_memory_equal (searcher_point (s, i), want, sizeof (*x));
        assert_true (isnan (searcher_value (s, i)) || searcher_value (s, i) == bowl (want));
    }
}

CASE (test_extend_known)
{
    static const char *const names[] = { "tpe", "gp" };
    struct search_known known[KNOWN];
    double x[KNOWN + BEGUN][2];
    double value[KNOWN];

    for (int i = 0; i < KNOWN; i++) {
        x[i][0] = (i + 1) / 10.0;
        x[i][1] = (i + 2) / 11.0;
        value[i] = bowl (x[i]);
        known[i] = (struct search_known){ x[i], value + i };
    }
    for (size_t k = 0; k < COUNT (names); k++) {
        const struct search_config config =
            SEARCH (names[k], .seed = 4, .max_trials = 12, .max_length = 1, .known = known,
                    .nknown = KNOWN);
        struct searcher *s = searcher_create (&config, plane, 2);

        assert_non_null (s);
        for (long t = 1; t <= BEGUN; t++) {
            assert_int_equal (search_begin (s, x[KNOWN + t - 1]), t);
            if (t < BEGUN)
                assert_int_equal (searcher_observe (s, t, 1, &(double){ bowl (x[KNOWN + t - 1]) }),
                                  0);
        }
        check_points (s, x);
        assert_int_equal (searcher_extend (&s, 40, 0, 0), 0);
        check_points (s, x);
        searcher_destroy (s);
    }
}

/* The ranking is stable, so PASHA never raises the top rung.  Only the best trial continues to
 * the full length, and only after all others have ended.
 */
CASE (test_pasha_waits)
{
    enum { TRIALS = 30, WORKERS = 6 };
    const struct search_config config =
        SEARCH ("pasha", .seed = 1, LADDER (TRIALS, 81, 3, 5), .max_concurrent = WORKERS);
    struct searcher *s = searcher_create (&config, NULL, 0);
    struct search_op running[WORKERS];
    struct search_op op;
    long n = 0, created = 0, higher = 0;

    do {
        while (n < WORKERS && searcher_ask (s, &op, NULL) == SEARCH_RUN) {
            created += op.fresh;
            if (op.length > 9) { /* 9 is the top rung of 3, 9, 27, 81 */
                assert_int_equal (created, TRIALS);
                assert_int_equal (n, 0);
                higher++;
            }
            assert_int_equal (searcher_begin (s, &op, NULL), 0);
            running[n++] = op;
        }
        op = running[0];
        memmove (running, running + 1, (size_t)--n * sizeof (*running));
        assert_int_equal (searcher_observe (s, op.trial, op.length, &(double){ (double)op.trial }),
                          0);
    } while (n > 0 || searcher_ask (s, &op, NULL) == SEARCH_RUN);
    assert_int_equal (higher, 2);
    searcher_destroy (s);
}

/* ---- a constraint on a parameter that is not always active ---- */

/* The constraint allows every point where the parameter is inactive, but only three in ten of
 * the others.
 */
CASE (test_inactive)
{
    static const double one[] = { 1 };
    static const struct param params[] = {
        CHOICE ("a", 2),
        { .name = "b",
          .type = PARAM_FLOAT,
          .max = 1,
          .when = "a",
          .when_values = one,
          .when_count = 1 },
    };
    enum { TRIALS = 600 };
    const struct search_config config = SEARCH ("random", .seed = 3, .max_trials = TRIALS,
                                                .max_length = 1, .constraint = "b < 0.3");
    struct searcher *s = searcher_create (&config, params, 2);
    long without = 0;
    double x[2];

    assert_non_null (s);
    for (long t = 1; t <= TRIALS; t++) {
        assert_int_equal (search_begin (s, x), t);
        assert_true (x[0] == 1 ? x[1] < 0.3 : isnan (x[1]));
        without += x[0] == 0;
        assert_int_equal (searcher_observe (s, t, 1, &(double){ 1 }), 0);
    }
    /* expect 0.5 / (0.5 + 0.15) of the trials, not half */
    assert_in_range (without, TRIALS * 7 / 10, TRIALS * 84 / 100);
    searcher_destroy (s);
}

/* A condition compares values with a relative tolerance of 1e-9. */
CASE (test_near)
{
    static const double million[] = { 1e6 };
    static const struct param params[] = {
        LOG ("a", 10, 0, 9, 0),
        { .name = "b",
          .type = PARAM_FLOAT,
          .max = 1,
          .when = "a",
          .when_values = million,
          .when_count = 1 },
    };
    struct dim dims[2] = { { .parent = -1 }, { .parent = -1 } };
    double values[1];

    space_fill (dims, values, 0, params, 2);
    assert_true (space_waits (&dims[1], values, 1e6 * (1 + 5e-10)));
    assert_true (space_waits (&dims[1], values, 1e6 * (1 - 5e-10)));
    assert_false (space_waits (&dims[1], values, 1e6 * (1 + 2e-9)));
    assert_false (space_waits (&dims[1], values, 1e6 * (1 - 2e-9)));
}

/* ---- the maximum number of brackets ---- */

CASE (test_brackets_max)
{
    const struct search_config config = SEARCH ("hyperband", LADDER (1, 3, 3, 2));
    struct searcher *s = searcher_create (&config, NULL, 0);
    struct search_op op;
    long trials = 0;

    assert_non_null (s);
    for (long n = 2; n <= BRACKETS_MAX + 2; n++)
        if (searcher_extend (&s, n, 0, 0) < 0)
            break;
    assert_int_equal (s->brackets, BRACKETS_MAX);
    while (searcher_ask (s, &op, NULL) == SEARCH_RUN) {
        assert_int_equal (searcher_begin (s, &op, NULL), 0);
        assert_int_equal (searcher_observe (s, op.trial, op.length, &(double){ 1 }), 0);
        trials += op.fresh;
    }
    assert_true (trials >= BRACKETS_MAX);
    searcher_destroy (s);
}

/* Shifting the range of a parameter shifts its points by the same amount. */
CASE (test_moved)
{
    static const struct param near[] = { FLOAT ("x", 0, 8, 0) };
    static const struct param far[] = { FLOAT ("x", 16, 24, 0) };
    enum { TRIALS = 60 };
    struct searcher *a = search_create ("tpe", 5, TRIALS, near, 1);
    struct searcher *b = search_create ("tpe", 5, TRIALS, far, 1);
    double x, y;

    for (long t = 1; t <= TRIALS; t++) {
        assert_int_equal (search_begin (a, &x), t);
        assert_int_equal (search_begin (b, &y), t);
        assert_true (fabs (y - 16 - x) < 1e-6);
        assert_int_equal (searcher_observe (a, t, 1, &(double){ x * x }), 0);
        assert_int_equal (searcher_observe (b, t, 1, &(double){ x * x }), 0);
    }
    searcher_destroy (a);
    searcher_destroy (b);
}

/* ---- more results than a model can hold ---- */

struct earlier {
    long trial;
    int64_t rung;
    double value;
};

static int longest_best (const void *a, const void *b)
{
    const struct earlier *x = a, *y = b;

    if (x->rung != y->rung)
        return x->rung < y->rung ? 1 : -1;
    return (x->value > y->value) - (x->value < y->value);
}

/* The model keeps the 110 trials that trained longest; among equally long ones it prefers the
 * better values.
 */
CASE (test_kept)
{
    enum { TRIALS = 400, LONGEST = 110 };
    const struct search_config config = SEARCH ("pasha", .seed = 2, LADDER (TRIALS, 9, 3, 3));
    struct searcher *s = searcher_create (&config, plane, 2);
    struct earlier list[TRIALS];
    struct training_set v = { 0 };
    struct search_op op;
    double x[2];

    assert_non_null (s);
    while (searcher_ask (s, &op, x) == SEARCH_RUN) {
        assert_int_equal (searcher_begin (s, &op, x), 0);
        assert_int_equal (
            searcher_observe (s, op.trial, op.length,
                              &(double){ bowl (searcher_point (s, op.trial)) + 1.0 / 8 }),
            0);
    }
    for (long t = 1; t <= TRIALS; t++) {
        const double *values = searcher_values (s, t);
        int64_t r = s->rungs - 1;
        while (r > 0 && !isfinite (values[r]))
            r--;
        list[t - 1] = (struct earlier){ t, r, values[r] };
    }
    qsort (list, TRIALS, sizeof (*list), longest_best);
    assert_int_equal (transfer_open (&v, s), 0);
    assert_true (v.n > LONGEST && v.n < TRIALS);
    for (int i = 0; i < LONGEST; i++) {
        bool found = false;
        for (int64_t k = 0; k < v.n; k++)
            found = found || v.trial[k] == list[i].trial;
        assert_true (found);
    }
    for (int64_t k = 1; k < v.n; k++)
        assert_true (v.trial[k] > v.trial[k - 1]);
    training_set_close (&v);
    searcher_destroy (s);
}

RUN_CASES ()
