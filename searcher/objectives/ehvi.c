/* SPDX-License-Identifier: Apache-2.0 */
/* Expected hypervolume improvement, over the boxes that no row dominates. */
#include "searcher/objectives/pareto.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pareto_boxes {
    int64_t m, n;
    double *sides; /* of each box: m lows, m highs */
};

/* Zones are the largest boxes, open downwards, that no row is in.  Each is a
 * corner, then m rows: the k-th bounds the zone in objective k, and is below
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

/* No row bounds it but the reference. */
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

/* The largest value of objective k in the first rows of a zone but the k-th. */
static double inner (const double *zone, int64_t m, int64_t k, int64_t rows)
{
    double most = -INFINITY;

    for (int64_t j = 0; j < rows; j++)
        if (j != k && zone[m + j * m + k] > most)
            most = zone[m + j * m + k];
    return most;
}

/* Put in its place the parts of zone i that are below the row in one
 * objective, but for those within another zone.  Of equal values that of a
 * later row counts as the larger.
 */
static void split_zone (struct zones *z, int64_t i, const double *row)
{
    double old[PARETO_MAX * (PARETO_MAX + 1)];
    int64_t m = z->m;

    memcpy (old, zone_at (z, i), zone_size (z));
    memmove (zone_at (z, i), zone_at (z, --z->n), zone_size (z));
    for (int64_t k = 0; k < m; k++) {
        double *part = zone_at (z, z->n);
        if (row[k] < inner (old, m, k, m))
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

/* Backwards: what is put at i or at the end is not inside any more. */
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

/* Dominated rows would leave zones that are not the largest. */
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

/* Keep of a zone what is not in another: it begins in objective k where the
 * rows before the k-th do.
 */
static void add_box (struct pareto_boxes *b, const double *zone)
{
    double *low = b->sides + 2 * b->m * b->n, *high = low + b->m;

    for (int64_t k = 0; k < b->m; k++) {
        low[k] = inner (zone, b->m, k, k);
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

/* Below -EDGE the continued fraction is exact after so many terms. */
enum { EDGE = 5, TERMS = 25 };

static const double sqrt_half = 0x1.6a09e667f3bcdp-1;
static const double log_sqrt_2pi = 0x1.d67f1c864beb5p-1;

/* The expected improvement is h(t) = f(t) + t F(t), f and F the density and
 * the distribution of the normal.  For t < -EDGE these nearly cancel, but
 * F(t)/f(t) = 1/(c - t), c a continued fraction (Laplace), gives h(t)/f(t).
 */
static double tail (double t)
{
    double c = 0;

    for (int k = TERMS; k > 0; k--)
        c = k / (c - t);
    return c / (c - t);
}

static double log_unit_improvement (double t)
{
    if (t < -EDGE)
        return log (tail (t)) - t * t / 2 - log_sqrt_2pi;
    return log (exp (-t * t / 2 - log_sqrt_2pi) + t * erfc (-t * sqrt_half) / 2);
}

/* log (h(b) - h(a)).  That the difference is not more exact than h(b) does no
 * harm: the product of all h(b) is of a zone, which as a whole is a part of
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
