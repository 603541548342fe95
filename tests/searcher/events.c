/* SPDX-License-Identifier: Apache-2.0 */
/* Every search method with every event: determinism, replay, copies, and invalid events. */
#include <limits.h>

#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static const double second[] = { 1 }, deep[] = { 3, 4 };
static const char *const labels[] = { "sgd", "adam", "lion" };

/* clang-format off */
static const struct param space[] = {
    { .name = "lr", .type = PARAM_LOG, .min = -5, .max = -1, .base = 10,
      .count = 3, .mean = -3, .deviation = 1 },
    { .name = "beta", .type = PARAM_FLOAT, .max = 1, .step = 0.25,
      .when = "optimizer", .when_values = second, .when_count = 1 },
    { .name = "optimizer", .type = PARAM_CATEGORICAL, .choices = 3,
      .labels = labels },
    { .name = "layers", .type = PARAM_INT, .min = 1, .max = 4 },
    { .name = "drop", .type = PARAM_FLOAT, .max = 0.5, .count = 2,
      .when = "layers", .when_values = deep, .when_count = 2 },
};
/* clang-format on */

static const char constraint[] = "lr * layers < 0.05 && (optimizer != 'adam' || beta > 0.1)";

static bool allowed (const double *x)
{
    return x[0] * x[3] < 0.05 && (x[2] != 1 || x[1] > 0.1);
}

static double quality (const struct sweep *w, long trial, int64_t length)
{
    const double *x = w->x[trial];

    if (x[3] == 4 && x[2] == 2)
        return NAN;
    return fabs (log10 (x[0]) + 3) + x[3] + (isnan (x[1]) ? 1 : x[1]) + 1.0 / length;
}

static bool refuses (const struct sweep *w, long trial, int segment)
{
    return sweep_seldom (w, trial + 500, segment);
}

static double seconds (const struct sweep *w, long trial)
{
    return w->length[trial] * 0.5;
}

static struct sweep start (const struct searcher_kind *k, uint64_t seed)
{
    static const double divisors[] = { 2, 3, 2.5, 4 };
    struct sweep w = { .config = { .name = k->name,
                                   .seed = seed,
                                   LADDER (26, 27, divisors[seed % 4], 4),
                                   .smaller_is_better = seed % 2,
                                   .mode = seed % 3,
                                   .max_concurrent = 6,
                                   .constraint = constraint,
                                   .max_seconds = seed % 3 ? 0 : 150,
                                   .population = 8 },
                       .params = space,
                       .n = COUNT (space),
                       .metric = quality,
                       .fails = sweep_seldom,
                       .rejects = seed % 2 ? refuses : NULL,
                       .seconds = seconds,
                       .report = 2,
                       .workers = 5,
                       .shuffle = seed };

    if (!(k->needs & HAS_REPORTS))
        w.report = seed % 5 ? 0 : 9;
    if (seed % 4 == 0 && !(k->needs & HAS_REPORTS) && strcmp (k->name, "pbt"))
        w.config.repeats = 3;
    return w;
}

static bool same_events (const struct sweep *a, const struct sweep *b)
{
    for (size_t i = 0; i < a->n_events; i++) {
        const struct event *x = a->events + i, *y = b->events + i;
        if (x->what != y->what || x->op.trial != y->op.trial || x->op.fresh != y->op.fresh
            || x->op.length != y->op.length || x->op.from != y->op.from
            || memcmp (x->x, y->x, sizeof (x->x)))
            return false;
    }
    return a->n_events == b->n_events;
}

/* Two runs with one seed are identical, a replay of the log restores the state, and every point
 * satisfies the constraint.
 */
CASE (test_replay)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (uint64_t seed = 1; seed <= 6 / SLOWER; seed++) {
            struct sweep a = start (k, seed), b = start (k, seed), other = start (k, seed);
            struct searcher *s;

            other.config.seed += 1000;
            sweep_run (&a);
            sweep_run (&b);
            sweep_run (&other);
            assert_true (same_events (&a, &b));
            assert_true (same_bytes (a.s, b.s));
            s = searcher_create (&a.config, a.params, a.n);
            for (size_t i = 0; i < a.n_events; i++)
                sweep_apply (s, a.events + i);
            assert_true (same_bytes (s, a.s));
            for (long t = 1; t <= a.trials; t++)
                assert_true (allowed (a.x[t]));
            if (k->needs & NEED_MAX_TRIALS)
                assert_memory_not_equal (a.x[1], other.x[1], sizeof (a.x[1]));
            searcher_destroy (s);
            sweep_free (&a);
            sweep_free (&b);
            sweep_free (&other);
        }
}

static size_t stop_at;

static bool until (struct sweep *w)
{
    return w->n_events < stop_at;
}

/* A copy of a half-finished search continues exactly as the original would. */
CASE (test_copy)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep whole = start (k, 4);
        sweep_run (&whole);
        for (stop_at = 1; stop_at < whole.n_events; stop_at += 17 * SLOWER) {
            struct sweep part = start (k, 4);
            struct searcher *copy, *kept;
            part.more = until;
            sweep_run (&part);
            copy = searcher_copy (part.s);
            kept = searcher_copy (part.s);
            for (size_t i = part.n_events; i < whole.n_events; i++) {
                const struct event *e = whole.events + i;
                struct search_op op;
                double x[8] = { 0 };
                if (e->what == EVENT_BEGIN && i < part.n_events + 30) {
                    assert_int_equal (searcher_ask (copy, &op, x), SEARCH_RUN);
                    assert_memory_equal (&op, &e->op, sizeof (op));
                    assert_memory_equal (x, e->x, op.fresh ? sizeof (x) : 0);
                }
                sweep_apply (copy, e);
            }
            assert_true (same_bytes (copy, whole.s));
            /* the original did not change */
            assert_true (same_bytes (part.s, kept));
            searcher_destroy (kept);
            searcher_destroy (copy);
            sweep_free (&part);
        }
        sweep_free (&whole);
    }
}

/* ---- a long search ---- */

static const struct param plain[] = {
    { .name = "lr", .type = PARAM_LOG, .min = -5, .max = -1, .base = 10 },
    { .name = "momentum", .type = PARAM_FLOAT, .max = 1 },
    { .name = "layers", .type = PARAM_INT, .min = 1, .max = 8 },
};

static double bowl (const struct sweep *w, long trial, int64_t length)
{
    const double *x = w->x[trial];

    return fabs (log10 (x[0]) + 3) + (x[1] - 0.3) * (x[1] - 0.3) + x[2] / 9;
}

/* Some models and evolutionary methods start only after many trials.  sweep_run() replaces its
 * search by a copy after each event; the second search here is never copied.
 */
CASE (test_long)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep w = start (k, 7);
        struct searcher *s;

        if (!(k->needs & NEED_MAX_TRIALS) || k->needs & HAS_REPORTS)
            continue;
        w = (struct sweep){ .config = w.config,
                            .params = plain,
                            .n = COUNT (plain),
                            .metric = bowl,
                            .workers = 4,
                            .shuffle = 3 };
        w.config.max_trials = 130;
        w.config.max_length = 1;
        w.config.constraint = NULL;
        w.config.max_seconds = 0;
        sweep_run (&w);
        assert_int_equal (w.trials, 130);
        s = searcher_create (&w.config, w.params, w.n);
        for (size_t i = 0; i < w.n_events; i++) {
            const struct event *e = w.events + i;
            struct search_op op;
            double x[8] = { 0 };
            if (e->what == EVENT_BEGIN) {
                assert_int_equal (searcher_ask (s, &op, x), SEARCH_RUN);
                assert_memory_equal (&op, &e->op, sizeof (op));
                assert_memory_equal (x, e->x, op.fresh ? sizeof (x) : 0);
            }
            sweep_apply (s, e);
        }
        assert_true (same_bytes (s, w.s));
        searcher_destroy (s);
        sweep_free (&w);
    }
}

/* ---- invalid events ---- */

static long odd (uint64_t *r)
{
    static const long numbers[] = { 0, -1, LONG_MIN, LONG_MAX, 1L << 31, 1L << 53, -5, 99999999 };

    return sweep_random (r, 2) ? (long)sweep_random (r, 40)
                               : numbers[sweep_random (r, COUNT (numbers))];
}

static double odd_value (uint64_t *r)
{
    static const double numbers[] = { NAN, INFINITY, -INFINITY, 1e300, -1e308, 0, -0.0, 1e-310 };

    return sweep_random (r, 3) ? (double)sweep_random (r, 1000) / 7
                               : numbers[sweep_random (r, COUNT (numbers))];
}

/* Make an event that may be valid: the operation that searcher_ask() returns, or an event of a
 * trial that may exist, sometimes with a field changed.
 */
static void make_event (const struct searcher *s, uint64_t *r, struct event *e)
{
    static const int64_t lengths[] = { 1, 2, 3, 6, 9, 12, 13, 18, 27 };

    *e = (struct event){ .what = sweep_random (r, 6) };
    if (sweep_random (r, 3) == 0)
        e->what = EVENT_BEGIN;
    (void)searcher_ask (s, &e->op, e->x);
    if (e->what != EVENT_BEGIN) {
        e->op.trial = 1 + sweep_random (r, 30);
        e->op.length = lengths[sweep_random (r, COUNT (lengths))];
    }
    if (sweep_random (r, 8) == 0)
        e->op.trial = odd (r);
    if (sweep_random (r, 8) == 0)
        e->op.length = odd (r);
    if (sweep_random (r, 8) == 0)
        e->op.fresh = !e->op.fresh;
    if (sweep_random (r, 8) == 0)
        e->op.from = odd (r);
    if (sweep_random (r, 8) == 0)
        e->x[sweep_random (r, COUNT (space))] = odd_value (r);
    e->value = odd_value (r);
    for (int i = 0; i < OBJECTIVES_MAX; i++)
        e->values[i] = odd_value (r);
}

static int try_event (struct searcher *s, const struct event *e)
{
    switch (e->what) {
    case EVENT_BEGIN:
        return searcher_begin (s, &e->op, e->x);
    case EVENT_TELL:
        return searcher_observe (s, e->op.trial, e->op.length, e->values);
    case EVENT_EXIT:
        return searcher_exit (s, e->op.trial);
    case EVENT_REJECT:
        return searcher_reject (s, e->op.trial);
    case EVENT_REPORT:
        return searcher_report (s, e->op.trial, e->op.length, e->value);
    case EVENT_SPEND:
        return searcher_spend (s, e->op.trial, e->value);
    }
    return 0;
}

static void fuzz (const struct search_config *config, uint64_t seed, long n)
{
    struct searcher *s = searcher_create (config, space, COUNT (space));
    struct searcher *copy;
    uint64_t r = seed;

    assert_non_null (s);
    copy = searcher_copy (s);
    assert_non_null (copy);
    for (long i = 0; i < n; i++) {
        double before = searcher_progress (s);
        struct event e;
        make_event (s, &r, &e);
        (void)searcher_stops (s, e.op.trial);
        errno = 0;
        if (try_event (s, &e) < 0) {
            assert_int_equal (errno, EINVAL);
            assert_true (same_bytes (s, copy));
        } else
            memcpy (copy, s, searcher_size (s));
        assert_true (searcher_progress (s) >= before);
        assert_true (searcher_progress (s) <= 1);
    }
    searcher_destroy (s);
    searcher_destroy (copy);
}

CASE (test_fuzz)
{
    const char *more = getenv ("FUZZ"); /* multiplies the number of seeds */
    long times = more ? atol (more) : 1;

    for (uint64_t seed = 1; seed <= 8 * (uint64_t)times; seed++)
        for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
            struct search_config config = start (k, seed).config;
            bool slow = !strcmp (k->name, "gp") || !strcmp (k->name, "auto");
            if (seed % 8 == 5 && k->needs & HAS_OBJECTIVES) {
                config.objectives = 2;
                config.max_length = 1;
            }
            if (seed % 8 == 6)
                config.constraint = NULL;
            if (seed % 8 == 7 && k->needs & (NEED_MAX_TRIALS | CAN_MAX_TRIALS))
                config.sampler = seed % 16 == 7 ? "tpe" : "cmaes";
            if (config.objectives > 1)
                config.sampler = NULL, config.repeats = 0;
            fuzz (&config, seed, (slow ? 60 : 300) / SLOWER);
        }
}

/* ---- many trials and choices ---- */

CASE (test_outstanding)
{
    static const char *const names[] = { "random", "asha", "tpe", "halving" };

    for (size_t k = 0; k < COUNT (names); k++) {
        struct search_config config =
            SEARCH (names[k], .max_trials = 100000, .max_length = 9, .max_concurrent = 100000,
                    .divisor = 3, .max_rungs = 3);
        struct searcher *s = searcher_create (&config, space, COUNT (space));
        struct search_op op;
        double x[COUNT (space)];
        int64_t length = 9;

        assert_non_null (s);
        for (long t = 1; t <= config.max_trials; t++) {
            assert_int_equal (searcher_ask (s, &op, x), SEARCH_RUN);
            assert_int_equal (op.trial, t);
            assert_int_equal (searcher_begin (s, &op, x), 0);
            length = op.length;
        }
        assert_int_equal (searcher_ask (s, &op, x), SEARCH_WAIT);
        for (long t = config.max_trials; t > config.max_trials - 30; t--)
            assert_int_equal (searcher_observe (s, t, length, &(double){ t }), 0);
        (void)searcher_ask (s, &op, x);
        searcher_destroy (s);
    }
}

/* A model has to cope with 20000 pending trials. */
CASE (test_pending)
{
    struct search_config config = SEARCH ("tpe", .max_trials = 100000, .max_length = 1);
    struct searcher *s = searcher_create (&config, space, COUNT (space));
    double x[COUNT (space)];

    assert_non_null (s);
    for (long t = 1; t <= 20000; t++)
        sweep_next (s, x);
    for (long t = 1; t <= 50; t++)
        assert_int_equal (searcher_observe (s, t, 1, &(double){ t % 7 }), 0);
    for (long t = 1; t <= 100; t++)
        sweep_next (s, x);
    searcher_destroy (s);
}

CASE (test_choices)
{
    static const struct param p[] = {
        { .name = "c", .type = PARAM_CATEGORICAL, .choices = 1000000 },
        { .name = "d", .type = PARAM_CATEGORICAL, .choices = 1 << 30 },
    };

    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        struct sweep w = start (k, 1);
        struct search_op op;
        struct searcher *s;
        double x[2];

        w.config.constraint = NULL;
        s = searcher_create (&w.config, p, k->needs & NEED_GRID_COUNT ? 1 : 2);
        assert_non_null (s);
        for (long t = 1; t <= 24; t++) {
            if (searcher_ask (s, &op, x) != SEARCH_RUN)
                break;
            assert_int_equal (searcher_begin (s, &op, x), 0);
            assert_int_equal (searcher_observe (s, op.trial, op.length, &(double){ x[0] }), 0);
        }
        searcher_destroy (s);
    }
}

RUN_CASES ()
