/* SPDX-License-Identifier: Apache-2.0 */
/* Pareto dominance, ranks and crowding distance. */
#include "searcher/objectives/pareto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/numeric/row.h"

/* Whether a is nowhere worse than b and somewhere better. */
static bool dominates (const double *a, const double *b, int64_t m)
{
    bool better = false;

    if (!row_is_finite (a, m))
        return false;
    if (!row_is_finite (b, m))
        return true;
    for (int64_t k = 0; k < m; k++) {
        if (a[k] > b[k])
            return false;
        better |= a[k] < b[k];
    }
    return better;
}

/* List the indices of the good rows. */
static int64_t list_good (const double *y, int64_t n, int64_t m, int64_t *order)
{
    int64_t good = 0;

    for (int64_t i = 0; i < n; i++)
        if (row_is_finite (y + i * m, m))
            order[good++] = i;
    return good;
}

struct rank_table {
    const double *y;
    int64_t m;
    const int64_t *rank;
    int64_t k; /* the objective to sort by */
};

typedef bool (*before_f) (const struct rank_table *t, int64_t a, int64_t b);

/* Stable; needs room for n more numbers behind the n row numbers. */
static void merge_sort (int64_t *order, int64_t n, const struct rank_table *t, before_f before)
{
    int64_t *room = order + n;

    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t at = 0; at < n; at += 2 * width) {
            int64_t mid = at + width < n ? at + width : n;
            int64_t end = mid + width < n ? mid + width : n;
            int64_t a = at, b = mid;
            for (int64_t i = at; i < end; i++)
                room[i] = b >= end || (a < mid && !before (t, order[b], order[a])) ? order[a++]
                                                                                   : order[b++];
        }
        memcpy (order, room, n * sizeof (*order));
    }
}

static bool precedes (const struct rank_table *t, int64_t a, int64_t b)
{
    const double *ya = t->y + a * t->m, *yb = t->y + b * t->m;

    for (int64_t k = 0; k < t->m; k++)
        if (ya[k] != yb[k])
            return ya[k] < yb[k];
    return false;
}

static bool precedes_backwards (const struct rank_table *t, int64_t a, int64_t b)
{
    if (t->rank[a] != t->rank[b])
        return t->rank[a] < t->rank[b];
    return t->y[a * t->m + t->k] < t->y[b * t->m + t->k];
}

/* The rows of each front as a list, the latest first. */
struct fronts {
    int64_t n;
    int64_t *head, *next; /* of a front; of a row, -1: none */
};

static bool is_dominated (const struct rank_table *t, const struct fronts *f, int64_t front,
                          int64_t row)
{
    for (int64_t i = f->head[front]; i >= 0; i = f->next[i])
        if (dominates (t->y + i * t->m, t->y + row * t->m, t->m))
            return true;
    return false;
}

/* Rows that dominate a row come before it and are dominated by a row of each
 * earlier front, so that the fronts that dominate it are the first ones.
 */
static int64_t find_front (const struct rank_table *t, const struct fronts *f, int64_t row)
{
    int64_t low = 0, high = f->n;

    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (is_dominated (t, f, mid, row))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void add_to_fronts (const struct rank_table *t, struct fronts *f, int64_t row, int64_t *rank)
{
    int64_t at = find_front (t, f, row);

    if (at == f->n)
        f->head[f->n++] = -1;
    f->next[row] = f->head[at];
    f->head[at] = row;
    rank[row] = at;
}

int pareto_ranks (const double *y, int64_t n, int64_t m, int64_t *rank)
{
    struct rank_table t = { .y = y, .m = m };
    int64_t *order = malloc ((4 * n + 1) * sizeof (*order));
    struct fronts f = { 0 };
    int64_t good;

    if (!order)
        return -1;
    f.head = order + 2 * n;
    f.next = order + 3 * n;
    good = list_good (y, n, m, order);
    merge_sort (order, good, &t, precedes);
    for (int64_t i = 0; i < good; i++)
        add_to_fronts (&t, &f, order[i], rank);
    for (int64_t i = 0; i < n; i++)
        if (!row_is_finite (y + i * m, m))
            rank[i] = f.n;
    free (order);
    return 0;
}

/* Half the gap: the whole one may exceed the largest double. */
static double half_gap (const struct rank_table *t, int64_t a, int64_t b)
{
    return t->y[b * t->m + t->k] / 2 - t->y[a * t->m + t->k] / 2;
}

/* 'order' holds the n rows of a rank, sorted by an objective. */
static void add_gaps (const struct rank_table *t, const int64_t *order, int64_t n, double *out)
{
    double range = half_gap (t, order[0], order[n - 1]);

    out[order[0]] = out[order[n - 1]] = INFINITY;
    for (int64_t i = 1; i + 1 < n && range > 0; i++)
        out[order[i]] += half_gap (t, order[i - 1], order[i + 1]) / range;
}

static void add_objective (const struct rank_table *t, int64_t *order, int64_t n, double *distance)
{
    merge_sort (order, n, t, precedes_backwards);
    for (int64_t at = 0, end; at < n; at = end) {
        end = at + 1;
        while (end < n && t->rank[order[end]] == t->rank[order[at]])
            end++;
        add_gaps (t, order + at, end - at, distance);
    }
}

int pareto_crowding (const double *y, int64_t n, int64_t m, const int64_t *rank, double *distance)
{
    struct rank_table t = { y, m, rank, 0 };
    int64_t *order = malloc ((2 * n + 1) * sizeof (*order));

    if (!order)
        return -1;
    memset (distance, 0, n * sizeof (*distance));
    for (t.k = 0; t.k < m; t.k++) {
        int64_t good = list_good (y, n, m, order);
        add_objective (&t, order, good, distance);
    }
    free (order);
    return 0;
}
