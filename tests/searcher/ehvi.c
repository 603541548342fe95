/* SPDX-License-Identifier: Apache-2.0 */
/* The expected hypervolume improvement. */
#include "tests/searcher/fronts.h"

static double log_ehvi (const double *y, int64_t n, int64_t m, const double *reference,
                        const double *mean, const double *deviation)
{
    struct pareto_boxes *b = pareto_boxes_create (y, n, m, reference);
    double x;

    assert_non_null (b);
    x = pareto_log_ehvi (b, mean, deviation);
    pareto_boxes_destroy (b);
    return x;
}

/* Return the volume that the row x adds to y.  This writes x after the last row of y. */
static double improvement (double *y, int64_t n, int64_t m, const double *x)
{
    double before = volume_in_cube (y, n, m);

    memcpy (y + n * m, x, m * sizeof (*x));
    return volume_in_cube (y, n + 1, m) - before;
}

/* With almost no uncertainty, the expected improvement equals the improvement, wherever the point
 * lies.  Ties and rows that are not finite, dominated or outside make no difference.
 */
CASE (certain_improvement)
{
    double y[ROOM], x[PARETO_MAX], deviation[PARETO_MAX];

    for (int k = 0; k < PARETO_MAX; k++)
        deviation[k] = 1e-9;
    for (int c = 0; c < 2000; c++) {
        struct rng r = { .seed = c };
        int64_t n = c % 30, m = 1 + c % 5;
        double got, expected;
        draw_rows (&r, n, m, c % 3 * 4, y);
        for (int64_t i = 0; i < n * m; i++)
            y[i] *= 1.1;
        if (c % 2)
            spoil (&r, n, m, y);
        draw_rows (&r, 1, m, 0, x);
        x[0] -= 0.5;
        got = exp (log_ehvi (y, n, m, ones, x, deviation));
        expected = improvement (y, n, m, x);
        assert_true (fabs (got - expected) < 1e-8);
    }
}

CASE (ehvi_by_monte_carlo)
{
    enum { DRAWS = 4000 };

    for (int c = 0; c < 24; c++) {
        struct rng r = { .seed = c };
        double y[ROOM], mean[PARETO_MAX], deviation[PARETO_MAX], x[PARETO_MAX];
        int64_t n = c % 12, m = 2 + c % 3;
        double sum = 0, squares = 0, error;
        draw_rows (&r, n, m, c % 2 * 5, y);
        draw_rows (&r, 1, m, 0, mean);
        for (int64_t k = 0; k < m; k++)
            deviation[k] = 0.2 + rng_next (&r);
        for (int i = 0; i < DRAWS; i++) {
            double gain;
            for (int64_t k = 0; k < m; k++)
                x[k] = mean[k] + deviation[k] * rng_gauss (&r);
            gain = improvement (y, n, m, x);
            sum += gain;
            squares += gain * gain;
        }
        sum /= DRAWS;
        error = sqrt ((squares / DRAWS - sum * sum) / DRAWS);
        assert_true (fabs (exp (log_ehvi (y, n, m, ones, mean, deviation)) - sum) < 4 * error);
    }
}

/* With one objective, it equals the usual expected improvement. */
CASE (one_objective)
{
    static const double y[] = { 3, 2, NAN, 5 }, reference = 4;

    for (double z = -4; z < 10; z += 0.125) {
        double deviation = 0.75, mean = 2 - z * deviation;
        double density = exp (-z * z / 2) / sqrt (8 * atan (1));
        double ei = deviation * (density + z * erfc (-z / sqrt (2)) / 2);
        assert_near (log_ehvi (y, 4, 1, &reference, &mean, &deviation), log (ei), 1e-12);
    }
    /* in the far tail, compare with the asymptotic series */
    for (double z = 20; z < 1e9; z *= 1.5) {
        double deviation = 2, mean = 2 + z * deviation, i = 1 / (z * z);
        double series = 1 - 3 * i + 15 * i * i - 105 * i * i * i;
        double log_ei =
            log (deviation) - z * z / 2 - log (8 * atan (1)) / 2 - 2 * log (z) + log (series);
        assert_near (log_ehvi (y, 4, 1, &reference, &mean, &deviation), log_ei, 1e-9);
    }
}

/* Computed with 60 digits for the front (1, 4), (2, 2), (4, 1) and the reference (5, 5). */
static const struct {
    double mean[2], deviation[2], log_ehvi;
} far[] = {
    { { 1.5, 1.5 }, { 1, 1 }, 1.2236822326074081 },
    { { 1.5, 1.5 }, { 1e-3, 1e-3 }, 0.81093021621632876 },
    { { 1.5, 1.5 }, { 1e-6, 2 }, 1.3909472838779242 },
    { { 0, 0 }, { 0.5, 0.25 }, 2.6393611608025638 },
    { { -100, -100 }, { 1, 1 }, 9.3069224698224268 },
    { { 3, 3 }, { 0.125, 0.125 }, -38.508658622812524 },
    { { 3, 3 }, { 0.03125, 0.03125 }, -522.62591879865617 },
    { { 5, 5 }, { 0.125, 0.125 }, -335.86832339929724 },
    { { 50, 50 }, { 1, 1 }, -2226.4984142875243 },
    { { 50, 2 }, { 1, 1 }, -1023.5188634676263 },
    { { 1e4, 1e4 }, { 1, 1 }, -99940047.936303879 },
    { { 1e4, 3 }, { 1, 1e-3 }, -49980021.339219267 },
    { { 2, 2 }, { 1e-3, 1e-3 }, -6.4404991916109422 },
    { { 2, 2 }, { 1e3, 1e3 }, 11.985131052681454 },
    { { 2, 2 }, { 1e6, 1e6 }, 25.793151569381611 },
    { { 1e9, 0 }, { 0.5, 1 }, -1.9999999800000001e+18 },
};

CASE (known_ehvi)
{
    static const double y[] = { 4, 1, 2, 2, 1, 4 }, reference[] = { 5, 5 };

    for (size_t i = 0; i < COUNT (far); i++)
        assert_near (log_ehvi (y, 3, 2, reference, far[i].mean, far[i].deviation), far[i].log_ehvi,
                     1e-12);
}

/* The value falls strictly and stays finite as one objective, or all, get worse. */
CASE (ehvi_falls_for_ever)
{
    double y[ROOM], mean[4];

    for (int c = 0; c < 20; c++) {
        struct rng r = { .seed = c };
        int64_t n = 10, m = 1 + c % 4;
        double last = INFINITY;
        draw_rows (&r, n, m, 0, y);
        for (double z = -50; z < 1e12; z += 0.5 + fabs (z) / 8) {
            double now;
            for (int64_t k = 0; k < m; k++)
                mean[k] = k == 0 || c % 3 ? z : 0.5;
            now = log_ehvi (y, n, m, ones, mean, ones);
            assert_true (isfinite (now) && now < last);
            last = now;
        }
    }
}

/* Computed with 60 digits for 1001 rows from (-s, s) to (s, -s) and the reference (s + 1, s + 1),
 * which make many narrow boxes.
 */
/* clang-format off */
static const struct {
    double s, mean, log_ehvi;
} narrow[] = {
    { 4, 0, -0.68861100369452664 },
    { 4, -3, 2.9504541486311409 },
    { 4, 7, -56.132909004976607 },
    { 30, 0, -0.65927105854026009 },
    { 30, 20, -409.59858436524238 },
    { 0x1p-20, 0, -0.34926569902845891 },
    { 0x1p-20, -30, 6.8669333420797026 },
    { 0x1p-20, 30, -885.18859017581649 },
    { 0.5, 1e6, -999999000057.65677 },
};
/* clang-format on */

CASE (narrow_boxes)
{
    static double y[2002];

    for (size_t c = 0; c < COUNT (narrow); c++) {
        double s = narrow[c].s, mean[] = { narrow[c].mean, narrow[c].mean };
        double reference[] = { s + 1, s + 1 };
        for (int i = 0; i <= 1000; i++) {
            y[2 * i] = s * (i - 500) / 500;
            y[2 * i + 1] = -y[2 * i];
        }
        assert_near (log_ehvi (y, 1001, 2, reference, mean, ones), narrow[c].log_ehvi, 1e-12);
    }
}

RUN_CASES ()
