/* SPDX-License-Identifier: Apache-2.0 */
/* The newest values of metrics that an attempt has logged. */
#include "launcher/sweep/latest_metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/sweep/metric_summary.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

struct last {
    const char *name;
    struct metric_progress *to;
    bool found;
};

static int keep_last (const struct slurmdl_row *row, void *arg)
{
    struct last *last = arg;

    if (strcmp (row->name, last->name))
        return 0;
    if (!last->found) {
        last->to->first_step = row->step;
        last->to->first_time = row->time;
    }
    last->to->step = row->step;
    last->to->time = row->time;
    last->to->value = row->value;
    last->found = true;
    return 0;
}

static int read_progress (const char *dir, const char *name, struct metric_progress *to)
{
    struct last last = { .name = name, .to = to };

    slurmdl_metrics_read_dir (dir, keep_last, &last, NULL);
    return last.found ? 0 : -1;
}

int newest_metric (const char *dir, const char *name, int64_t *step, double *value)
{
    struct metric_progress p;

    if (read_progress (dir, name, &p) < 0)
        return -1;
    *step = p.step;
    *value = p.value;
    return 0;
}

int trial_progress (const struct sweep *s, long trial, struct metric_progress *p)
{
    char dir[4200];

    for (long k = sweep_trial (s, trial)->over + 1; k >= 1; k--) {
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial, k);
        if (read_progress (dir, sweep_metric (s, 0), p) == 0)
            return 0;
    }
    return -1;
}

double progress_rate (const struct metric_progress *p)
{
    double seconds = p->time - p->first_time;

    return seconds > 0 && p->step > p->first_step ? (double)(p->step - p->first_step) / seconds
                                                  : NAN;
}

double progress_age (const struct metric_progress *p)
{
    struct timespec now;

    clock_gettime (CLOCK_REALTIME, &now);
    return fmax (0, (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - p->time);
}

struct last_row {
    int64_t step;
    size_t metric;
    size_t order; /* of rows of one step the last one counts */
    double value;
};

struct last_rows {
    const struct sweep *sweep;
    struct last_row *rows;
    size_t n;
};

static int keep_row (const struct slurmdl_row *row, void *arg)
{
    struct last_rows *t = arg;
    struct last_row *rows;
    size_t i = 0;

    while (i < sweep_metrics (t->sweep) && strcmp (row->name, sweep_metric (t->sweep, i)))
        i++;
    if (i == sweep_metrics (t->sweep))
        return 0;
    if (!(rows = array_grow (t->rows, t->n, sizeof (*rows))))
        return -1;
    t->rows = rows;
    rows[t->n] = (struct last_row){ row->step, i, t->n, row->value };
    t->n++;
    return 0;
}

/* The last step first, in it the newest row first. */
static int last_first (const void *a, const void *b)
{
    const struct last_row *x = a;
    const struct last_row *y = b;

    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    return x->order > y->order ? -1 : 1;
}

static int common_step (const struct last_rows *t, int64_t *step, double *values)
{
    size_t all = sweep_metrics (t->sweep);
    size_t found = 0;
    unsigned have = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct last_row *row = &t->rows[i];
        if (i == 0 || row->step != *step)
            have = found = 0;
        *step = row->step;
        if (have >> row->metric & 1)
            continue;
        have |= 1u << row->metric;
        values[row->metric] = row->value;
        if (++found == all)
            return 0;
    }
    return -1;
}

static int newest_metrics (const struct sweep *sweep, const char *dir, int64_t *step,
                           double *values)
{
    struct last_rows t = { .sweep = sweep };
    int rv;

    if (sweep_metrics (sweep) == 1)
        return newest_metric (dir, sweep_metric (sweep, 0), step, values);
    slurmdl_metrics_read_dir (dir, keep_row, &t, NULL);
    if (t.n > 0)
        qsort (t.rows, t.n, sizeof (*t.rows), last_first);
    rv = common_step (&t, step, values);
    free (t.rows);
    return rv;
}

int attempt_metrics (const struct trial_attempt *a, int64_t *step, double *values)
{
    const char *slash = strrchr (a->dir, '/');
    char dir[4200];

    for (long k = a->number; k >= 1; k--) {
        snprintf (dir, sizeof (dir), "%.*s/a.%ld", (int)(slash - a->dir), a->dir, k);
        if (newest_metrics (a->sweep, dir, step, values) == 0
            && (k == a->number || *step == a->length)) {
            metric_summarise (a, values);
            return 0;
        }
    }
    return -1;
}
