/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts have logged: newest values, summaries, tables of all metrics. */
#include "launcher/sweep/metrics.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/metrics/metrics.h"
#include "runtime/slurmdl.h"

/* ---- the value of a trial: searcher.summary ---- */

struct summing {
    const struct sweep *sweep;
    long attempt; /* the last attempt that counts */
    struct {
        bool larger; /* wanted */
        double best;
        double last[MEAN_MAX]; /* a ring */
        long n;                /* finite values */
    } of[OBJECTIVES_MAX];
};

static bool wants_larger (const struct sweep *s, size_t metric)
{
    switch (s->exp->metric->summary[metric]) {
    case SUMMARY_MIN:
        return false;
    case SUMMARY_MAX:
        return true;
    case SUMMARY_LAST:
    case SUMMARY_BEST:
    case SUMMARY_MEAN:
        break;
    }
    return metric ? s->exp->search->config.larger[metric]
                  : !s->exp->search->config.smaller_is_better;
}

static int add_to_summary (const struct slurmdl_row *row, void *arg)
{
    struct summing *sum = arg;
    int64_t most = sum->sweep->exp->metric->mean_of_last;

    if (row->superseded || row->attempt > sum->attempt || !isfinite (row->value))
        return 0;
    for (size_t i = 0; i < sweep_metrics (sum->sweep); i++) {
        double *best = &sum->of[i].best;
        if (strcmp (row->name, sweep_metric (sum->sweep, i)))
            continue;
        if (most > 0)
            sum->of[i].last[sum->of[i].n % most] = row->value;
        if (sum->of[i].n++ == 0 || (sum->of[i].larger ? row->value > *best : row->value < *best))
            *best = row->value;
    }
    return 0;
}

static double mean_of (const double *list, long n, int64_t most)
{
    double sum = 0;
    long used = n < most ? n : (long)most;

    for (long i = 0; i < used; i++)
        sum += list[i];
    return sum / (double)used;
}

void metric_summarise (const struct trial_attempt *a, double *values)
{
    const struct experiment *e = a->sweep->exp;
    struct summing sum = { .sweep = a->sweep, .attempt = a->number };
    char dir[PATH_MAX];
    bool last = true;

    for (size_t i = 0; i < sweep_metrics (a->sweep); i++) {
        sum.of[i].larger = wants_larger (a->sweep, i);
        last = last && e->metric->summary[i] == SUMMARY_LAST;
    }
    if (last)
        return;
    snprintf (dir, sizeof (dir), "%s/trials/%04ld", a->sweep->dir, a->trial);
    slurmdl_trial_read (dir, add_to_summary, &sum, NULL);
    for (size_t i = 0; i < sweep_metrics (a->sweep); i++)
        if (sum.of[i].n > 0 && e->metric->summary[i] != SUMMARY_LAST)
            values[i] = e->metric->summary[i] == SUMMARY_MEAN
                            ? mean_of (sum.of[i].last, sum.of[i].n, e->metric->mean_of_last)
                            : sum.of[i].best;
}

struct metric_finding {
    const char *name;
    double value;
    int64_t step;
};

static int find_value_row (const struct slurmdl_row *row, void *arg)
{
    struct metric_finding *f = arg;

    if (!row->superseded && row->value == f->value && !strcmp (row->name, f->name) && f->step < 0)
        f->step = row->step;
    return 0;
}

static int64_t step_of_value (const struct sweep *s, long trial, double value)
{
    struct metric_finding f = { sweep_metric (s, 0), value, -1 };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", s->dir, trial);
    slurmdl_trial_read (dir, find_value_row, &f, NULL);
    return f.step;
}

int best_checkpoint (const struct sweep *s, long trial, char *path, size_t size)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    bool at_step = s->exp->metric->summary[0] == SUMMARY_BEST
                   || s->exp->metric->summary[0] == SUMMARY_MIN
                   || s->exp->metric->summary[0] == SUMMARY_MAX;
    struct sweep_result r = trial_result (s, trial, 0);
    int64_t step = at_step ? step_of_value (s, trial, r.value) : r.length;

    for (long k = t->over + 1; k >= 1 && step >= 0; k--) {
        snprintf (path, size, "%s/trials/%04ld/a.%ld/ckpt/%08lld.h5", s->dir, trial, k,
                  (long long)step);
        if (r.length > 0 && access (path, F_OK) == 0)
            return 0;
    }
    return -1;
}

/* ---- newest values ---- */

struct last {
    const char *name;
    struct metric_progress *to;
    bool found;
};

static int keep_last_row (const struct slurmdl_row *row, void *arg)
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

    slurmdl_metrics_read_dir (dir, keep_last_row, &last, NULL);
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
    size_t order; /* the last row of a step counts */
    double value;
};

struct last_rows {
    const struct sweep *sweep;
    struct last_row *rows;
    size_t n;
};

static int keep_objective_row (const struct slurmdl_row *row, void *arg)
{
    struct last_rows *t = arg;
    size_t i = 0;

    while (i < sweep_metrics (t->sweep) && strcmp (row->name, sweep_metric (t->sweep, i)))
        i++;
    if (i == sweep_metrics (t->sweep))
        return 0;
    XGROW (t->rows, t->n);
    t->rows[t->n] = (struct last_row){ row->step, i, t->n, row->value };
    t->n++;
    return 0;
}

/* The last step first, and of one step the newest row. */
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
    slurmdl_metrics_read_dir (dir, keep_objective_row, &t, NULL);
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

/* ---- metrics that are not optimised ---- */

struct logged_reading {
    struct logged_metrics *to;
    const struct sweep *sweep;
    long trial;
    long rows, most;
    size_t last; /* last name found: the next one is the likeliest */
};

/* a writer never logs more than LOGGED_MOST names */
enum { TOO_MANY = 1, LOGGED_MOST = 1024 };

enum { MANY = 10000, SAMPLE = 256 };

static bool is_optimised (const struct sweep *s, const char *name)
{
    for (size_t i = 0; i < sweep_metrics (s); i++)
        if (!strcmp (name, sweep_metric (s, i)))
            return true;
    return false;
}

static struct logged_metric *add_logged (struct logged_reading *r, const char *name)
{
    struct logged_metrics *l = r->to;
    long n = r->sweep->ntrials;
    struct logged_metric *new;

    if (l->n == LOGGED_MOST)
        return NULL;
    XGROW (l->list, l->n);
    new = &l->list[l->n++];
    new->values = xcalloc ((size_t)n, sizeof (double));
    new->has = xcalloc ((size_t)n, sizeof (bool));
    for (long i = 0; i < n; i++)
        new->values[i] = NAN;
    snprintf (new->name, LOGGED_NAME_SIZE, "%s", name);
    return new;
}

static struct logged_metric *find_logged (struct logged_reading *r, const char *name)
{
    for (size_t i = 1, n = r->to->n; i <= n; i++) {
        struct logged_metric *m = &r->to->list[(r->last + i) % n];
        if (!strncmp (m->name, name, LOGGED_NAME_SIZE - 1)) {
            r->last = (r->last + i) % n;
            return m;
        }
    }
    return add_logged (r, name);
}

static int keep_logged_row (const struct slurmdl_row *row, void *arg)
{
    struct logged_reading *r = arg;
    struct logged_metric *m;

    if (r->rows++ >= r->most)
        return TOO_MANY;
    if (is_optimised (r->sweep, row->name))
        return 0;
    if (!(m = find_logged (r, row->name)))
        return TOO_MANY;
    m->values[r->trial - 1] = row->value;
    m->has[r->trial - 1] = true;
    return 0;
}

bool logged_read (struct logged_metrics *l, const struct sweep *s, const long *trials, long n,
                  long most)
{
    struct logged_reading r = { .to = l, .sweep = s, .most = most };
    char dir[PATH_MAX];
    int rv = 0;

    *l = (struct logged_metrics){ .n = 0 };
    for (long i = 0; i < n && rv <= 0; i++) {
        long before = r.rows;
        r.trial = trials ? trials[i] : i + 1;
        for (long k = sweep_trial (s, r.trial)->over + 1; k >= 1 && r.rows == before && rv <= 0;
             k--) {
            snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, r.trial, k);
            rv = slurmdl_metrics_read_dir (dir, keep_logged_row, &r, NULL);
        }
    }
    return rv == TOO_MANY;
}

/* If there are many trials, check an evenly spread sample to find out whether reading all is
 * worthwhile.
 */
static bool sample_has_logged (const struct sweep *s, const long *trials, long n)
{
    struct logged_metrics l;
    long sample[SAMPLE];
    bool has;

    if (n <= MANY)
        return true;
    for (long i = 0; i < SAMPLE; i++) {
        long at = i * (n - 1) / (SAMPLE - 1);
        sample[i] = trials ? trials[at] : at + 1;
    }
    has = logged_read (&l, s, sample, SAMPLE, LONG_MAX) || l.n > 0;
    logged_free (&l);
    return has;
}

void logged_read_all (struct logged_metrics *l, const struct sweep *s, const long *trials, long n)
{
    *l = (struct logged_metrics){ .n = 0 };
    if (sample_has_logged (s, trials, n))
        logged_read (l, s, trials, n, LONG_MAX);
}

void logged_free (struct logged_metrics *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free (l->list[i].values);
        free (l->list[i].has);
    }
    free (l->list);
    *l = (struct logged_metrics){ .n = 0 };
}

/* ---- all metrics as one table ---- */

static bool row_name_is (const struct rows *r, size_t i, const char *name)
{
    return !strncmp (r->names[i], name, ROW_NAME_SIZE);
}

/* Metrics are logged in turn: the one after the last found is the likeliest. */
static int64_t find_row_name (const struct rows *r, const char *name, size_t last)
{
    for (size_t i = 1; i <= r->nnames; i++)
        if (row_name_is (r, (last + i) % r->nnames, name))
            return (int64_t)((last + i) % r->nnames);
    return -1;
}

static int64_t add_row_name (struct rows *r, const char *name)
{
    size_t n = r->nnames;
    XGROW (r->names, n);
    strncpy (r->names[n], name, ROW_NAME_SIZE - 1);
    r->names[n][ROW_NAME_SIZE - 1] = '\0';
    return (int64_t)r->nnames++;
}

static void copy_row_names (struct rows *r, const struct rows *old)
{
    for (size_t i = 0; old && i < old->nnames; i++)
        add_row_name (r, old->names[i]);
}

static void reserve_rows (struct rows *r, size_t more)
{
    if (array_reserve (&r->list, &r->capacity, r->n, more, sizeof (*r->list)) < 0)
        out_of_memory ();
}

struct row_reading {
    struct rows *rows;
    long trial;
    long attempt;
    size_t last; /* name */
};

static int add_metric_row (const struct slurmdl_row *row, void *arg)
{
    struct row_reading *g = arg;
    struct rows *r = g->rows;
    int64_t name = find_row_name (r, row->name, g->last);

    if (name < 0)
        name = add_row_name (r, row->name);
    reserve_rows (r, 1);
    g->last = (size_t)name;
    r->list[r->n++] =
        (struct metric_row){ g->trial,      row->step, row->time, row->value, (uint32_t)g->attempt,
                             (uint32_t)name };
    return 0;
}

/* Of the rows first .. new - 1, drop those that the attempt with the rows from 'new' on superseded,
 * as slurmdl_trial_read() does: from its first step of the same name, or from 'begin'.
 */
static void drop_repeated (struct rows *r, size_t first, size_t new, int64_t begin)
{
    int64_t *least;
    size_t kept = first;

    if (first == new || (begin == INT64_MAX && new == r->n))
        return;
    least = xcalloc (r->nnames, sizeof (*least));
    for (size_t i = 0; i < r->nnames; i++)
        least[i] = begin;
    for (size_t i = new; i < r->n; i++)
        if (r->list[i].step < least[r->list[i].name])
            least[r->list[i].name] = r->list[i].step;
    for (size_t i = first; i < r->n; i++)
        if (i >= new || r->list[i].step < least[r->list[i].name])
            r->list[kept++] = r->list[i];
    r->n = kept;
    free (least);
}

/* Returns whether the attempt's metrics could be read. */
static bool read_attempt_rows (struct row_reading *g, const struct sweep *s, size_t first)
{
    struct slurmdl_error why = { "" };
    size_t new = g->rows->n;
    int64_t begin = INT64_MAX;
    char dir[PATH_MAX];
    int rv;

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, g->trial, g->attempt);
    rv = slurmdl_metrics_read_dir (dir, add_metric_row, g, &why);
    if (rv == 0 && attempt_is_missing (s, g->trial, g->attempt, dir, sizeof (dir)))
        rv = errorf (&why, "%s: missing, although the result of this attempt was accepted", dir);
    if (rv < 0)
        errorf (&g->rows->damage, "%s", why.text);
    if (rv == 0 && new > first && slurmdl_resumed_at (dir, &begin) > 0)
        begin++;
    drop_repeated (g->rows, first, new, begin);
    return rv >= 0;
}

/* Copy the rows of trial 'n', which begin at *at in 'old', and advance *at to their end. */
static void copy_trial_rows (struct rows *r, const struct rows *old, long n, size_t *at,
                             bool wanted)
{
    size_t end = *at;

    while (end < old->n && old->list[end].trial <= n)
        end++;
    if (wanted && end > *at) {
        reserve_rows (r, end - *at);
        memcpy (r->list + r->n, old->list + *at, (end - *at) * sizeof (*r->list));
        r->n += end - *at;
    }
    *at = end;
}

static void read_trial_rows (struct rows *r, const struct sweep *s, const struct rows *old, long n,
                             size_t *at)
{
    long last = trial_last (sweep_trial (s, n)).attempt;
    int64_t covered = old && n <= old->ntrials ? old->covered[n - 1] : 0;
    struct row_reading g = { .rows = r, .trial = n };
    size_t first = r->n;
    bool all = true;

    if (covered > last)
        covered = 0; /* 'old' is of another log */
    if (old)
        copy_trial_rows (r, old, n, at, covered > 0);
    for (g.attempt = (long)covered + 1; g.attempt <= last; g.attempt++)
        all &= read_attempt_rows (&g, s, first);
    r->covered[n - 1] = all ? last : 0;
    r->damaged += !all;
}

void rows_read (struct rows *r, const struct sweep *s, const struct rows *old)
{
    size_t at = 0;

    *r = (struct rows){ .ntrials = s->ntrials };
    r->covered = xcalloc ((size_t)s->ntrials + 1, sizeof (*r->covered));
    copy_row_names (r, old);
    for (long n = 1; n <= s->ntrials; n++)
        read_trial_rows (r, s, old, n, &at);
}

void rows_destroy (struct rows *r)
{
    free (r->list);
    free (r->names);
    free (r->covered);
    *r = (struct rows){ 0 };
}
