/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers from a normal distribution that is truncated to an interval. */
#include "searcher/numeric/rng.h"
#include "tests/unit.h"

static double mass (double a, double b)
{
    if (b < 0)
        return mass (-b, -a);
    return a > 0 ? (erfc (a / sqrt (2)) - erfc (b / sqrt (2))) / 2
                 : (erf (b / sqrt (2)) - erf (a / sqrt (2))) / 2;
}

/* Each tenth of the probability mass gets a tenth of the draws, and a draw uses few random
 * numbers.
 */
CASE (test_gauss_between)
{
    enum { DRAWS = 20000, PARTS = 10 };
    static const double rows[][2] = {
        { -INFINITY, INFINITY },
        { -INFINITY, 0.5 },
        { 0, INFINITY },
        { 0, 0.1 },
        { -1, 1.4 },
        { -0.01, 2.6 },
        { 0.5, 0.6 },
        { 1, 3 },
        { 5, INFINITY },
        { 30, INFINITY },
        { 20, 20.01 },
        { -20.3, -20 },
        { -INFINITY, -2 },
    };

    for (size_t j = 0; j < COUNT (rows); j++) {
        double low = rows[j][0], high = rows[j][1], all = mass (low, high);
        struct rng r = { .seed = 1, .trial = j };
        int count[PARTS + 1] = { 0 };
        for (int k = 0; k < DRAWS; k++) {
            double z = rng_gauss_between (&r, low, high);
            assert_true (z >= low && z <= high);
            count[(int)(mass (low, z) / all * PARTS)]++;
        }
        for (int i = 0; i < PARTS; i++)
            if (abs (count[i] - DRAWS / PARTS) > 200)
                fail_msg ("row %zu, part %d: %d", j, i, count[i]);
        assert_true (r.draw < 4.4 * DRAWS);
    }
    for (int k = 0; k < 100; k++) {
        struct rng r = { .seed = 2, .trial = k };
        double z = rng_gauss_between (&r, 1e9, INFINITY);
        assert_true (z >= 1e9 && z < 1e9 + 1);
        z = rng_gauss_between (&r, -1e80, -1e80);
        assert_true (z == -1e80);
    }
}

RUN_CASES ()
