/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer between fidelities: what short trainings tell about long ones. */
#include "searcher/models/models.h"

#include <stdlib.h>

#include "searcher/numeric/row.h"

enum { FEW = 6, LONGEST = 110, OTHERS = 40 };

/* Steeper or flatter slopes come from having too few trials. */
static const double slope_min = 0.2, slope_max = 1.5;

/* For each rung: values beyond 'clip' count as 'clip'; the value at the top is
 * predicted as shift + slope * value, with a variance.
 */
struct lines {
    int top;
    bool logs; /* of the values, as all are above 0 */
    double clip[RUNGS_MAX], shift[RUNGS_MAX], slope[RUNGS_MAX], variance[RUNGS_MAX];
};

struct transfer_row {
    long trial;
    int rung; /* -1: a bad trial */
    double value;
};

static double clipped_level (const struct lines *l, double value, int rung)
{
    value = l->logs ? log (value) : value;
    return fmin (value, l->clip[rung]);
}

static void find_top_rung (const struct searcher *s, struct lines *l)
{
    int64_t n[RUNGS_MAX] = { 0 };

    l->logs = true;
    for (long i = searcher_first (s); i <= s->created; i++)
        for (int r = 0; r < s->rungs; r++) {
            double y = searcher_values (s, i)[r];
            n[r] += isfinite (y);
            l->logs = l->logs && !(y <= 0);
        }
    for (int r = 0; r < s->rungs; r++)
        if (n[r] >= FEW)
            l->top = r;
}

/* Clip as far above the median as the best value is below it. */
static void set_clip (const struct searcher *s, struct lines *l, int rung, double *room)
{
    int64_t n = 0;

    l->clip[rung] = INFINITY;
    for (long i = searcher_first (s); i <= s->created; i++) {
        double y = searcher_values (s, i)[rung];
        if (isfinite (y))
            room[n++] = clipped_level (l, y, rung);
    }
    qsort (room, n, sizeof (*room), row_ascending);
    if (n > 0)
        l->clip[rung] = 2 * room[n / 2] - room[0];
}

/* Least squares fit of the values at rung + 1 to those at rung. */
struct sums {
    double n, x, y, xx, xy, yy;
};

static struct sums sum_lines (const struct searcher *s, const struct lines *l, int rung)
{
    struct sums sum = { 0 };
    double mx = 0, my = 0;

    for (int pass = 0; pass < 2; pass++) {
        sum = (struct sums){ .x = mx, .y = my };
        for (long i = searcher_first (s); i <= s->created; i++) {
            const double *v = searcher_values (s, i);
            double x, y;
            if (!isfinite (v[rung]) || !isfinite (v[rung + 1]))
                continue;
            x = clipped_level (l, v[rung], rung) - mx;
            y = clipped_level (l, v[rung + 1], rung + 1) - my;
            sum.n++;
            sum.x += x;
            sum.y += y;
            sum.xx += x * x;
            sum.xy += x * y;
            sum.yy += y * y;
        }
        if (pass == 0 && sum.n > 0) {
            mx = sum.x / sum.n;
            my = sum.y / sum.n;
        }
    }
    sum.x = mx;
    sum.y = my;
    return sum;
}

static void set_line (const struct searcher *s, struct lines *l, int rung)
{
    struct sums m = sum_lines (s, l, rung);
    double above = l->slope[rung + 1];
    double slope = m.xy / (m.xx + 1e-12);
    double rest;

    slope = fmin (fmax (slope, slope_min), slope_max);
    rest = (m.yy - 2 * slope * m.xy + slope * slope * m.xx) / (m.n > 2 ? m.n - 2 : 1);
    l->shift[rung] = l->shift[rung + 1] + above * (m.y - slope * m.x);
    l->slope[rung] = above * slope;
    l->variance[rung] = l->variance[rung + 1] + above * above * fmax (rest, 0);
}

static void set_lines (const struct searcher *s, struct lines *l, double *room)
{
    find_top_rung (s, l);
    for (int r = 0; r <= l->top; r++)
        set_clip (s, l, r, room);
    l->slope[l->top] = 1;
    for (int r = l->top - 1; r >= 0; r--)
        set_line (s, l, r);
}

static bool is_bad (const struct searcher *s, long trial)
{
    for (int64_t r = 0; r < s->rungs; r++)
        if (isinf (searcher_values (s, trial)[r]))
            return true;
    return false;
}

/* Returns whether the trial has a value. */
static bool read_row (const struct searcher *s, const struct lines *l, long trial,
                      struct transfer_row *row)
{
    const double *v = searcher_values (s, trial);
    int r = l->top;

    while (r >= 0 && !isfinite (v[r]))
        r--;
    *row = (struct transfer_row){ trial, r, INFINITY };
    if (r >= 0)
        row->value = l->shift[r] + l->slope[r] * clipped_level (l, v[r], r);
    return r >= 0 || is_bad (s, trial);
}

static int longest_first (const void *a, const void *b)
{
    const struct transfer_row *x = a, *y = b;

    if (x->rung != y->rung)
        return y->rung - x->rung;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

static int oldest_first (const void *a, const void *b)
{
    const struct transfer_row *x = a, *y = b;

    return (x->trial > y->trial) - (x->trial < y->trial);
}

/* Move the trials that were trained longest to the front.  Returns how many are kept. */
static int64_t choose_longest (struct transfer_row *row, int64_t n)
{
    int64_t others = n - LONGEST, kept = LONGEST;

    if (n <= LONGEST + OTHERS)
        return n;
    qsort (row, n, sizeof (*row), longest_first);
    qsort (row + LONGEST, others, sizeof (*row), oldest_first);
    for (int64_t i = 0; i < others; i++)
        if (i * OTHERS / others != (i + 1) * OTHERS / others)
            row[kept++] = row[LONGEST + i];
    qsort (row, kept, sizeof (*row), oldest_first);
    return kept;
}

static void fill_predicted (struct training_set *v, const struct searcher *s, const struct lines *l,
                            struct transfer_row *row)
{
    int64_t n = 0;

    for (long i = searcher_first (s); i <= s->created; i++)
        if (read_row (s, l, i, row + n))
            n++;
        else if (i > 0 && searcher_trial (s, i)->state == TRIAL_RUNNING)
            v->pending[v->npending++] = i;
    v->n = choose_longest (row, n);
    for (int64_t i = 0; i < v->n; i++) {
        v->trial[i] = row[i].trial;
        v->value[i] = row[i].value;
        v->noise[i] = row[i].rung < 0 ? 0 : l->variance[row[i].rung];
    }
}

int transfer_open (struct training_set *v, const struct searcher *s)
{
    int64_t most = s->created + s->known + 1;
    struct transfer_row *row = malloc (most * sizeof (*row));
    struct lines l = { 0 };
    int rv = -1;

    *v = (struct training_set){ .m = 1 };
    v->trial = malloc (2 * most * sizeof (*v->trial));
    v->value = malloc (most * sizeof (*v->value));
    v->noise = malloc (most * sizeof (*v->noise));
    if (row && v->trial && v->value && v->noise) {
        v->pending = v->trial + most;
        set_lines (s, &l, v->value);
        fill_predicted (v, s, &l, row);
        v->rung = l.top;
        rv = 0;
    }
    free (row);
    return rv;
}
