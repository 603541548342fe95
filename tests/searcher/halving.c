/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronous halving, Hyperband, BOHB and PASHA. */
#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static const struct param unit = FLOAT ("x", 0, 1, 0);

/* Distinct values in a scrambled order; the ranking is the same at every length. */
static double stable (const struct sweep *w, long trial, int64_t length)
{
    return trial * 37 % 1009 + 1.0 / length;
}

static double noisy (const struct sweep *w, long trial, int64_t length)
{
    uint64_t r = w->config.seed * 31 + trial * 1000 + length;
    uint64_t value = sweep_random (&r, 50);

    value = sweep_random (&r, 50);
    return value == 0 ? NAN : value == 1 ? INFINITY : (double)value;
}

/* ---- a reference model: sort each rung once it is complete ---- */

struct result {
    double value;
    long trial;
};

static bool starts_at (const struct sweep *w, long trial, long a, long b)
{
    return trial >= a && trial <= b;
}

/* Check the bracket of the trials a .. b, whose rungs are at 'length'.  Rejected trials do not
 * count.
 */
static void check_bracket (const struct sweep *w, long a, long b, const int64_t *length, int rungs,
                           double divisor)
{
    bool in[600] = { false };
    long all = 0;

    for (long t = a; t <= b; t++)
        in[t] = true;
    for (size_t i = 0; i < w->n_events; i++)
        if (w->events[i].what == EVENT_REJECT && w->events[i].op.length == length[0])
            in[w->events[i].op.trial] = false;
    for (long t = a; t <= b; t++)
        all += in[t];
    for (int rung = 0; rung < rungs; rung++) {
        struct result list[600];
        long n = 0, share = floor (all / divisor), promoted = 0;
        for (size_t i = 0; i < w->n_events; i++) {
            const struct event *e = w->events + i;
            double value = e->what == EVENT_TELL && isfinite (e->value) ? e->value : INFINITY;
            long at = n;
            if (e->what == EVENT_BEGIN || e->op.length != length[rung]
                || !starts_at (w, e->op.trial, a, b) || !in[e->op.trial])
                continue;
            for (; at > 0 && list[at - 1].value > value; at--)
                list[at] = list[at - 1];
            list[at] = (struct result){ value, e->op.trial };
            n++;
        }
        assert_int_equal (n, all);
        memset (in, 0, sizeof (in));
        for (long i = 0; i < (share > 1 ? share : 1) && i < n; i++)
            if (isfinite (list[i].value)) {
                in[list[i].trial] = true;
                promoted++;
            }
        all = promoted;
        if (all == 0)
            break;
    }
}

static bool refuses (const struct sweep *w, long trial, int segment)
{
    return segment == 1 && sweep_seldom (w, trial + 1000, segment);
}

CASE (test_halving)
{
    static const double divisors[] = { 2, 3, 4, 2.5 };

    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint64_t r = seed;
        struct sweep w = { .config = SEARCH (
                               "halving", .seed = seed, .max_trials = 1 + sweep_random (&r, 100),
                               .max_length = 1 + sweep_random (&r, 300),
                               .divisor = divisors[seed % 4], .max_rungs = 1 + sweep_random (&r, 6),
                               .max_concurrent = sweep_random (&r, 12)),
                           .params = &unit,
                           .n = 1,
                           .metric = seed % 2 ? noisy : stable,
                           .fails = seed % 3 ? NULL : sweep_seldom,
                           .rejects = seed % 5 ? NULL : refuses,
                           .workers = sweep_random (&r, 20),
                           .shuffle = seed % 4 };
        struct search_rung rungs[8];
        int64_t length[8];
        int n = searcher_preview (&w.config, &unit, 1, rungs, 8);

        for (int i = 0; i < n; i++)
            length[i] = rungs[i].length;
        sweep_run (&w);
        assert_true (w.trials >= w.config.max_trials);
        assert_true (w.rejects || w.trials == w.config.max_trials);
        check_bracket (&w, 1, w.trials, length, n, w.config.divisor);
        for (int i = 0; i < n && w.metric == stable && !w.fails; i++)
            if (!w.rejects)
                assert_int_equal (sweep_count (&w, length[i]), rungs[i].trials);
        sweep_free (&w);
    }
}

/* ---- hyperband ---- */

/* clang-format off */
static const struct {
    int64_t length;
    double divisor;
    int brackets;
    struct {
        int64_t first;
        long trials[5]; /* per rung */
    } bracket[5];
} bands[] = {
    { 9, 3, 3, { { 1, { 9, 3, 1 } }, { 3, { 5, 1 } }, { 9, { 3 } } } },
    /* the table in the Hyperband paper */
    { 81, 3, 5, { { 1, { 81, 27, 9, 3, 1 } }, { 3, { 34, 11, 3, 1 } },
                  { 9, { 15, 5, 1 } }, { 27, { 8, 2 } }, { 81, { 5 } } } },
    { 16, 4, 3, { { 1, { 16, 4, 1 } }, { 4, { 6, 1 } }, { 16, { 3 } } } },
    { 10, 3, 3, { { 1, { 9, 3, 1 } }, { 3, { 5, 1 } }, { 10, { 3 } } } },
    { 1, 3, 1, { { 1, { 1 } } } },
};
/* clang-format on */

static int64_t rung_of (int64_t max, double divisor, int steps)
{
    return fmax (1, floor (max / pow (divisor, steps)));
}

static void check_band (const struct sweep *w, size_t i)
{
    long from = 1;

    for (int k = 0; k < bands[i].brackets; k++) {
        int rungs = bands[i].brackets - k;
        long n = bands[i].bracket[k].trials[0];
        int64_t length[5];
        for (int rung = 0; rung < rungs; rung++) {
            long came = 0;
            length[rung] = rung_of (bands[i].length, bands[i].divisor, rungs - 1 - rung);
            for (long t = from; t < from + n; t++)
                came += w->length[t] >= length[rung];
            assert_int_equal (came, bands[i].bracket[k].trials[rung]);
        }
        for (long t = from; t < from + n; t++)
            assert_int_equal (w->first[t], bands[i].bracket[k].first);
        check_bracket (w, from, from + n - 1, length, rungs, bands[i].divisor);
        from += n;
    }
    assert_int_equal (w->trials, from - 1);
}

CASE (test_hyperband)
{
    for (size_t i = 0; i < COUNT (bands); i++)
        for (int run = 0; run < 8; run++) {
            struct sweep w = { .config = SEARCH (run & 1 ? "bohb" : "hyperband", .seed = 5,
                                                 .max_length = bands[i].length,
                                                 .divisor = bands[i].divisor, .max_rungs = 5),
                               .params = &unit,
                               .n = 1,
                               .metric = stable,
                               .workers = run & 2 ? 1 : 17,
                               .shuffle = run & 4 ? 3 : 0 };

            sweep_run (&w);
            check_band (&w, i);
            sweep_free (&w);
        }
}

/* The brackets repeat until max_trials trials were created. */
CASE (test_rounds)
{
    static const struct {
        const char *name;
        long trials;
        int64_t length;
    } cases[] = {
        { "hyperband", 1, 9 },  { "hyperband", 17, 9 },       { "hyperband", 18, 9 },
        { "hyperband", 40, 9 }, { "hyperband", 5000, 1 },     { "hyperband", 30000, 9 },
        { "bohb", 40, 9 },      { "async_hyperband", 40, 9 }, { "async_hyperband", 5000, 2 },
    };

    for (size_t i = 0; i < COUNT (cases); i++) {
        struct search_config config = { .name = cases[i].name,
                                        .max_trials = cases[i].trials,
                                        .max_length = cases[i].length,
                                        .divisor = 3,
                                        .max_rungs = 5 };
        struct searcher *s = searcher_create (&config, NULL, 0);
        struct search_op op;
        long fresh = 0;

        assert_non_null (s);
        while (searcher_ask (s, &op, NULL) == SEARCH_RUN) {
            assert_int_equal (searcher_begin (s, &op, NULL), 0);
            fresh += op.fresh;
            assert_true (op.length >= 1 && op.length <= cases[i].length);
            if (fresh == 18 && cases[i].length == 9 && cases[i].trials == 40)
                assert_int_equal (op.length, 1);
        }
        assert_int_equal (fresh, cases[i].trials);
        searcher_destroy (s);
    }
}

/* ---- every method with promotions terminates, whatever fails ---- */

CASE (test_ends)
{
    static const char *const names[] = { "halving", "hyperband", "async_hyperband", "bohb",
                                         "pasha" };

    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t r = seed * 5;
        struct sweep w = { .config = { .name = names[seed % COUNT (names)],
                                       .seed = seed,
                                       .max_trials = 1 + sweep_random (&r, 60),
                                       .max_length = 1 + sweep_random (&r, 100),
                                       .smaller_is_better = seed % 2,
                                       .divisor = 2 + seed % 3,
                                       .max_rungs = 1 + sweep_random (&r, 5),
                                       .max_concurrent = sweep_random (&r, 9) },
                           .params = &unit,
                           .n = 1,
                           .metric = noisy,
                           .fails = seed % 3 ? sweep_seldom : NULL,
                           .rejects = seed % 4 ? NULL : refuses,
                           .workers = sweep_random (&r, 9),
                           .shuffle = seed };
        long whole = 0;

        sweep_run (&w);
        assert_int_equal (w.n_running, 0);
        assert_true (searcher_progress (w.s) == 1);
        for (long t = 1; t <= w.trials; t++)
            whole += w.length[t] == w.config.max_length;
        assert_true (whole > 0 || w.fails || w.rejects);
        if (w.config.max_concurrent)
            assert_true (w.most_running <= w.config.max_concurrent);
        sweep_free (&w);
    }
}

/* Like asha, but one bracket after the other. */
CASE (test_async)
{
    struct sweep w = { .config = SEARCH ("async_hyperband", .max_length = 9, .divisor = 3,
                                         .max_rungs = 5),
                       .metric = stable,
                       .workers = 1 };

    sweep_run (&w);
    assert_int_equal (w.trials, 17);
    for (long t = 1; t <= 17; t++)
        assert_int_equal (w.first[t], t <= 9 ? 1 : t <= 14 ? 3 : 9);
    /* the first promotion follows as soon as the rung has three results */
    assert_int_equal (w.events[6].what, EVENT_BEGIN);
    assert_false (w.events[6].op.fresh);
    assert_int_equal (w.events[6].op.length, 3);
    sweep_free (&w);
}

/* ---- bohb ---- */

static double near_03 (const struct sweep *w, long trial, int64_t length)
{
    return fabs (w->x[trial][0] - 0.3) + 1.0 / length;
}

/* BOHB starts to use its model once any length has enough results. */
CASE (test_bohb)
{
    double first = 0, last = 0;

    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct sweep w = { .config = SEARCH ("bohb", .seed = seed, LADDER (60, 27, 3, 4)),
                           .params = &unit,
                           .n = 1,
                           .metric = near_03,
                           .workers = 3 };
        struct sweep plain = w;

        plain.config.name = "hyperband";
        sweep_run (&w);
        sweep_run (&plain);
        for (long t = 1; t <= 10; t++)
            assert_true (w.x[t][0] == plain.x[t][0]);
        for (long t = 1; t <= 20; t++) {
            first += fabs (w.x[t][0] - 0.3);
            last += fabs (w.x[40 + t][0] - 0.3);
        }
        sweep_free (&w);
        sweep_free (&plain);
    }
    assert_true (last < 0.6 * first);
}

/* ---- pasha ---- */

/* Each rung reverses the ranking of the previous one. */
static double turning (const struct sweep *w, long trial, int64_t length)
{
    int rung = 0;

    for (int64_t l = length; l >= 3; l /= 3)
        rung++;
    return (rung % 2 ? -1.0 : 1.0) * (trial * 37 % 1009);
}

/* The ranking changes only up to the third rung. */
static double early (const struct sweep *w, long trial, int64_t length)
{
    return turning (w, trial, length < 3 ? 1 : length < 9 ? 27 : 9);
}

/* Similar trials swap ranks again and again; PASHA must treat that as noise. */
static double jitter (const struct sweep *w, long trial, int64_t length)
{
    uint64_t r = trial * 1000 + length;

    (void)sweep_random (&r, 100);
    return trial % 7 * 100 + sweep_random (&r, 2) * 1e-3;
}

CASE (test_pasha)
{
    static const struct {
        double (*metric) (const struct sweep *, long, int64_t);
        int64_t lengths[2]; /* min and max of the second longest length */
    } cases[] = {
        { stable, { 3, 3 } },
        { turning, { 243, 243 } },
        { early, { 9, 243 } },
        { jitter, { 3, 81 } },
    };

    for (size_t i = 0; i < COUNT (cases); i++)
        for (int run = 0; run < 4; run++) {
            struct sweep w = { .config = SEARCH ("pasha", LADDER (250, 243, 3, 6)),
                               .metric = cases[i].metric,
                               .workers = run & 1 ? 1 : 8,
                               .shuffle = run & 2 ? 9 : 0 };
            int64_t longest = 0, second = 0;

            sweep_run (&w);
            for (long t = 1; t <= w.trials; t++)
                if (w.length[t] >= longest) {
                    second = longest;
                    longest = w.length[t];
                } else if (w.length[t] > second)
                    second = w.length[t];
            assert_int_equal (longest, 243);
            assert_in_range (second, cases[i].lengths[0], cases[i].lengths[1]);
            sweep_free (&w);
        }
}

/* If the ranking is stable, PASHA trains only the best trial in full. */
CASE (test_pasha_best)
{
    struct sweep w = { .config = SEARCH ("pasha", LADDER (100, 81, 3, 5)),
                       .metric = stable,
                       .workers = 4 };
    long best = 1;

    sweep_run (&w);
    for (long t = 1; t <= w.trials; t++)
        if (stable (&w, t, 1) < stable (&w, best, 1))
            best = t;
    assert_int_equal (w.length[best], 81);
    assert_int_equal (sweep_count (&w, 81), 1);
    sweep_free (&w);
}

RUN_CASES ()
