/* SPDX-License-Identifier: Apache-2.0 */
/* Read, thin and pack the learning curves that trials logged. */
#include "launcher/report/report.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* Limits for the points of one curve, of all curves of a metric, and of all metrics
 * that are not optimised.  Values are packed as levels 1 to LEVELS; level 0 is a value
 * that is not finite.
 */
enum {
    POINTS_MOST = 60,
    POINTS_LEAST = 12,
    POINTS_ALL = 240000,
    OTHERS_ALL = 360000,
    LEVELS = 4095,
    LASTS = 8, /* metrics with a column in the table */
};

/* ---- reading ---- */

struct curve_reading {
    struct curves *c;
    struct trial_curves *t;
    long last; /* attempt to read; later ones do not count */
    size_t name;
};

static void add_point (struct curve_reading *g, const char *name, int64_t step, double value)
{
    struct words *w = &g->c->names;
    struct trial_curves *t = g->t;

    if (!strcmp (name, "epoch"))
        return;
    if (w->n && !strcmp (w->list[(g->name + 1) % w->n], name))
        g->name = (g->name + 1) % w->n; /* trials log their metrics in turn */
    else
        g->name = words_number (w, name);
    XGROW (t->list, t->n);
    t->list[t->n++] = (struct curve_point){ step, value, g->name };
}

static int take_curve_row (const struct slurmdl_row *row, void *arg)
{
    struct curve_reading *g = arg;

    if (row->superseded || row->attempt > g->last)
        return 0;
    add_point (g, row->name, row->step, row->value);
    return 0;
}

/* Whether the trial has attempts after its last accepted one. */
static bool trial_goes_on (const struct report *r, long i)
{
    const struct sweep_trial *t = r->trials[i].of;

    return t->state == TRIAL_OPEN || trial_last (t).attempt < t->over;
}

static void read_trial_folder (struct curves *c, const struct report *r, long i)
{
    struct curve_reading g = { .c = c, .t = &c->trials[i], .last = r->trials[i].of->over + 1 };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", r->sweeps[r->trials[i].sweep].s->dir,
              r->trials[i].number);
    slurmdl_trial_read (dir, take_curve_row, &g, NULL);
}

static void take_trial_rows (struct curves *c, const struct report *r, size_t k,
                             const struct rows *rows)
{
    struct curve_reading g = { .c = c };
    char name[ROW_NAME_SIZE + 1] = "";

    for (size_t i = 0; i < rows->n; i++) {
        const struct metric_row *row = &rows->list[i];
        long trial = r->sweeps[k].first + (long)row->trial - 1;
        if (trial_goes_on (r, trial))
            continue;
        g.t = &c->trials[trial];
        memcpy (name, rows->names[row->name], ROW_NAME_SIZE);
        add_point (&g, name, row->step, row->value);
    }
}

static void read_sweep_curves (struct curves *c, const struct report *r, size_t k, struct rows *old)
{
    const struct sweep *s = r->sweeps[k].s;
    struct rows rows;

    rows_read (&rows, s, old && old->ntrials ? old : NULL);
    take_trial_rows (c, r, k, &rows);
    if (rows.damaged > 0 && !*c->damage.text)
        c->damage = rows.damage;
    for (long i = 0; i < s->ntrials; i++)
        if (trial_goes_on (r, r->sweeps[k].first + i))
            read_trial_folder (c, r, r->sweeps[k].first + i);
    if (old) {
        rows_destroy (old);
        *old = rows;
    } else
        rows_destroy (&rows);
}

/* Return how many metrics fit in the report.  Those that are not optimised follow in
 * the order in which they were found.
 */
static size_t shown_names (const struct curves *c, size_t nmetrics)
{
    size_t *points = xcalloc (c->names.n + 1, sizeof (*points));
    size_t sum = 0, n = nmetrics;

    for (long i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->trials[i].n; k++)
            points[c->trials[i].list[k].name]++;
    while (n < c->names.n) {
        sum += points[n] < POINTS_ALL / 4 ? points[n] : POINTS_ALL / 4;
        if (sum > OTHERS_ALL)
            break;
        n++;
    }
    free (points);
    return n;
}

void curves_read (struct curves *c, const struct report *r, struct rows *old)
{
    const struct sweep *s = r->sweeps[0].s;

    *c = (struct curves){ .n = r->n };
    c->trials = xcalloc ((size_t)r->n + 1, sizeof (*c->trials));
    for (size_t m = 0; m < sweep_metrics (s); m++)
        words_number (&c->names, sweep_metric (s, m));
    for (size_t k = 0; k < r->nsweeps; k++)
        read_sweep_curves (c, r, k, old ? &old[k] : NULL);
    c->nshown = shown_names (c, sweep_metrics (s));
}

void curves_free (struct curves *c)
{
    for (long i = 0; c->trials && i < c->n; i++)
        free (c->trials[i].list);
    free (c->trials);
    words_free (&c->names);
    *c = (struct curves){ 0 };
}

/* ---- thinning ---- */

static bool lower (const struct curve_point *a, const struct curve_point *b)
{
    return isfinite (a->value) && (!isfinite (b->value) || a->value < b->value);
}

static bool higher (const struct curve_point *a, const struct curve_point *b)
{
    return isfinite (a->value) && (!isfinite (b->value) || a->value > b->value);
}

/* Keep the lowest and the highest point of a bucket, in their original order. */
static size_t keep_bucket (const struct curve_point *p, size_t n, struct curve_point *to)
{
    size_t low = 0, high = 0;

    for (size_t i = 1; i < n; i++) {
        low = lower (&p[i], &p[low]) ? i : low;
        high = higher (&p[i], &p[high]) ? i : high;
    }
    to[0] = p[low < high ? low : high];
    to[1] = p[low < high ? high : low];
    return low == high ? 1 : 2;
}

/* Thin a curve in place.  Keeps both ends and the lowest and highest value of each
 * bucket in between, so that spikes survive.
 */
static size_t thin_curve (struct curve_point *p, size_t n, size_t max)
{
    size_t buckets = (max - 2) / 2, kept = 1;

    if (n <= max)
        return n;
    for (size_t b = 0; b < buckets; b++) {
        size_t from = 1 + (n - 2) * b / buckets;
        size_t to = 1 + (n - 2) * (b + 1) / buckets;
        struct curve_point two[2];
        size_t k = to > from ? keep_bucket (p + from, to - from, two) : 0;
        memcpy (p + kept, two, k * sizeof (*p));
        kept += k;
    }
    p[kept++] = p[n - 1];
    return kept;
}

static int by_curve_step (const void *a, const void *b)
{
    const struct curve_point *x = a, *y = b;

    return (x->step > y->step) - (x->step < y->step);
}

/* Select the points of one metric, sorted by step. */
static size_t select_name (const struct trial_curves *t, size_t name, struct curve_point *to)
{
    bool ordered = true;
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].name == name) {
            ordered = ordered && (n == 0 || to[n - 1].step <= t->list[i].step);
            to[n++] = t->list[i];
        }
    if (!ordered)
        qsort (to, n, sizeof (*to), by_curve_step);
    return n;
}

size_t curve_thin (const struct trial_curves *t, size_t name, size_t max, struct curve_point *to)
{
    struct curve_point *all = xmalloc ((t->n + 1) * sizeof (*all));
    size_t n = thin_curve (all, select_name (t, name, all), max);

    memcpy (to, all, n * sizeof (*to));
    free (all);
    return n;
}

/* ---- packing ---- */

struct scale {
    bool log;
    double base, step;
};

static double inner_scale (const struct scale *s, double v)
{
    return s->log ? log (v) : v;
}

/* Use a logarithmic scale if the values span a factor of 50. */
static struct scale scale_of (const struct curves *c, size_t name)
{
    double low = INFINITY, high = -INFINITY;
    struct scale s = { .step = 1 };

    for (long i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->trials[i].n; k++) {
            const struct curve_point *p = &c->trials[i].list[k];
            if (p->name == name && isfinite (p->value)) {
                low = fmin (low, p->value);
                high = fmax (high, p->value);
            }
        }
    if (low > high)
        return s;
    s.log = low > 0 && high / low > 50;
    s.base = inner_scale (&s, low);
    s.step = inner_scale (&s, high) / (LEVELS - 1) - s.base / (LEVELS - 1);
    if (!(s.step > 0) || !isfinite (s.step))
        s.step = 1;
    return s;
}

/* Write five bits per letter, the lowest first.  Bit 32 is set if more letters follow.
 */
static char *put_base32_number (char *to, uint64_t n)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (; n >= 32; n >>= 5)
        *to++ = letters[32 | (n & 31)];
    *to++ = letters[n];
    return to;
}

/* Map small numbers of either sign to small unsigned ones. */
static uint64_t zigzag (int64_t n)
{
    return n >= 0 ? (uint64_t)n << 1 : ((uint64_t)-n << 1) - 1;
}

/* Pack the differences between successive steps and levels, alternating. */
static json_t *pack_curve (const struct scale *s, const struct curve_point *p, size_t n)
{
    char *text = xmalloc (n * 28 + 1), *to = text;
    int64_t step = 0, level = 0;
    json_t *o;

    for (size_t i = 0; i < n; i++) {
        int64_t now = isfinite (p[i].value)
                          ? llround ((inner_scale (s, p[i].value) - s->base) / s->step) + 1
                          : 0;
        to = put_base32_number (to, zigzag (p[i].step - step));
        to = put_base32_number (to, zigzag (now - level));
        step = p[i].step;
        level = now;
    }
    *to = '\0';
    o = json_string (text);
    free (text);
    return o;
}

static size_t points_each (const struct curves *c, size_t name, size_t nmetrics)
{
    size_t n = c->n ? POINTS_ALL / (size_t)c->n : POINTS_MOST;

    if (name >= nmetrics)
        n /= 4;
    return n > POINTS_MOST ? POINTS_MOST : n < POINTS_LEAST ? POINTS_LEAST : n;
}

/* Return the newest value of each trial. */
static json_t *last_json (const struct curves *c, size_t name)
{
    json_t *list = json_array ();

    for (long i = 0; i < c->n; i++) {
        const struct trial_curves *t = &c->trials[i];
        size_t k = t->n;
        while (k > 0 && t->list[k - 1].name != name)
            k--;
        json_array_append_new (list, k ? rounded_to_json (t->list[k - 1].value, 5) : json_null ());
    }
    return list;
}

static json_t *curve_json (const struct curves *c, const struct report *r, size_t name)
{
    size_t nmetrics = sweep_metrics (r->sweeps[0].s);
    json_t *o;
    struct scale s = scale_of (c, name);
    size_t max = points_each (c, name, nmetrics);
    struct curve_point points[POINTS_MOST];
    json_t *texts = json_array ();
    bool any = false;

    for (long i = 0; i < c->n; i++) {
        size_t n = curve_thin (&c->trials[i], name, max, points);
        any = any || n > 0;
        json_array_append_new (texts, pack_curve (&s, points, n));
    }
    if (!any) {
        json_decref (texts);
        return NULL;
    }
    o = json_pack ("{s:o, s:b, s:o, s:o, s:o}", "name", text_to_json (c->names.list[name]), "log",
                   s.log, "base", rounded_to_json (s.base, 8), "scale", rounded_to_json (s.step, 8),
                   "text", texts);
    if (name >= nmetrics && name < nmetrics + LASTS)
        json_object_set_new (o, "last", last_json (c, name));
    return o;
}

json_t *curves_json (const struct curves *c, const struct report *r)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < c->nshown; i++) {
        json_t *o = curve_json (c, r, i);
        if (o)
            json_array_append_new (list, o);
    }
    return list;
}
