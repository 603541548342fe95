/* SPDX-License-Identifier: Apache-2.0 */
/* Rungs, brackets with their trials and limits, and the preview. */
#include "searcher/state/state.h"
#include "tests/unit.h"

static struct ratio ratio (double divisor)
{
    struct ratio d;

    assert_null (ratio_from (&d, divisor));
    return d;
}

CASE (test_ratio)
{
    assert_int_equal (ratio (2.5).p, 5);
    assert_int_equal (ratio (2.5).q, 2);
    assert_int_equal (ratio (2.2).p, 11);
    assert_int_equal (ratio (1.001).p, 1001);
    assert_int_equal (ratio (1000).p, 1000);
    assert_int_equal (ratio (1000).q, 1);
    /* 11 / 2.2 must be 5 although the double 2.2 is slightly larger than 2.2 */
    assert_int_equal (ladder_rung (ratio (2.2), 11, 1), 5);
    assert_int_equal (ratio_share (ratio (2.2), 11), 5);
    assert_int_equal (ratio_share (ratio (2.5), 9), 3);
    assert_int_equal (ratio_share (ratio (4), 3), 0);
}

CASE (test_rungs)
{
    /* clang-format off */
    static const struct {
        int rungs;
        double divisor;
        int64_t length;
        int64_t each[6];   /* before merging */
        int64_t merged[6];
    } cases[] = {
        { 3, 3,   9,      { 1, 3, 9 },               { 1, 3, 9 } },
        { 4, 2,   10,     { 1, 2, 5, 10 },           { 1, 2, 5, 10 } },
        { 1, 3,   9,      { 9 },                     { 9 } },
        { 3, 3,   12,     { 1, 4, 12 },              { 1, 4, 12 } },
        { 3, 3,   576000, { 64000, 192000, 576000 }, { 64000, 192000, 576000 } },
        { 3, 3,   900,    { 100, 300, 900 },         { 100, 300, 900 } },
        { 5, 4,   1000,   { 3, 15, 62, 250, 1000 },  { 3, 15, 62, 250, 1000 } },
        { 5, 4,   255,    { 1, 3, 15, 63, 255 },     { 1, 3, 15, 63, 255 } },
        { 4, 2.5, 100,    { 6, 16, 40, 100 },        { 6, 16, 40, 100 } },
        { 5, 4,   100,    { 1, 1, 6, 25, 100 },      { 1, 6, 25, 100 } },
        { 3, 4,   3,      { 1, 1, 3 },               { 1, 3 } },
    };
    /* clang-format on */
    int64_t out[RUNGS_MAX];

    for (size_t i = 0; i < COUNT (cases); i++) {
        struct ratio d = ratio (cases[i].divisor);
        int n = ladder_build (d, cases[i].rungs, cases[i].length, out);

        for (int k = 0; k < cases[i].rungs; k++)
            assert_int_equal (ladder_rung (d, cases[i].length, cases[i].rungs - 1 - k),
                              cases[i].each[k]);
        for (int k = 0; k < n; k++)
            assert_int_equal (out[k], cases[i].merged[k]);
        assert_int_equal (cases[i].merged[n], 0);
    }
}

/* The largest intermediate numbers: 999.999^31 as a ratio takes 618 bits. */
CASE (test_wide)
{
    const int64_t longest = INT64_C (1) << 53;
    int64_t out[RUNGS_MAX];
    struct ratio d = ratio (999.999);

    assert_int_equal (ladder_rung (d, longest, 31), 1);
    /* computed with Python's fractions */
    assert_int_equal (ladder_rung (d, longest, 1), INT64_C (9007208261949));
    assert_int_equal (ladder_rung (d, longest, 2), INT64_C (9007217269));
    /* 999.999^3 exceeds 10000000 trials; 1.001^31 is only 1.03 */
    assert_int_equal (ladder_height (d, 32, longest, 10000000), 3);
    assert_int_equal (ladder_height (ratio (1.001), 99, longest, 10000000), 32);
    assert_int_equal (ladder_build (ratio (1.001), 32, longest, out), 32);
    assert_int_equal (out[31], longest);
}

/* Exact powers, which logarithms in floating point round wrongly: 243 = 3^5,
 * 59049 = 3^10 = 9^5, 1000 = 10^3.
 */
CASE (test_height)
{
    /* clang-format off */
    static const struct {
        double divisor;
        int64_t length, trials;
        long rungs;
        int height;
    } cases[] = {
        { 3,   243,   100000, 20, 6 },  { 3,  242,    100000, 20, 5 },
        { 3,   59049, 100000, 20, 11 }, { 9,  59049,  100000, 20, 6 },
        { 10,  1000,  100000, 20, 4 },  { 10, 100000, 1000,   20, 4 },
        { 10,  999,   100000, 20, 3 },  { 10, 1000,   100000, 3,  3 },
        { 4,   100,   10,     5,  2 },  { 4,  1,      1000,   5,  1 },
        { 2.5, 100,   15,     9,  3 },  { 2.5, 100,   16,     9,  4 },
        { 1.5, 3,     3,      9,  3 },  { 2,  1,      1,      1,  1 },
    };
    /* clang-format on */

    for (size_t i = 0; i < COUNT (cases); i++)
        assert_int_equal (ladder_height (ratio (cases[i].divisor), cases[i].rungs, cases[i].length,
                                         cases[i].trials),
                          cases[i].height);
    for (int64_t d = 2; d <= 10; d++)
        for (int64_t power = d, n = 1; power <= 1000000; power *= d, n++) {
            assert_int_equal (ladder_height (ratio (d), 99, power, 1000000), n + 1);
            assert_int_equal (ladder_height (ratio (d), 99, power - 1, 1000000), n);
        }
}

CASE (test_bracket_trials)
{
    /* clang-format off */
    static const struct {
        int64_t total;
        double divisor;
        int n, heights[3];
        int64_t trials[3];
    } cases[] = {
        { 20,  3, 3, { 3, 2, 1 }, { 12, 5, 3 } },
        { 50,  3, 2, { 4, 3 },    { 35, 15 } },
        { 50,  4, 2, { 3, 2 },    { 37, 13 } },
        { 100, 4, 3, { 4, 3, 2 }, { 70, 22, 8 } },
        { 1,   2, 1, { 1 },       { 1 } },
    };
    /* clang-format on */
    int64_t trials[RUNGS_MAX];

    for (size_t i = 0; i < COUNT (cases); i++) {
        assert_int_equal (bracket_trials (ratio (cases[i].divisor), cases[i].total,
                                          cases[i].heights, cases[i].n, trials),
                          cases[i].n);
        for (int k = 0; k < cases[i].n; k++)
            assert_int_equal (trials[k], cases[i].trials[k]);
    }
}

/* The brackets together get exactly the total, and each gets at least one trial. */
CASE (test_bracket_total)
{
    static const double divisors[] = { 1.001, 1.1, 1.5, 2, 2.5, 3, 4, 10 };
    int64_t trials[RUNGS_MAX];
    int heights[RUNGS_MAX];

    for (size_t i = 0; i < COUNT (divisors); i++)
        for (int64_t total = 1; total < 200; total++) {
            struct ratio d = ratio (divisors[i]);
            int height = ladder_height (d, 99, 1000000, total);
            int n = bracket_heights (SEARCH_CONSERVATIVE, height, heights);
            int64_t sum = 0;

            n = bracket_trials (d, total, heights, n, trials);
            assert_true (n >= 1);
            for (int k = 0; k < n; k++) {
                assert_true (trials[k] >= 1);
                sum += trials[k];
            }
            assert_int_equal (sum, total);
        }
}

CASE (test_bracket_limits)
{
    /* clang-format off */
    static const struct {
        int64_t limit;
        int n;
        int64_t trials[3], limits[3];
    } cases[] = {
        { 0,  3, { 9, 3, 1 }, { 9, 3, 1 } },
        { 11, 3, { 9, 3, 1 }, { 4, 4, 3 } },
        { 0,  2, { 40, 10 },  { 40, 10 } },
        { 1,  3, { 9, 3, 1 }, { 1, 1, 1 } },
    };
    /* clang-format on */
    int64_t limits[3];

    for (size_t i = 0; i < COUNT (cases); i++) {
        bracket_limits (cases[i].limit, cases[i].trials, cases[i].n, limits);
        for (int k = 0; k < cases[i].n; k++)
            assert_int_equal (limits[k], cases[i].limits[k]);
    }
    assert_int_equal (bracket_width (ratio (3), 3, 12), 9);
    assert_int_equal (bracket_width (ratio (3), 3, 8), 8);
    assert_int_equal (bracket_width (ratio (2.5), 3, 100), 6);
    assert_int_equal (bracket_width (ratio (1.001), 1, 100), 1);
}

/* clang-format off */
static const struct preview_case {
    enum search_mode mode;
    double divisor;
    long max_rungs, concurrent;
    int64_t length;
    long trials;
    int brackets[5][3];             /* height, trials, limit */
    struct search_rung preview[6];
} previews[] = {
    { SEARCH_AGGRESSIVE, 4, 5, 16, 1, 1,
      { { 1, 1, 16 } },
      { { 1, 1 } } },
    { SEARCH_STANDARD, 4, 5, 16, 1, 1,
      { { 1, 1, 16 } },
      { { 1, 1 } } },
    { SEARCH_CONSERVATIVE, 4, 5, 16, 1, 16,
      { { 1, 16, 16 } },
      { { 1, 16 } } },
    { SEARCH_STANDARD, 4, 5, 2, 100, 10,
      { { 2, 7, 1 }, { 1, 3, 1 } },
      { { 25, 6 }, { 100, 4 } } },
    { SEARCH_CONSERVATIVE, 3, 5, 5, 1000, 10,
      { { 3, 7, 2 }, { 2, 2, 2 }, { 1, 1, 1 } },
      { { 111, 5 }, { 333, 2 }, { 1000, 3 } } },
    { SEARCH_STANDARD, 3, 10, 5, 900, 10,
      { { 3, 7, 3 }, { 2, 3, 2 } },
      { { 100, 5 }, { 300, 3 }, { 900, 2 } } },
    { SEARCH_STANDARD, 4, 5, 16, 1000, 16,
      { { 3, 12, 8 }, { 2, 4, 8 } },
      { { 62, 9 }, { 250, 5 }, { 1000, 2 } } },
    { SEARCH_STANDARD, 4, 5, 16, 1000, 64,
      { { 4, 45, 6 }, { 3, 14, 5 }, { 2, 5, 5 } },
      { { 15, 34 }, { 62, 20 }, { 250, 7 }, { 1000, 3 } } },
    { SEARCH_STANDARD, 4, 5, 16, 1000, 100,
      { { 4, 70, 6 }, { 3, 22, 5 }, { 2, 8, 5 } },
      { { 15, 53 }, { 62, 30 }, { 250, 13 }, { 1000, 4 } } },
    { SEARCH_STANDARD, 4, 5, 16, 937, 500,
      { { 5, 354, 6 }, { 4, 110, 5 }, { 3, 36, 5 } },
      { { 3, 266 }, { 14, 149 }, { 58, 65 }, { 234, 16 }, { 937, 4 } } },
    { SEARCH_AGGRESSIVE, 4, 5, 16, 1000, 64,
      { { 4, 64, 16 } },
      { { 15, 48 }, { 62, 12 }, { 250, 3 }, { 1000, 1 } } },
    { SEARCH_AGGRESSIVE, 4, 5, 16, 1000, 1000,
      { { 5, 1000, 16 } },
      { { 3, 750 }, { 15, 188 }, { 62, 47 }, { 250, 12 }, { 1000, 3 } } },
    { SEARCH_CONSERVATIVE, 4, 5, 16, 1000, 100,
      { { 4, 67, 4 }, { 3, 21, 4 }, { 2, 8, 4 }, { 1, 4, 4 } },
      { { 15, 51 }, { 62, 28 }, { 250, 13 }, { 1000, 8 } } },
    { SEARCH_CONSERVATIVE, 4, 5, 16, 100000, 500,
      { { 5, 341, 4 }, { 4, 105, 3 }, { 3, 35, 3 }, { 2, 13, 3 }, { 1, 6, 3 } },
      { { 390, 256 }, { 1562, 143 }, { 6250, 63 }, { 25000, 25 },
        { 100000, 13 } } },
    { SEARCH_STANDARD, 3, 5, 16, 9, 9,
      { { 3, 6, 8 }, { 2, 3, 8 } },
      { { 1, 4 }, { 3, 3 }, { 9, 2 } } },
    { SEARCH_STANDARD, 3, 5, 16, 81, 81,
      { { 5, 51, 6 }, { 4, 21, 5 }, { 3, 9, 5 } },
      { { 1, 34 }, { 3, 26 }, { 9, 15 }, { 27, 3 }, { 81, 3 } } },
};
/* clang-format on */

static void check_brackets (const struct preview_case *c)
{
    struct ratio d = ratio (c->divisor);
    int height = ladder_height (d, c->max_rungs, c->length, c->trials);
    int heights[RUNGS_MAX];
    int64_t trials[RUNGS_MAX], limits[RUNGS_MAX];
    int n = bracket_heights (c->mode, height, heights);

    assert_int_equal (bracket_trials (d, c->trials, heights, n, trials), n);
    bracket_limits (c->concurrent, trials, n, limits);
    for (int i = 0; i < n; i++) {
        assert_int_equal (heights[i], c->brackets[i][0]);
        assert_int_equal (trials[i], c->brackets[i][1]);
        assert_int_equal (limits[i], c->brackets[i][2]);
    }
    assert_int_equal (n < 5 ? c->brackets[n][0] : 0, 0);
}

CASE (test_preview)
{
    struct search_config config = { .name = "adaptive_asha" };
    struct search_rung out[RUNGS_MAX];

    for (size_t i = 0; i < COUNT (previews); i++) {
        const struct preview_case *c = previews + i;
        int n;

        check_brackets (c);
        config.mode = c->mode;
        config.divisor = c->divisor;
        config.max_rungs = c->max_rungs;
        config.max_concurrent = c->concurrent;
        config.max_length = c->length;
        config.max_trials = c->trials;
        n = searcher_preview (&config, NULL, 0, out, RUNGS_MAX);
        assert_true (n >= 1 && n < 6);
        assert_int_equal (c->preview[n].length, 0);
        for (int k = 0; k < n; k++) {
            assert_int_equal (out[k].length, c->preview[k].length);
            assert_int_equal (out[k].trials, c->preview[k].trials);
        }
    }
}

CASE (test_preview_flat)
{
    static const struct param choice = { .name = "c", .type = PARAM_CATEGORICAL, .choices = 6 };
    struct search_config config = { .max_trials = 40, .max_length = 7 };
    struct search_rung out[2] = { { 0, 0 }, { -1, -1 } };

    config.name = "random";
    assert_int_equal (searcher_preview (&config, &choice, 1, out, 2), 1);
    assert_int_equal (out[0].length, 7);
    assert_int_equal (out[0].trials, 40);
    config.name = "grid";
    assert_int_equal (searcher_preview (&config, &choice, 1, out, 2), 1);
    assert_int_equal (out[0].trials, 6);
    config.name = "single";
    assert_int_equal (searcher_preview (&config, &choice, 1, out, 2), 1);
    assert_int_equal (out[0].trials, 1);
    assert_int_equal (out[1].length, -1);
    assert_int_equal (searcher_preview (&config, &choice, 1, NULL, 0), 1);
    config.max_length = 0;
    errno = 0;
    assert_int_equal (searcher_preview (&config, &choice, 1, out, 2), -1);
    assert_int_equal (errno, EINVAL);
}

/* With fewer slots than rungs, write only the shortest rungs and nothing past the array. */
CASE (test_preview_short)
{
    struct search_config config = {
        .name = "asha", .divisor = 3, .max_rungs = 3, .max_length = 9, .max_trials = 27
    };
    struct search_rung out[3] = { { 0, 0 }, { 0, 0 }, { -1, -1 } };

    assert_int_equal (searcher_preview (&config, NULL, 0, out, 2), 3);
    assert_int_equal (out[0].trials, 18);
    assert_int_equal (out[1].trials, 6);
    assert_int_equal (out[2].trials, -1);
}

RUN_CASES ()
