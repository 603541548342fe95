/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in what trainers print: in a growing file, and in the logs of earlier attempts. */
#include "launcher/trainer/printed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/metrics/file.h"
#include "runtime/slurmdl.h"

enum { LINE_SIZE = 8192, TRIES = 3 };

struct line_reader {
    struct pattern **patterns;
    pattern_metric_f f;
    void *arg;
    char line[LINE_SIZE];
    size_t fill;
};

struct line_reader *lines_create (char **texts, pattern_metric_f f, void *arg)
{
    struct line_reader *l = xcalloc (1, sizeof (*l));
    size_t n = 0;

    while (texts && texts[n])
        n++;
    l->patterns = xcalloc (n + 1, sizeof (*l->patterns));
    l->f = f;
    l->arg = arg;
    for (size_t i = 0; i < n; i++)
        if (!(l->patterns[i] = pattern_create (texts[i], NULL)))
            out_of_memory (); /* the experiment file's check has accepted the patterns */
    return l;
}

void lines_destroy (struct line_reader *l)
{
    if (!l)
        return;
    for (size_t i = 0; l->patterns && l->patterns[i]; i++)
        pattern_destroy (l->patterns[i]);
    free (l->patterns);
    free (l);
}

bool lines_wanted (const struct line_reader *l)
{
    return l->patterns[0];
}

static void match_line (struct line_reader *l)
{
    l->line[l->fill] = '\0';
    line_strip (l->line);
    for (size_t i = 0; l->patterns[i]; i++)
        pattern_match (l->patterns[i], l->line, l->f, l->arg);
    l->fill = 0;
}

/* A read that a file server refuses once may succeed when retried. */
static ssize_t pread_with_retries (int fd, char *buf, size_t size, off_t at)
{
    ssize_t n = -1;

    for (int i = 0; n < 0 && (i < TRIES || errno == EINTR); i++)
        n = pread (fd, buf, size, at);
    return n;
}

int lines_read (struct line_reader *l, int fd, off_t *at)
{
    char buf[16384];
    ssize_t n;

    while ((n = pread_with_retries (fd, buf, sizeof (buf), *at)) > 0) {
        *at += n;
        for (ssize_t i = 0; i < n; i++) {
            /* progress bars end their lines with these to overwrite them */
            if (buf[i] == '\n' || buf[i] == '\r' || buf[i] == '\b')
                match_line (l);
            else if (l->fill < LINE_SIZE - 1 && buf[i])
                l->line[l->fill++] = buf[i];
        }
    }
    return n < 0 ? -1 : 0;
}

void lines_end (struct line_reader *l)
{
    if (l->fill)
        match_line (l);
}

/* ---- the logs of earlier attempts ---- */

struct printed_value {
    char name[NAME_SIZE];
    int64_t step;
    double value;
    size_t order; /* the last value of a step counts */
    bool missing; /* it is only in the log */
};

struct printed_values {
    struct printed_value *list;
    size_t n, capacity;
};

struct printed {
    const struct trial_attempt *a;
    long first; /* first attempt at the segment */
    bool is_read;
    struct printed_values all;
    char (*begun)[NAME_SIZE]; /* what this attempt has logged itself */
    size_t nbegun;
};

struct printed *printed_create (const struct trial_attempt *a)
{
    const struct sweep_trial *t = sweep_trial (a->sweep, a->trial);
    struct printed *r;

    if (!a->sweep->exp->metric->patterns || a->number <= trial_last (t).attempt + 1)
        return NULL;
    r = xcalloc (1, sizeof (*r));
    r->a = a;
    r->first = trial_last (t).attempt + 1;
    return r;
}

void printed_destroy (struct printed *r)
{
    if (!r)
        return;
    free (r->all.list);
    free (r->begun);
    free (r);
}

static void add_printed_value (struct printed_values *v, const char *name, int64_t step,
                               double value)
{
    struct printed_value *x;

    if (array_reserve (&v->list, &v->capacity, v->n, 1, sizeof (*v->list)) < 0)
        out_of_memory ();
    x = &v->list[v->n];
    *x = (struct printed_value){ .step = step, .value = value, .order = v->n };
    snprintf (x->name, sizeof (x->name), "%s", name);
    v->n++;
}

static int add_printed_row (const struct slurmdl_row *row, void *values)
{
    add_printed_value (values, row->name, row->step, row->value);
    return 0;
}

static int add_printed_line (const char *name, int64_t step, double value, void *values)
{
    add_printed_value (values, name, step, value);
    return 0;
}

static int by_name_and_step (const struct printed_value *x, const struct printed_value *y)
{
    int rv = strcmp (x->name, y->name);

    return rv ? rv : (x->step > y->step) - (x->step < y->step);
}

static int by_name_step_order (const void *a, const void *b)
{
    const struct printed_value *x = a, *y = b;
    int rv = by_name_and_step (x, y);

    return rv ? rv : (x->order > y->order) - (x->order < y->order);
}

static void sort_printed (struct printed_values *v)
{
    if (v->n > 0)
        qsort (v->list, v->n, sizeof (*v->list), by_name_step_order);
}

/* Reads up to the last whole line: a number in a partial one may be cut. */
static void read_printed_lines (const struct printed *r, const char *dir,
                                struct printed_values *lines)
{
    const struct experiment *e = r->a->sweep->exp;
    struct line_reader *l = lines_create (e->metric->patterns, add_printed_line, lines);
    int fd = attempt_open_lines (r->a->sweep, dir);
    off_t at = 0;

    if (fd >= 0) {
        lines_read (l, fd, &at);
        close (fd);
    }
    lines_destroy (l);
}

/* Add what was printed more often than it is in the metrics. */
static void add_missing (struct printed_values *have, struct printed_values *lines)
{
    size_t n = have->n;
    size_t j = 0;

    sort_printed (have);
    sort_printed (lines);
    for (size_t i = 0; i < lines->n; i++) {
        const struct printed_value *x = &lines->list[i];
        while (j < n && by_name_and_step (&have->list[j], x) < 0)
            j++;
        if (j < n && by_name_and_step (&have->list[j], x) == 0)
            j++;
        else {
            add_printed_value (have, x->name, x->step, x->value);
            have->list[have->n - 1].missing = true;
        }
    }
}

/* What an attempt logged and printed supersedes earlier values of the same name from its first step
 * on, or from the step it was restored to.
 */
static void supersede (struct printed_values *all, struct printed_values *by, int64_t begin)
{
    size_t kept = 0;

    sort_printed (by);
    for (size_t i = 0; i < all->n; i++) {
        const struct printed_value *x = &all->list[i];
        int64_t least = begin;
        for (size_t j = 0; j < by->n; j++)
            if (!strcmp (by->list[j].name, x->name)) {
                least = by->list[j].step < least ? by->list[j].step : least;
                break;
            }
        if (x->step < least)
            all->list[kept++] = *x;
    }
    all->n = kept;
    for (size_t i = 0; i < by->n; i++) {
        const struct printed_value *x = &by->list[i];
        add_printed_value (all, x->name, x->step, x->value);
        all->list[all->n - 1].missing = x->missing;
    }
}

static void read_earlier_attempt (struct printed *r, long k)
{
    struct printed_values have = { NULL }, lines = { NULL };
    int64_t begin = INT64_MAX;
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%.*s/a.%ld", (int)(strrchr (r->a->dir, '/') - r->a->dir),
              r->a->dir, k);
    slurmdl_metrics_read_dir (dir, add_printed_row, &have, NULL);
    read_printed_lines (r, dir, &lines);
    if (slurmdl_resumed_at (dir, &begin) > 0)
        begin++;
    add_missing (&have, &lines);
    supersede (&r->all, &have, begin);
    free (have.list);
    free (lines.list);
}

/* As late as possible: an attempt that was given up may still run, and get further than it was when
 * this one began.
 */
static void read_earlier_attempts (struct printed *r)
{
    if (r->is_read)
        return;
    r->is_read = true;
    for (long k = r->first; k < r->a->number; k++)
        read_earlier_attempt (r, k);
    sort_printed (&r->all);
}

/* ---- what this attempt logs of them ---- */

static bool has_begun (const struct printed *r, const char *name)
{
    for (size_t i = 0; i < r->nbegun; i++)
        if (!strcmp (r->begun[i], name))
            return true;
    return false;
}

static void note_begun (struct printed *r, const char *name)
{
    XGROW (r->begun, r->nbegun);
    snprintf (r->begun[r->nbegun++], NAME_SIZE, "%s", name);
}

/* Call 'f' for the values of a name from the first missing one, or from step 'from', up to step
 * 'to'. What this attempt logs supersedes all later values, so they are logged again.
 */
static void log_printed (const struct printed *r, const char *name, int64_t from, int64_t to,
                         printed_log_f f, void *arg)
{
    for (size_t i = 0; i < r->all.n; i++) {
        const struct printed_value *x = &r->all.list[i];
        if (strcmp (x->name, name))
            continue;
        if (x->missing && x->step < from)
            from = x->step;
        if (x->step >= from && x->step < to)
            f (name, x->step, x->value, arg);
    }
}

void printed_before (struct printed *r, const char *name, int64_t step, printed_log_f f, void *arg)
{
    if (!r || has_begun (r, name))
        return;
    note_begun (r, name);
    read_earlier_attempts (r);
    log_printed (r, name, INT64_MAX, step, f, arg);
}

/* Steps count from 1, or from 0 if the first one of the segment shows it. */
static bool segment_was_printed (const struct printed *r, const char *metric)
{
    const struct printed_value *first = NULL, *last = NULL;
    int64_t had = sweep_trial (r->a->sweep, r->a->trial)->length;

    for (size_t i = 0; i < r->all.n; i++)
        if (!strcmp (r->all.list[i].name, metric)) {
            first = first ? first : &r->all.list[i];
            last = &r->all.list[i];
        }
    return first
           && (last->step >= r->a->length
               || (first->step == had && last->step + 1 >= r->a->length));
}

bool printed_finish (struct printed *r, const char *metric, printed_log_f f, void *arg)
{
    if (!r || has_begun (r, metric))
        return false;
    read_earlier_attempts (r);
    if (!segment_was_printed (r, metric))
        return false;
    for (size_t i = 0; i < r->all.n; i++) {
        const struct printed_value *x = &r->all.list[i];
        bool is_last = i + 1 == r->all.n || strcmp (x[1].name, x->name);
        if (is_last && !has_begun (r, x->name))
            log_printed (r, x->name, x->step, INT64_MAX, f, arg);
    }
    return true;
}
