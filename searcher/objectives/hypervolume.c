/* SPDX-License-Identifier: Apache-2.0 */
/* Hypervolume of a Pareto front, and the rows that contribute most to it. */
#include "searcher/objectives/pareto.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/numeric/row.h"

/* Rows none of which covers another, sorted by their last objective.  Behind
 * them is room for as many rows of each smaller m.
 */
struct front {
    int64_t m, n, max;
    double *rows;
};

static int front_init (struct front *f, int64_t m, int64_t max)
{
    int64_t room = max * m * (m + 1) / 2;

    if (m < 1 || m > PARETO_MAX) {
        errno = EINVAL;
        return -1;
    }
    *f = (struct front){ .m = m, .max = max };
    f->rows = malloc ((room + 1) * sizeof (*f->rows));
    return f->rows ? 0 : -1;
}

static double *row_at (const struct front *f, int64_t i)
{
    return f->rows + i * f->m;
}

/* An empty front with one objective less. */
static struct front front_below (const struct front *f)
{
    return (struct front){ f->m - 1, 0, f->max, row_at (f, f->max) };
}

/* Whether a is nowhere worse than b. */
static bool covers (const double *a, const double *b, int64_t m)
{
    for (int64_t k = 0; k < m; k++)
        if (a[k] > b[k])
            return false;
    return true;
}

static void drop_covered (struct front *f, const double *row)
{
    int64_t n = 0;

    for (int64_t i = 0; i < f->n; i++)
        if (!covers (row, row_at (f, i), f->m))
            memmove (row_at (f, n++), row_at (f, i), f->m * sizeof (*row));
    f->n = n;
}

static void add_to_front (struct front *f, const double *row)
{
    int64_t at, size = f->m * sizeof (*row);

    for (int64_t i = 0; i < f->n; i++)
        if (covers (row_at (f, i), row, f->m))
            return;
    drop_covered (f, row);
    for (at = f->n++; at > 0; at--) {
        if (row_at (f, at - 1)[f->m - 1] <= row[f->m - 1])
            break;
        memcpy (row_at (f, at), row_at (f, at - 1), size);
    }
    memcpy (row_at (f, at), row, size);
}

/* Add the part of the region that 'row' dominates within that of 'other'. */
static void add_common (struct front *f, const double *row, const double *other)
{
    double worse[PARETO_MAX];

    for (int64_t k = 0; k < f->m; k++)
        worse[k] = fmax (row[k], other[k]);
    add_to_front (f, worse);
}

static bool dominates_reference (const double *row, const double *reference, int64_t m)
{
    for (int64_t k = 0; k < m; k++)
        if (!(row[k] < reference[k]))
            return false;
    return row_is_finite (row, m);
}

/* ---- volume ---- */

/* Volume that the rows dominate below the reference, exactly: a sweep for two
 * objectives, slices for three, and for more the WFG algorithm of L. While, L.
 * Bradstreet and L. Barone (IEEE Transactions on Evolutionary Computation 16,
 * 2012), whose time can grow as n^(m-1).
 */

static double volume_of (const struct front *f, const double *reference);

static double one_volume (const double *row, const double *reference, int64_t m)
{
    double product = 1;

    for (int64_t k = 0; k < m; k++)
        product *= reference[k] - row[k];
    return product;
}

static double area_of_front (const struct front *f, const double *reference)
{
    double right = reference[0], sum = 0;

    for (int64_t i = 0; i < f->n; i++) {
        const double *row = row_at (f, i);
        sum += (right - row[0]) * (reference[1] - row[1]);
        right = row[0];
    }
    return sum;
}

/* Between two rows the cross-section is constant. */
static double slice (const struct front *f, const double *reference)
{
    struct front section = front_below (f);
    double sum = 0;

    for (int64_t i = 0; i < f->n; i++) {
        double top = i + 1 < f->n ? row_at (f, i + 1)[2] : reference[2];
        add_to_front (&section, row_at (f, i));
        sum += (top - row_at (f, i)[2]) * area_of_front (&section, reference);
    }
    return sum;
}

/* Sum what each row adds to those before it: they are better in the last
 * objective, so that the overlap is as deep as the row.
 */
static double wfg (const struct front *f, const double *reference)
{
    struct front common = front_below (f);
    int64_t m = common.m;
    double sum = 0;

    for (int64_t i = 0; i < f->n; i++) {
        const double *row = row_at (f, i);
        common.n = 0;
        for (int64_t j = 0; j < i; j++)
            add_common (&common, row, row_at (f, j));
        sum += (reference[m] - row[m])
               * (one_volume (row, reference, m) - volume_of (&common, reference));
    }
    return sum;
}

static double volume_of (const struct front *f, const double *reference)
{
    if (f->n == 0)
        return 0;
    if (f->n == 1 || f->m == 1)
        return one_volume (f->rows, reference, f->m);
    if (f->m == 2)
        return area_of_front (f, reference);
    return f->m == 3 ? slice (f, reference) : wfg (f, reference);
}

/* ---- choice ---- */

struct volume_choice {
    const double *y, *reference;
    int64_t n, taken;
    int64_t *chosen;
    double *gain;        /* of a row: at most this, exact if it is fresh */
    int64_t *fresh;      /* how many were taken then */
    struct front common; /* room */
};

/* The volume that row i adds to the rows taken so far.  All are inside: rows
 * outside have no gain and come after all rows that have one.
 */
static double exclusive (struct volume_choice *c, int64_t i)
{
    int64_t m = c->common.m;
    const double *row = c->y + i * m;
    double gain;

    c->common.n = 0;
    for (int64_t j = 0; j < c->taken; j++)
        add_common (&c->common, row, c->y + c->chosen[j] * m);
    gain = one_volume (row, c->reference, m) - volume_of (&c->common, c->reference);
    return gain > 0 ? gain : 0;
}

/* Negative marks bad rows, later taken ones. */
static void set_gains (struct volume_choice *c)
{
    int64_t m = c->common.m;

    for (int64_t i = 0; i < c->n; i++) {
        const double *row = c->y + i * m;
        c->fresh[i] = 0;
        c->gain[i] = dominates_reference (row, c->reference, m) ? one_volume (row, c->reference, m)
                                                                : (row_is_finite (row, m) ? 0 : -1);
    }
}

static int64_t largest_gain (const struct volume_choice *c)
{
    int64_t at = 0;

    for (int64_t i = 1; i < c->n; i++)
        if (c->gain[i] > c->gain[at])
            at = i;
    return at;
}

/* Gains only decrease as rows are taken: only the largest has to be recomputed. */
static void choose_next (struct volume_choice *c)
{
    int64_t i = largest_gain (c);

    while (c->gain[i] > 0 && c->fresh[i] < c->taken) {
        c->gain[i] = fmin (c->gain[i], exclusive (c, i));
        c->fresh[i] = c->taken;
        i = largest_gain (c);
    }
    c->chosen[c->taken++] = i;
    c->gain[i] = -INFINITY;
}

/* Choose, 'want' times (0 .. n, else EINVAL), the row that adds the most volume
 * to those chosen so far; chosen[] receives the indices in that order.  For any
 * k, the first k have at least 1 - 1/e of the volume of the best k rows (A. P.
 * Guerreiro, C. M. Fonseca and L. Paquete, Evolutionary Computation 24, 2016).
 * Rows that add nothing come after the others, bad rows last.
 */
static int choose_largest_volume (const double *y, int64_t n, int64_t m, const double *reference,
                                  int64_t want, int64_t *chosen)
{
    struct volume_choice c = { .y = y, .reference = reference, .n = n, .chosen = chosen };
    int rv = -1;

    if (want < 0 || want > n) {
        errno = EINVAL;
        return -1;
    }
    c.gain = malloc ((n + 1) * sizeof (*c.gain));
    c.fresh = malloc ((n + 1) * sizeof (*c.fresh));
    if (c.gain && c.fresh && front_init (&c.common, m, want) == 0) {
        set_gains (&c);
        while (c.taken < want)
            choose_next (&c);
        rv = 0;
    }
    free (c.common.rows);
    free (c.gain);
    free (c.fresh);
    return rv;
}

/* ---- the best of many ---- */

/* Just beyond the worst good row in each objective. */
static void set_reference (const double *y, int64_t n, int64_t m, double *reference)
{
    for (int64_t k = 0; k < m; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n; i++)
            if (isfinite (y[i * m + k])) {
                low = fmin (low, y[i * m + k]);
                high = fmax (high, y[i * m + k]);
            }
        reference[k] = high > low ? high + 0.1 * (high - low) : high + 1;
        if (!isfinite (reference[k]))
            reference[k] = 0;
    }
}

/* Choose the rows of one rank that keep the most volume. */
static int choose_rank (const double *y, int64_t m, const double *reference, int64_t *rows,
                        int64_t n, int64_t want)
{
    double *front = malloc (n * m * sizeof (*front) + 1);
    int64_t *chosen = malloc ((2 * n + 1) * sizeof (*chosen));
    int rv = -1;

    for (int64_t i = 0; front && i < n; i++)
        memcpy (front + i * m, y + rows[i] * m, m * sizeof (*y));
    if (front && chosen && choose_largest_volume (front, n, m, reference, want, chosen) == 0) {
        for (int64_t i = 0; i < want; i++)
            chosen[n + i] = rows[chosen[i]];
        memcpy (rows, chosen + n, want * sizeof (*rows));
        rv = 0;
    }
    free (front);
    free (chosen);
    return rv;
}

int pareto_best (const double *y, int64_t n, int64_t m, int64_t want, int64_t *best)
{
    int64_t *rank = malloc ((2 * n + 1) * sizeof (*rank)), *rows = rank + n;
    double reference[PARETO_MAX];
    int64_t found = 0;
    int rv = -1;

    if (!rank || pareto_ranks (y, n, m, rank) < 0)
        goto out;
    set_reference (y, n, m, reference);
    rv = 0;
    for (int64_t r = 0; rv == 0 && found < want; r++) {
        int64_t size = 0;
        for (int64_t i = 0; i < n; i++)
            if (rank[i] == r)
                rows[size++] = i;
        if (found + size > want) {
            rv = choose_rank (y, m, reference, rows, size, want - found);
            size = want - found;
        }
        memcpy (best + found, rows, size * sizeof (*best));
        found += size;
    }
out:
    free (rank);
    return rv;
}
