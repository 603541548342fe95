/* SPDX-License-Identifier: Apache-2.0 */
/* Several objectives: ranks, crowding distances, hypervolumes, and the choice of a subset. */
#include "searcher/objectives/pareto.c"
#include "searcher/objectives/hypervolume.c"
#include "tests/searcher/fronts.h"

/* ---- order ---- */

static const struct {
    double a[3], b[3];
    bool first, second; /* a dominates b, b dominates a */
} pairs[] = {
    { { 1, 2, 3 }, { 1, 2, 3 }, false, false },
    { { 1, 2, 3 }, { 1, 2, 4 }, true, false },
    { { 1, 2, 3 }, { 2, 1, 3 }, false, false },
    { { 9, 9, 9 }, { 0, 0, 0 }, false, true },
    { { 9, 9, 9 }, { 0, 0, INFINITY }, true, false },
    { { 9, 9, 9 }, { NAN, 0, 0 }, true, false },
    { { 9, 9, 9 }, { 0, -INFINITY, 0 }, true, false },
    { { INFINITY, 9, 9 }, { NAN, 0, 0 }, false, false },
    { { INFINITY, 9, 9 }, { INFINITY, 0, 0 }, false, false },
    { { -INFINITY, 0, 0 }, { INFINITY, 9, 9 }, false, false },
};

CASE (dominance)
{
    for (size_t i = 0; i < COUNT (pairs); i++) {
        const double *a = pairs[i].a, *b = pairs[i].b;
        assert_int_equal (dominates (a, b, 3), pairs[i].first);
        assert_int_equal (dominates (b, a, 3), pairs[i].second);
    }
}

/* Compute ranks by definition: peel off one front after another. */
static void peel (const double *y, int64_t n, int64_t m, int64_t *rank)
{
    int64_t left = n;

    for (int64_t i = 0; i < n; i++)
        rank[i] = -1;
    for (int64_t now = 0; left > 0; now++)
        for (int64_t i = 0; i < n; i++) {
            bool free = rank[i] < 0;
            for (int64_t j = 0; j < n && free; j++)
                free = (rank[j] >= 0 && rank[j] < now) || !dominates (y + j * m, y + i * m, m);
            if (free) {
                rank[i] = now;
                left--;
            }
        }
}

CASE (ranks_are_those_of_the_definition)
{
    double y[ROOM];
    int64_t rank[ROWS], expected[ROWS];

    for (int c = 0; c < 800; c++) {
        struct rng r = { .seed = c };
        int64_t n = rng_below (c, 0, 1, ROWS + 1), m = 1 + c % 4;
        draw_rows (&r, n, m, c % 3 * 4, y);
        if (c % 2)
            spoil (&r, n, m, y);
        peel (y, n, m, expected);
        assert_int_equal (pareto_ranks (y, n, m, rank), 0);
        assert_memory_equal (rank, expected, n * sizeof (*rank));
    }
}

/* Worked out by hand.  In the first front, objective 0 has the values 0 1 3 10 and objective 1 has
 * 0 5 6 10, so the row (1, 6) has the distance 3/10 + (10 - 5)/10.
 */
/* clang-format off */
static const struct {
    double y[2];
    int64_t rank;
    double distance;
} crowd[] = {
    { { 3, 5 }, 0, 0.9 + 0.6 },
    { { 20, 20 }, 2, INFINITY },
    { { 10, 0 }, 0, INFINITY },
    { { 11, 7 }, 1, INFINITY },
    { { NAN, 0 }, 3, 0 },
    { { 1, 6 }, 0, 0.3 + 0.5 },
    { { 0, 10 }, 0, INFINITY },
    { { 7, 7.5 }, 1, INFINITY },
};
/* clang-format on */

CASE (crowding)
{
    double y[COUNT (crowd) * 2], distance[COUNT (crowd)];
    int64_t rank[COUNT (crowd)], n = COUNT (crowd);

    for (int64_t i = 0; i < n; i++)
        memcpy (y + 2 * i, crowd[i].y, sizeof (crowd[i].y));
    assert_int_equal (pareto_ranks (y, n, 2, rank), 0);
    assert_int_equal (pareto_crowding (y, n, 2, rank, distance), 0);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal (rank[i], crowd[i].rank);
        if (isinf (crowd[i].distance))
            assert_true (distance[i] == INFINITY);
        else
            assert_near (distance[i], crowd[i].distance, 1e-15);
    }
}

/* Among equal values the first row counts as the smallest, and huge ranges do not overflow. */
CASE (crowding_of_odd_values)
{
    static const double equal[] = { 2, 2, 2, 2 }, twos[] = { 2, 2, 7, 7 };
    static const double large[] = { -1.7e308, 1.7e308, 0, 0, 1.7e308, -1.7e308 };
    static const int64_t rank[4];
    double distance[4];

    assert_int_equal (pareto_crowding (equal, 4, 1, rank, distance), 0);
    assert_true (distance[0] == INFINITY && distance[3] == INFINITY);
    assert_true (distance[1] == 0 && distance[2] == 0);
    assert_int_equal (pareto_crowding (twos, 4, 1, rank, distance), 0);
    assert_true (distance[0] == INFINITY && distance[3] == INFINITY);
    assert_true (distance[1] == 1 && distance[2] == 1);
    assert_int_equal (pareto_crowding (large, 3, 2, rank, distance), 0);
    assert_near (distance[1], 2, 1e-15);
    assert_int_equal (pareto_crowding (equal, 0, 2, rank, distance), 0);
}

/* ---- volume ---- */

static double volume_below (const double *y, int64_t n, int64_t m, const double *reference)
{
    struct front f;
    double volume;

    assert_int_equal (front_init (&f, m, n), 0);
    for (int64_t i = 0; i < n; i++)
        if (dominates_reference (y + i * m, reference, m))
            add_to_front (&f, y + i * m);
    volume = volume_of (&f, reference);
    free (f.rows);
    return volume;
}

static double volume_of_rows (const double *y, int64_t n, int64_t m)
{
    return volume_below (y, n, m, ones);
}

static const struct {
    int64_t n, m;
    double y[12], reference, volume;
} known[] = {
    { 0, 2, { 0 }, 2, 0 },
    { 3, 1, { 1, 0.5, 3 }, 2, 1.5 },
    /* from pygmo's manual */
    { 4, 2, { 1, 0, 0.5, 0.5, 0, 1, 1.5, 0.75 }, 2, 3.25 },
    { 4, 2, { 1, 2, 2, 1, 2, 1, 1, 2 }, 3, 3 },
    { 4, 2, { 1, 2, 2, 1, 0, 3, 3, 0 }, 3, 3 },
    { 4, 2, { 1, 2, 2, 1, 0, NAN, -INFINITY, 0 }, 3, 3 },
    { 2, 2, { 4, 0, 0, INFINITY }, 3, 0 },
    /* three boxes of volume 6; each pair shares 2, and all three share 1 */
    { 3, 3, { 1, 2, 3, 2, 3, 1, 3, 1, 2 }, 4, 13 },
    { 3, 4, { 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1 }, 2, 4 },
    { 1, 8, { 1, 1, 1, 1, 1, 1, 1, 1 }, 3, 256 },
};

CASE (known_volumes)
{
    for (size_t i = 0; i < COUNT (known); i++) {
        double reference[PARETO_MAX], volume;
        for (int k = 0; k < PARETO_MAX; k++)
            reference[k] = known[i].reference;
        volume = volume_below (known[i].y, known[i].n, known[i].m, reference);
        assert_true (fabs (volume - known[i].volume) < 1e-15);
        volume = hypervolume (known[i].y, known[i].n, known[i].m, known[i].m, reference);
        assert_true (fabs (volume - known[i].volume) < 1e-15);
    }
}

/* Return the volume that all rows of 'set', a bit set, dominate. */
static double common_volume (const double *y, int64_t m, unsigned int set)
{
    double product = 1;

    for (int64_t k = 0; k < m; k++) {
        double worst = -INFINITY;
        for (int64_t i = 0; set >> i; i++)
            if (set >> i & 1)
                worst = fmax (worst, y[i * m + k]);
        product *= fmax (0, 1 - worst);
    }
    return product;
}

static double inclusion_exclusion (const double *y, int64_t n, int64_t m)
{
    double sum = 0;

    for (unsigned int set = 1; set < 1U << n; set++)
        sum += common_volume (y, m, set) * (__builtin_popcount (set) % 2 ? 1 : -1);
    return sum;
}

/* Some rows lie outside the reference point, some are equal, and some share a value. */
CASE (volumes_by_inclusion_and_exclusion)
{
    double y[ROOM];

    for (int c = 0; c < 700; c++) {
        struct rng r = { .seed = c };
        int64_t n = c % 9, m = 1 + c % 7;
        draw_rows (&r, n, m, c % 3 * 4, y);
        for (int64_t i = 0; i < n * m && c % 2; i++)
            y[i] *= 1.2;
        assert_true (fabs (volume_of_rows (y, n, m) - inclusion_exclusion (y, n, m)) < 1e-13);
    }
}

CASE (volumes_by_monte_carlo)
{
    enum { DRAWS = 40000 };

    for (int64_t m = 2; m <= 5; m++) {
        struct rng r = { .seed = m };
        double y[ROOM], x[PARETO_MAX], part;
        int hits = 0;
        draw_rows (&r, 30, m, 0, y);
        for (int i = 0; i < DRAWS; i++) {
            bool hit = false;
            draw_rows (&r, 1, m, 0, x);
            for (int64_t j = 0; j < 30 && !hit; j++)
                hit = dominates (y + j * m, x, m);
            hits += hit;
        }
        part = (double)hits / DRAWS;
        assert_true (fabs (part - volume_of_rows (y, 30, m))
                     < 4 * sqrt (part * (1 - part) / DRAWS));
    }
}

static void rotate (double *y, int64_t n, int64_t m, int64_t by)
{
    double copy[ROOM];

    memcpy (copy, y, n * m * sizeof (*y));
    for (int64_t i = 0; i < n; i++)
        memcpy (y + i * m, copy + (i * 7 + by) % n * m, m * sizeof (*y));
}

/* Neither the order of the rows nor that of the objectives matters. */
CASE (volumes_do_not_depend_on_the_order)
{
    double y[ROOM], x[ROOM];

    for (int c = 0; c < 50; c++) {
        struct rng r = { .seed = c };
        int64_t n = 40, m = 2 + c % 4;
        double volume;
        draw_rows (&r, n, m, c % 3 * 8, y);
        volume = volume_of_rows (y, n, m);
        rotate (y, n, m, c);
        assert_near (volume_of_rows (y, n, m), volume, 1e-13);
        for (int64_t i = 0; i < n * m; i++)
            x[i] = y[i / m * m + (i % m + 1) % m];
        assert_near (volume_of_rows (x, n, m), volume, 1e-13);
    }
}

/* ---- choice of a subset ---- */

static double volume_of_set (const double *y, int64_t m, const int64_t *rows, int64_t n)
{
    double x[ROOM];

    for (int64_t i = 0; i < n; i++)
        memcpy (x + i * m, y + rows[i] * m, m * sizeof (*y));
    return volume_of_rows (x, n, m);
}

static double best_volume (const double *y, int64_t n, int64_t m, int64_t want)
{
    double most = 0;

    for (unsigned int set = 0; set < 1U << n; set++) {
        int64_t rows[ROWS], count = 0;
        for (int64_t i = 0; i < n; i++)
            if (set >> i & 1)
                rows[count++] = i;
        if (count == want)
            most = fmax (most, volume_of_set (y, m, rows, count));
    }
    return most;
}

/* Check that at each step no other row would have added more volume. */
static void check_greedy (const double *y, int64_t n, int64_t m, const int64_t *chosen,
                          int64_t want)
{
    int64_t rows[ROWS];

    for (int64_t k = 0; k < want; k++) {
        double got = volume_of_set (y, m, chosen, k + 1);
        memcpy (rows, chosen, k * sizeof (*rows));
        for (rows[k] = 0; rows[k] < n; rows[k]++)
            assert_true (volume_of_set (y, m, rows, k + 1) <= got + 1e-13);
    }
}

CASE (choice_is_greedy_and_good)
{
    double y[ROOM];
    int64_t chosen[ROWS];

    for (int c = 0; c < 60; c++) {
        struct rng r = { .seed = c };
        int64_t n = 8, m = 1 + c % 5, want = 1 + c % 4;
        draw_rows (&r, n, m, c % 3 * 4, y);
        if (c % 2)
            spoil (&r, n, m, y);
        assert_int_equal (choose_largest_volume (y, n, m, ones, want, chosen), 0);
        check_greedy (y, n, m, chosen, want);
        assert_true (volume_of_set (y, m, chosen, want)
                     >= (1 - exp (-1)) * best_volume (y, n, m, want));
    }
}

/* Choosing all rows returns each of them once, those that are not finite last. */
CASE (choice_of_all)
{
    static const double y[] = { NAN, 0,   0.5, 0.5, 0.5, 0.5,       2,   2,
                                0.1, 0.8, 0.8, 0.1, 0,   -INFINITY, 0.9, 0.9 };
    static const int64_t order[] = { 1, 4, 5, 2, 3, 7, 0, 6 };
    int64_t chosen[8];

    assert_int_equal (choose_largest_volume (y, 8, 2, ones, 8, chosen), 0);
    assert_memory_equal (chosen, order, sizeof (order));
    assert_int_equal (choose_largest_volume (y, 8, 2, ones, 0, chosen), 0);
    assert_int_equal (choose_largest_volume (y, 0, 2, ones, 0, chosen), 0);
}

CASE (refusals)
{
    double y[9] = { 0 };
    int64_t chosen[1] = { 7 };

    for (int64_t m = 0; m <= 9; m += 9) {
        errno = 0;
        assert_null (pareto_boxes_create (y, 1, m, y));
        assert_int_equal (errno, EINVAL);
        assert_int_equal (choose_largest_volume (y, 1, m, y, 1, chosen), -1);
    }
    errno = 0;
    assert_int_equal (choose_largest_volume (y, 1, 2, y, 2, chosen), -1);
    assert_int_equal (errno, EINVAL);
    assert_int_equal (choose_largest_volume (y, 1, 2, y, -1, chosen), -1);
    assert_true (chosen[0] == 7);
}

RUN_CASES ()
