/* SPDX-License-Identifier: Apache-2.0 */
/* Expected hypervolume improvement, over the boxes that no row dominates. */
#include "searcher/objectives/pareto.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/numeric/normal.h"

struct pareto_boxes {
    int64_t m, n;
    double *sides; /* of each box: m lows, m highs */
};

/* Zones are the largest boxes, open downwards, that contain no row.  Each is a
 * corner and m rows: the k-th row bounds the zone in objective k and is below
 * the corner in the others.
 */
struct zones {
    int64_t m, n, max;
    double *at;
};

static double *zone_at (const struct zones *z, int64_t i)
{
    return z->at + i * z->m * (z->m + 1);
}

static size_t zone_size (const struct zones *z)
{
    return z->m * (z->m + 1) * sizeof (double);
}

static int make_zone_room (struct zones *z)
{
    int64_t max = 2 * z->max + PARETO_MAX;
    double *at;

    if (z->n + z->m <= z->max)
        return 0;
    if (!(at = malloc (max * zone_size (z))))
        return -1;
    if (z->n > 0)
        memcpy (at, z->at, z->n * zone_size (z));
    free (z->at);
    z->at = at;
    z->max = max;
    return 0;
}

/* Only the reference bounds it. */
static int add_first (struct zones *z, const double *reference)
{
    int64_t m = z->m;

    if (make_zone_room (z) < 0)
        return -1;
    for (int64_t i = 0; i < m * (m + 1); i++)
        z->at[i] = -INFINITY;
    for (int64_t k = 0; k < m; k++)
        z->at[k] = z->at[m + k * m + k] = reference[k];
    z->n = 1;
    return 0;
}

/* Largest value of objective k in the first rows of a zone, without the k-th. */
static double largest_of_others (const double *zone, int64_t m, int64_t k, int64_t rows)
{
    double most = -INFINITY;

    for (int64_t j = 0; j < rows; j++)
        if (j != k && zone[m + j * m + k] > most)
            most = zone[m + j * m + k];
    return most;
}

/* Replace zone i by its parts that are below the row in one objective, except
 * parts within another zone.  Among equal values, that of a later row counts as
 * larger.
 */
static void split_zone (struct zones *z, int64_t i, const double *row)
{
    double old[PARETO_MAX * (PARETO_MAX + 1)];
    int64_t m = z->m;

    memcpy (old, zone_at (z, i), zone_size (z));
    memmove (zone_at (z, i), zone_at (z, --z->n), zone_size (z));
    for (int64_t k = 0; k < m; k++) {
        double *part = zone_at (z, z->n);
        if (row[k] < largest_of_others (old, m, k, m))
            continue;
        memcpy (part, old, zone_size (z));
        part[k] = row[k];
        memcpy (part + m + k * m, row, m * sizeof (*row));
        z->n++;
    }
}

static bool is_below_corner (const double *row, const double *corner, int64_t m)
{
    for (int64_t k = 0; k < m; k++)
        if (!isfinite (row[k]) || row[k] >= corner[k])
            return false;
    return true;
}

/* Iterate backwards: zones put at i or at the end no longer contain the row. */
static int add_front_row (struct zones *z, const double *row)
{
    for (int64_t i = z->n - 1; i >= 0; i--)
        if (is_below_corner (row, zone_at (z, i), z->m)) {
            if (make_zone_room (z) < 0)
                return -1;
            split_zone (z, i, row);
        }
    return 0;
}

/* Dominated rows would leave zones that are not maximal. */
static int add_rows (struct zones *z, const double *y, int64_t n, const double *reference)
{
    int64_t *rank = malloc ((n + 1) * sizeof (*rank));
    int rv = -1;

    if (!rank || pareto_ranks (y, n, z->m, rank) < 0 || add_first (z, reference) < 0)
        goto out;
    for (int64_t i = 0; i < n; i++)
        if (rank[i] == 0 && add_front_row (z, y + i * z->m) < 0)
            goto out;
    rv = 0;
out:
    free (rank);
    return rv;
}

/* Keep the part of a zone that no other zone contains: it begins in objective k
 * where the rows before the k-th do.
 */
static void add_box (struct pareto_boxes *b, const double *zone)
{
    double *low = b->sides + 2 * b->m * b->n, *high = low + b->m;

    for (int64_t k = 0; k < b->m; k++) {
        low[k] = largest_of_others (zone, b->m, k, k);
        high[k] = zone[k];
        if (low[k] >= high[k])
            return;
    }
    b->n++;
}

static int set_boxes (struct pareto_boxes *b, const struct zones *z)
{
    b->sides = malloc (2 * b->m * z->n * sizeof (*b->sides));
    if (!b->sides)
        return -1;
    for (int64_t i = 0; i < z->n; i++)
        add_box (b, zone_at (z, i));
    return 0;
}

struct pareto_boxes *pareto_boxes_create (const double *y, int64_t n, int64_t m,
                                          const double *reference)
{
    struct zones z = { .m = m };
    struct pareto_boxes *b = NULL;

    if (m < 1 || m > PARETO_MAX) {
        errno = EINVAL;
        return NULL;
    }
    if (add_rows (&z, y, n, reference) == 0 && (b = calloc (1, sizeof (*b)))) {
        b->m = m;
        if (set_boxes (b, &z) < 0) {
            free (b);
            b = NULL;
        }
    }
    free (z.at);
    return b;
}

void pareto_boxes_destroy (struct pareto_boxes *b)
{
    if (b) {
        free (b->sides);
        free (b);
    }
}

/* Below -EDGE the continued fraction is exact after TERMS terms. */
enum { EDGE = 5, TERMS = 25 };

/* The expected improvement is h(t) = f(t) + t F(t), with f and F the density
 * and the distribution function of the normal.  For t < -EDGE these nearly
 * cancel, but F(t)/f(t) = 1/(c - t), with a continued fraction c (Laplace),
 * gives h(t)/f(t).
 */
static double tail_ratio (double t)
{
    double c = 0;

    for (int k = TERMS; k > 0; k--)
        c = k / (c - t);
    return c / (c - t);
}

static double log_unit_improvement (double t)
{
    if (t < -EDGE)
        return log (tail_ratio (t)) - t * t / 2 - LOG_SQRT_2PI;
    return log (exp (-t * t / 2 - LOG_SQRT_2PI) + t * erfc (-t * M_SQRT1_2) / 2);
}

/* log (h(b) - h(a)).  The difference is no more exact than h(b), which is
 * harmless: the product of all h(b) belongs to a zone, whose whole is part of
 * the sum.
 */
static double log_part (double a, double b)
{
    double top = log_unit_improvement (b);
    double ratio = log_unit_improvement (a) - top;

    return ratio < 0 ? top + log (1 - exp (ratio)) : -INFINITY;
}

static double log_box (const double *low, int64_t m, const double *mean, const double *deviation)
{
    const double *high = low + m;
    double sum = 0;

    for (int64_t k = 0; k < m; k++)
        sum += log_part ((low[k] - mean[k]) / deviation[k], (high[k] - mean[k]) / deviation[k]);
    return sum;
}

double pareto_log_ehvi (const struct pareto_boxes *b, const double *mean, const double *deviation)
{
    double most = -INFINITY, sum = 0, scale = 0;

    for (int64_t i = 0; i < b->n; i++) {
        double x = log_box (b->sides + 2 * b->m * i, b->m, mean, deviation);
        if (x > most) {
            sum = sum * exp (most - x) + 1;
            most = x;
        } else if (x > -INFINITY) {
            sum += exp (x - most);
        }
    }
    for (int64_t k = 0; k < b->m; k++)
        scale += log (deviation[k]);
    return most + log (sum) + scale;
}
