/* SPDX-License-Identifier: Apache-2.0 */
/* What the attempts before this one printed, but their workers did not take in.
 */
#include "launcher/trainer/printed.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sweep/queries.h"
#include "launcher/trainer/lines.h"
#include "runtime/base/array.h"
#include "runtime/metrics/file.h"

struct printed_value {
    char name[NAME_SIZE];
    int64_t step;
    double value;
    size_t order; /* of values of one step the last one counts */
    bool missing; /* only the log has it */
};

struct printed_values {
    struct printed_value *list;
    size_t n, capacity;
};

struct printed {
    const struct trial_attempt *a;
    long first; /* attempt at the segment */
    bool is_read;
    struct printed_values all;
    char (*begun)[NAME_SIZE]; /* what this attempt has logged itself */
    size_t nbegun;
};

struct printed *printed_create (const struct trial_attempt *a)
{
    const struct sweep_trial *t = sweep_trial (a->sweep, a->trial);
    struct printed *r;

    if (!a->sweep->exp->patterns || a->number <= trial_last (t).attempt + 1
        || !(r = calloc (1, sizeof (*r))))
        return NULL;
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

/* ---- an attempt ---- */

static int add_value (struct printed_values *v, const char *name, int64_t step, double value)
{
    struct printed_value *x;

    if (array_reserve (&v->list, &v->capacity, v->n, 1, sizeof (*v->list)) < 0)
        return -1;
    x = &v->list[v->n];
    *x = (struct printed_value){ .step = step, .value = value, .order = v->n };
    snprintf (x->name, sizeof (x->name), "%s", name);
    v->n++;
    return 0;
}

static int add_row (const struct slurmdl_row *row, void *values)
{
    return add_value (values, row->name, row->step, row->value) < 0;
}

static int add_line (const char *name, int64_t step, double value, void *values)
{
    return add_value (values, name, step, value);
}

static int by_step (const struct printed_value *x, const struct printed_value *y)
{
    int rv = strcmp (x->name, y->name);

    return rv ? rv : (x->step > y->step) - (x->step < y->step);
}

static int in_order (const void *a, const void *b)
{
    const struct printed_value *x = a, *y = b;
    int rv = by_step (x, y);

    return rv ? rv : (x->order > y->order) - (x->order < y->order);
}

static void sort (struct printed_values *v)
{
    if (v->n > 0)
        qsort (v->list, v->n, sizeof (*v->list), in_order);
}

/* Up to the last whole line: a number in another one may be cut. */
static void read_lines (const struct printed *r, const char *dir, struct printed_values *lines)
{
    const struct experiment *e = r->a->sweep->exp;
    struct line_reader *l = lines_create (e->patterns, add_line, lines);
    int fd = l ? attempt_open_lines (r->a->sweep, dir) : -1;
    off_t at = 0;

    if (fd >= 0) {
        lines_read (l, fd, &at);
        close (fd);
    }
    lines_destroy (l);
}

/* What was printed more often than it is in the metrics is missing there. */
static int add_missing (struct printed_values *have, struct printed_values *lines)
{
    size_t n = have->n;
    size_t j = 0;

    sort (have);
    sort (lines);
    for (size_t i = 0; i < lines->n; i++) {
        const struct printed_value *x = &lines->list[i];
        while (j < n && by_step (&have->list[j], x) < 0)
            j++;
        if (j < n && by_step (&have->list[j], x) == 0)
            j++;
        else if (add_value (have, x->name, x->step, x->value) < 0)
            return -1;
        else
            have->list[have->n - 1].missing = true;
    }
    return 0;
}

/* What an attempt has logged and printed supersedes what those before it have
 * from its first step of the same name on, or from where it was restored to.
 */
static int supersede (struct printed_values *all, struct printed_values *by, int64_t begin)
{
    size_t kept = 0;

    sort (by);
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
        if (add_value (all, x->name, x->step, x->value) < 0)
            return -1;
        all->list[all->n - 1].missing = x->missing;
    }
    return 0;
}

static int read_attempt (struct printed *r, long k)
{
    struct printed_values have = { NULL }, lines = { NULL };
    int64_t begin = INT64_MAX;
    char dir[PATH_MAX];
    int rv;

    snprintf (dir, sizeof (dir), "%.*s/a.%ld", (int)(strrchr (r->a->dir, '/') - r->a->dir),
              r->a->dir, k);
    slurmdl_metrics_read_dir (dir, add_row, &have, NULL);
    read_lines (r, dir, &lines);
    if (slurmdl_resumed_at (dir, &begin) > 0)
        begin++;
    rv = add_missing (&have, &lines) < 0 || supersede (&r->all, &have, begin) < 0 ? -1 : 0;
    free (have.list);
    free (lines.list);
    return rv;
}

/* As late as can be: an attempt that was given up may still be at work, and be
 * further than it was when this one began.
 */
static void read_all (struct printed *r)
{
    if (r->is_read)
        return;
    r->is_read = true;
    for (long k = r->first; k < r->a->number; k++)
        if (read_attempt (r, k) < 0)
            break;
    sort (&r->all);
}

/* ---- this attempt ---- */

static bool has_begun (const struct printed *r, const char *name)
{
    for (size_t i = 0; i < r->nbegun; i++)
        if (!strcmp (r->begun[i], name))
            return true;
    return false;
}

static void begin (struct printed *r, const char *name)
{
    char (*list)[NAME_SIZE] = array_grow (r->begun, r->nbegun, sizeof (*list));

    if (!list)
        return;
    r->begun = list;
    snprintf (list[r->nbegun++], NAME_SIZE, "%s", name);
}

/* Call 'f' for the values of a name from the first that is missing, or from
 * step 'from', up to step 'to': what this attempt logs supersedes those behind
 * it, which are therefore logged again.
 */
static void put (const struct printed *r, const char *name, int64_t from, int64_t to,
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
    begin (r, name);
    read_all (r);
    put (r, name, INT64_MAX, step, f, arg);
}

/* Steps count from 1, or from 0 where the first one of the segment says so. */
static bool is_whole (const struct printed *r, const char *metric)
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
    read_all (r);
    if (!is_whole (r, metric))
        return false;
    for (size_t i = 0; i < r->all.n; i++) {
        const struct printed_value *x = &r->all.list[i];
        bool is_last = i + 1 == r->all.n || strcmp (x[1].name, x->name);
        if (is_last && !has_begun (r, x->name))
            put (r, x->name, x->step, INT64_MAX, f, arg);
    }
    return true;
}
