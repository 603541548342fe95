/* SPDX-License-Identifier: Apache-2.0 */
/* CMA-ES finds the best point, uses only the ranks of values, and survives any state. */
#include "searcher/models/cmaes.c"
#include "tests/unit.h"

enum { D_MAX = 10, SEEDS = 20, BYTES = 20000 };

struct problem {
    double (*value) (const struct problem *, const double *);
    int64_t d, discrete, cells; /* the first 'discrete' dimensions have 'cells' cells each */
    int64_t bound;              /* evaluations allowed to get below 1e-8 */
    int least;                  /* of SEEDS runs that must get there */
};

static double room[BYTES / sizeof (double)];
static double other[BYTES / sizeof (double)];
static double third[BYTES / sizeof (double)];
static const int64_t continuous[D_MAX];

/* ---- functions ---- */

/* Distance from the best point, which lies between 0.3 and 0.7 in each dimension. */
static double away (const struct problem *p, const double *u, int64_t i)
{
    double best = 0.3 + 0.4 * ((i * 7) % 10) / 9;

    if (i < p->discrete)
        return floor (u[i] * p->cells) - floor (best * p->cells);
    return 10 * (u[i] - best);
}

static double sphere (const struct problem *p, const double *u)
{
    double sum = 0;

    for (int64_t i = 0; i < p->d; i++)
        sum += away (p, u, i) * away (p, u, i);
    return sum;
}

static double ellipsoid (const struct problem *p, const double *u)
{
    double sum = 0;

    for (int64_t i = 0; i < p->d; i++)
        sum += pow (p->discrete ? 1e4 : 1e6, i / (p->d - 1.0)) * away (p, u, i) * away (p, u, i);
    return sum;
}

static double rosenbrock (const struct problem *p, const double *u)
{
    double sum = 0;

    for (int64_t i = 0; i + 1 < p->d; i++) {
        double a = away (p, u, i) + 1, b = away (p, u, i + 1) + 1;
        sum += 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a);
    }
    return sum;
}

/* clang-format off */
static const struct problem problems[] = {
    { sphere,      1, 0,   0,  200, SEEDS },
    { sphere,      2, 0,   0,  400, SEEDS },
    { sphere,      5, 0,   0, 1000, SEEDS },
    { sphere,     10, 0,   0, 1800, SEEDS },
    { ellipsoid,   5, 0,   0, 2200, SEEDS },
    { rosenbrock,  5, 0,   0, 3500, 17 }, /* there is a second minimum */
    { sphere,      6, 3,  10, 1300, 18 },
    { sphere,      6, 3,   2, 1400, 18 },
    { sphere,      8, 4, 100, 2200, 18 },
    { sphere,      4, 4,  10,  400, 18 },
    { ellipsoid,  10, 5,  10, 4000, 18 },
    { ellipsoid,  10, 5,   2, 4000, 18 },
};
/* clang-format on */

/* ---- runs ---- */

/* Number of updates of the distribution so far. */
static int64_t generations (const void *state)
{
    return ((const struct cmaes *)state)->generation;
}

/* Geometric mean of the standard deviations along the axes of the distribution.  Discrete
 * dimensions count with their hidden variable, which the margin correction widens.
 */
static double deviation (const void *state)
{
    const struct cmaes *s = state;
    double sum = 0;

    for (int64_t i = 0; i < s->d; i++)
        sum += log (state_vector (s, D)[i]);
    return s->sigma * exp (sum / s->d);
}

static void steps_of (const struct problem *p, int64_t *steps)
{
    for (int64_t i = 0; i < p->d; i++)
        steps[i] = i < p->discrete ? p->cells : 0;
}

static void start (void *s, const struct problem *p)
{
    double middle[D_MAX];
    int64_t steps[D_MAX];

    for (int64_t i = 0; i < p->d; i++)
        middle[i] = 0.5;
    steps_of (p, steps);
    assert_true (cmaes_size (p->d, 0) <= sizeof (room));
    cmaes_start (s, p->d, steps, middle, 0.3, 0);
}

static void ask (const void *s, uint64_t seed, uint64_t trial, double *u)
{
    struct rng r = { .seed = seed, .trial = trial };

    cmaes_ask (s, &r, u);
}

/* Return the number of evaluations until the value is below 'target', at most 'max'. */
static int64_t run (void *s, const struct problem *p, uint64_t seed, double target, int64_t max)
{
    double u[D_MAX], value = INFINITY;
    int64_t k = 0;

    for (; k < max && value >= target; k++) {
        ask (s, seed, k, u);
        value = p->value (p, u);
        cmaes_observe (s, u, value);
    }
    return value < target ? k : max;
}

static void assert_point (const struct problem *p, const double *u)
{
    for (int64_t i = 0; i < p->d; i++) {
        double cell = u[i] * p->cells - 0.5;
        assert_true (u[i] >= 0 && u[i] <= 1);
        if (i < p->discrete)
            assert_true (fabs (cell - round (cell)) < 1e-9);
    }
}

/* ---- tests ---- */

CASE (test_finds)
{
    for (size_t i = 0; i < COUNT (problems); i++) {
        const struct problem *p = problems + i;
        int found = 0;
        for (int seed = 0; seed < SEEDS; seed++) {
            start (room, p);
            found += run (room, p, seed, 1e-8, p->bound) < p->bound;
        }
        if (found < p->least)
            fail_msg ("problem %zu: %d of %d", i, found, SEEDS);
    }
}

/* The Python package cmaes 0.13.1 computes the same deviation from the same points. */
CASE (test_reference)
{
    static const struct {
        int64_t d, population;
        double sigma; /* times the geometric mean of the axes */
    } rows[] = {
        { 1, 0, 0.11858984595564319 },
        { 3, 0, 0.14520058547935327 },
        { 5, 12, 0.1348521201641153 },
    };

    for (size_t j = 0; j < COUNT (rows); j++) {
        const double middle[] = { 0.5, 0.5, 0.5, 0.5, 0.5 };
        int64_t d = rows[j].d, n = 0;
        cmaes_start (room, d, continuous, middle, 0.3, rows[j].population);
        for (; generations (room) < 6; n++) {
            double u[D_MAX], value = 0;
            for (int64_t i = 0; i < d; i++) {
                u[i] = fmod ((n * d + i + 1) * 0.6180339887498949, 1);
                value += (i + 1) * (u[i] - 0.4) * (u[i] - 0.4);
            }
            cmaes_observe (room, u, value);
        }
        assert_true (fabs (deviation (room) / rows[j].sigma - 1) < 1e-9);
    }
}

/* Only the order of values matters. */
CASE (test_ranks)
{
    static const struct problem p = { sphere, 6, 3, 10, 0, 0 };
    double u[D_MAX], v[D_MAX];

    start (room, &p);
    start (other, &p);
    for (int k = 0; k < 900; k++) {
        ask (room, 5, k, u);
        ask (other, 5, k, v);
        assert_memory_equal (u, v, p.d * sizeof (double));
        cmaes_observe (room, u, sphere (&p, u));
        cmaes_observe (other, v, -exp (-sphere (&p, v) / 8) * 1e-3 - 7);
    }
}

/* Of equal values the first observed ranks better; NaN ranks like INFINITY. */
CASE (test_ties)
{
    static const struct problem p = { sphere, 3, 0, 0, 0, 0 };
    const double same[] = { NAN, 3, 1, INFINITY, 3, NAN, 1 };
    const double rank[] = { 5, 3, 1, 6, 4, 7, 2 };
    double u[D_MAX], v[D_MAX];

    start (room, &p);
    start (other, &p);
    for (int k = 0; k < 70; k++) {
        ask (room, 5, k, u);
        ask (other, 5, k, v);
        assert_memory_equal (u, v, p.d * sizeof (double));
        cmaes_observe (room, u, same[k % 7]);
        cmaes_observe (other, v, rank[k % 7]);
    }
}

/* Neither the order of observations within a generation nor the address of the state matters. */
CASE (test_order)
{
    static const struct problem p = { ellipsoid, 6, 3, 10, 0, 0 };
    int64_t population = 9, n = 0;
    double u[9][D_MAX], v[D_MAX];

    start (room, &p);
    memcpy (other, room, cmaes_size (p.d, 0));
    for (int g = 0; g < 60; g++) {
        for (int64_t k = 0; k < population; k++) {
            ask (room, 8, n, u[k]);
            ask (other, 8, n++, v);
            assert_memory_equal (u[k], v, p.d * sizeof (double));
        }
        for (int64_t k = 0; k < population; k++) {
            const double *w = u[population - 1 - k];
            cmaes_observe (room, u[k], n * population + p.value (&p, u[k]));
            cmaes_observe (other, w, n * population + p.value (&p, w));
        }
        assert_int_equal (generations (room), g + 1);
        assert_int_equal (generations (other), g + 1);
    }
    memcpy (other, room, cmaes_size (p.d, 0));
    assert_int_equal (run (room, &p, 3, 0, 500), run (other, &p, 3, 0, 500));
    assert_memory_equal (room, other, cmaes_size (p.d, 0));
}

/* Sixteen workers evaluate points and finish in random order. */
CASE (test_asynchronous)
{
    enum { WORKERS = 16 };
    static const struct problem p = { sphere, 6, 3, 10, 0, 0 };
    double u[WORKERS][D_MAX], least;

    for (int seed = 0; seed < SEEDS; seed++) {
        least = INFINITY;
        start (room, &p);
        for (int k = 0; k < WORKERS; k++)
            ask (room, seed, k, u[k]);
        for (int k = WORKERS; least >= 1e-8; k++) {
            int i = rng_below (seed, k, 1, WORKERS);
            double value = p.value (&p, u[i]);
            cmaes_observe (room, u[i], value);
            ask (room, seed, k, u[i]);
            least = fmin (least, value);
            assert_true (k < 3000);
        }
    }
}

/* The cells next to that of the mean keep their minimum share of draws, even after hundreds of
 * generations that found nothing there.
 */
CASE (test_margin)
{
    enum { DRAWS = 40000 };
    static const struct problem p = { sphere, 6, 3, 10, 0, 0 };
    double share = 1 / (2 * 6 * 9.0); /* per side: 1 / (2 d population) */
    double u[D_MAX];
    int count[3][2] = { 0 };

    start (room, &p);
    run (room, &p, 1, 1e-18, 20000);
    assert_true (deviation (room) < 1e-6);
    for (int k = 0; k < DRAWS; k++) {
        ask (room, 2, k, u);
        for (int i = 0; i < 3; i++) {
            count[i][0] += away (&p, u, i) < 0;
            count[i][1] += away (&p, u, i) > 0;
        }
    }
    for (int i = 0; i < 3; i++)
        for (int side = 0; side < 2; side++)
            assert_true (count[i][side] > 0.8 * share * DRAWS);
}

/* Evaluations to reach 1e-2 from the default start or, if 'warm', from 100 random points. */
static int64_t cost (const struct problem *p, uint64_t seed, bool warm)
{
    enum { POINTS = 100 };
    static double points[POINTS][D_MAX];
    static double flat[POINTS * D_MAX];
    int64_t steps[D_MAX], n = 0;

    start (room, p);
    for (; warm && n < POINTS; n++) {
        int64_t at = n;
        double u[D_MAX];
        for (int64_t i = 0; i < p->d; i++)
            u[i] = rng_unit (seed, n, 100 + i);
        while (at > 0 && p->value (p, points[at - 1]) > p->value (p, u))
            at--;
        memmove (points + at + 1, points + at, (n - at) * sizeof (*points));
        memcpy (points[at], u, sizeof (u));
    }
    for (int64_t k = 0; k < n; k++)
        memcpy (flat + k * p->d, points[k], p->d * sizeof (double));
    steps_of (p, steps);
    if (warm)
        cmaes_warm_start (room, p->d, steps, flat, n, 0);
    return run (room, p, seed, 1e-2, 3000);
}

CASE (test_warm_start)
{
    static const struct problem warm[] = {
        { sphere, 4, 0, 0, 0, 0 },
        { ellipsoid, 4, 0, 0, 0, 0 },
        { sphere, 6, 3, 10, 0, 0 },
    };

    for (size_t i = 0; i < COUNT (warm); i++) {
        int64_t with = 0, without = 0;
        for (int seed = 0; seed < SEEDS; seed++) {
            with += cost (warm + i, seed, true);
            without += cost (warm + i, seed, false);
        }
        assert_true (with < 0.95 * without);
    }
}

/* Too few points to select the best tenth, and all of them equal. */
CASE (test_warm_start_few)
{
    static const struct problem p = { sphere, 3, 1, 10, 0, 0 };
    static const double points[] = { 0.05, 1, 0, 0.05, 1, 0 };
    const int64_t steps[] = { 10, 0, 0 };

    for (int64_t n = 1; n <= 2; n++) {
        cmaes_warm_start (room, 3, steps, points, n, 0);
        assert_true (fabs (deviation (room) - 0.1) < 1e-12);
        assert_true (run (room, &p, 1, 1e-8, 2000) < 2000);
    }
}

static double no_value (const struct problem *p, const double *u)
{
    return p->cells == 3 && u[0] > 0.5 ? NAN : INFINITY;
}

static double constant (const struct problem *p, const double *u)
{
    return 3;
}

static double corner (const struct problem *p, const double *u)
{
    double sum = 0;

    for (int64_t i = 0; i < p->d; i++)
        sum += i % 2 ? u[i] : -u[i];
    return sum;
}

/* Draw valid points even if the values are useless or the search converged long ago. */
CASE (test_degenerate)
{
    static const struct problem bad[] = {
        { no_value, 4, 2, 3, 0, 0 }, { no_value, 4, 2, 7, 0, 0 },  { constant, 6, 3, 10, 0, 0 },
        { constant, 1, 0, 0, 0, 0 }, { constant, 1, 1, 2, 0, 0 },  { constant, 2, 1, 1, 0, 0 },
        { constant, 5, 5, 2, 0, 0 }, { corner, 5, 0, 0, 0, 0 },    { corner, 6, 6, 4, 0, 0 },
        { corner, 6, 3, 4, 0, 0 },   { sphere, 1, 1, 2, 0, 0 },    { sphere, 5, 0, 0, 0, 0 },
        { sphere, 6, 3, 10, 0, 0 },  { ellipsoid, 5, 0, 0, 0, 0 }, { ellipsoid, 6, 3, 100, 0, 0 },
    };
    double u[D_MAX];

    for (size_t i = 0; i < COUNT (bad); i++) {
        start (room, bad + i);
        assert_false (cmaes_should_stop (room));
        for (int k = 0; k < 10000; k++) {
            ask (room, i, k, u);
            assert_point (bad + i, u);
            cmaes_observe (room, u, bad[i].value (bad + i, u));
        }
        assert_true (isfinite (deviation (room)) && deviation (room) > 0);
    }
}

/* Observe arbitrary points with arbitrary values in small and large populations. */
CASE (test_foreign)
{
    static const struct problem p = { sphere, 3, 1, 5, 0, 0 };
    const int64_t steps[] = { 5, 0, 0 };
    const double mean[] = { 0, 1, 0.5 };
    double u[D_MAX];

    for (int64_t population = 2; population < 30; population++) {
        assert_true (cmaes_size (3, population) <= sizeof (room));
        cmaes_start (room, 3, steps, mean, 1e-3, population);
        for (int k = 0; k < 3000; k++) {
            ask (room, 1, k, u);
            assert_point (&p, u);
            for (int64_t i = 0; k % 3 && i < 3; i++)
                u[i] = round (4 * rng_unit (1, k, i)) / 4;
            cmaes_observe (room, u, k % 5 ? rng_unit (1, k, 9) : INFINITY);
        }
    }
}

/* Replay a log of arbitrary points.  Copying the state after each event and drawing points in
 * between change neither the state nor the points drawn later.
 */
CASE (test_replay)
{
    static const struct problem p = { sphere, 6, 3, 10, 0, 0 };
    size_t size = cmaes_size (p.d, 0);
    void *here = other, *there = third;
    double u[D_MAX], v[D_MAX];

    start (room, &p);
    memcpy (here, room, size);
    for (int k = 0; k < 1000; k++) {
        void *old = here;
        for (int64_t i = 0; i < p.d; i++)
            u[i] = (floor (10 * rng_unit (3, k, i)) + 0.5) / 10;
        cmaes_observe (room, u, p.value (&p, u));
        ask (here, 4, k, v);
        cmaes_observe (here, u, p.value (&p, u));
        memcpy (there, here, size);
        memset (old, 0xff, size);
        here = there;
        there = old;
    }
    assert_true (generations (room) > 100);
    assert_memory_equal (room, here, size);
    for (int k = 0; k < 100; k++) {
        ask (room, 5, k, u);
        ask (here, 5, k, v);
        assert_point (&p, u);
        assert_memory_equal (u, v, p.d * sizeof (double));
    }
}

CASE (test_stop)
{
    static const struct problem p = { sphere, 5, 0, 0, 0, 0 };
    static const struct problem flat = { constant, 5, 2, 10, 0, 0 };

    start (room, &p);
    run (room, &p, 1, 1e-12, 3000);
    assert_false (cmaes_should_stop (room));
    run (room, &p, 2, 0, 5000);
    assert_true (cmaes_should_stop (room));
    start (room, &flat);
    run (room, &flat, 1, 0, 20 * 8);
    assert_false (cmaes_should_stop (room));
    run (room, &flat, 2, 0, 30 * 8);
    assert_true (cmaes_should_stop (room));
}

CASE (test_size)
{
    for (int64_t d = 1; d < 65; d++) {
        int64_t population = 4 + (int64_t)(3 * log (d));
        assert_int_equal (cmaes_size (d, 0) % 8, 0);
        assert_int_equal (cmaes_size (d, 0), cmaes_size (d, population));
    }
}

RUN_CASES ()
