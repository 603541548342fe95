/* SPDX-License-Identifier: Apache-2.0 */
/* Gather the metrics of all trials. */
#include "launcher/sweep/metric_rows.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/queries.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

static bool has_name (const struct rows *r, size_t i, const char *name)
{
    return !strncmp (r->names[i], name, ROW_NAME_SIZE);
}

/* Metrics are logged in turn: the one after the last found is the likeliest. */
static int64_t find_name (const struct rows *r, const char *name, size_t last)
{
    for (size_t i = 1; i <= r->nnames; i++)
        if (has_name (r, (last + i) % r->nnames, name))
            return (int64_t)((last + i) % r->nnames);
    return -1;
}

static int64_t add_name (struct rows *r, const char *name)
{
    size_t n = r->nnames;
    char (*list)[ROW_NAME_SIZE] = array_grow (r->names, n, sizeof (*list));

    if (!list)
        return -1;
    r->names = list;
    strncpy (list[n], name, ROW_NAME_SIZE - 1);
    list[n][ROW_NAME_SIZE - 1] = '\0';
    return (int64_t)r->nnames++;
}

static int copy_names (struct rows *r, const struct rows *old)
{
    for (size_t i = 0; old && i < old->nnames; i++)
        if (add_name (r, old->names[i]) < 0)
            return -1;
    return 0;
}

static int reserve_rows (struct rows *r, size_t more)
{
    return array_reserve (&r->list, &r->capacity, r->n, more, sizeof (*r->list));
}

struct row_reading {
    struct rows *rows;
    long trial;
    long attempt;
    size_t last; /* name */
};

enum { NO_MEMORY = 1 };

static int add_row (const struct slurmdl_row *row, void *arg)
{
    struct row_reading *g = arg;
    struct rows *r = g->rows;
    int64_t name = find_name (r, row->name, g->last);

    if (name < 0)
        name = add_name (r, row->name);
    if (name < 0 || reserve_rows (r, 1) < 0)
        return NO_MEMORY;
    g->last = (size_t)name;
    r->list[r->n++] =
        (struct metric_row){ g->trial,      row->step, row->time, row->value, (uint32_t)g->attempt,
                             (uint32_t)name };
    return 0;
}

/* Of the rows first .. new - 1 drop those that the attempt with the rows from
 * 'new' on has superseded: slurmdl_trial_read() says the same of them.  They
 * begin at 'begin' in any case.
 */
static int drop_repeated (struct rows *r, size_t first, size_t new, int64_t begin)
{
    int64_t *least;
    size_t kept = first;

    if (first == new || (begin == INT64_MAX && new == r->n))
        return 0;
    if (!(least = malloc (r->nnames * sizeof (*least))))
        return -1;
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
    return 0;
}

/* Returns 1 if it could not be read, -1 if out of memory. */
static int read_attempt (struct row_reading *g, const struct sweep *s, size_t first)
{
    struct slurmdl_error why = { "" };
    size_t new = g->rows->n;
    int64_t begin = INT64_MAX;
    char dir[PATH_MAX];
    int rv;

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, g->trial, g->attempt);
    rv = slurmdl_metrics_read_dir (dir, add_row, g, &why);
    if (rv == 0 && attempt_is_missing (s, g->trial, g->attempt, dir, sizeof (dir)))
        rv = errorf (&why,
                     "%s: missing, although the result of this attempt was "
                     "accepted",
                     dir);
    if (rv < 0)
        errorf (&g->rows->damage, "%s", why.text);
    if (rv == 0 && new > first && slurmdl_resumed_at (dir, &begin) > 0)
        begin++;
    if (rv == NO_MEMORY || drop_repeated (g->rows, first, new, begin) < 0)
        return -1;
    return rv < 0;
}

/* Those of trial 'n' in 'old' begin at *at, which goes on to their end. */
static int copy_trial (struct rows *r, const struct rows *old, long n, size_t *at, bool wanted)
{
    size_t end = *at;

    while (end < old->n && old->list[end].trial <= n)
        end++;
    if (wanted && end > *at) {
        if (reserve_rows (r, end - *at) < 0)
            return -1;
        memcpy (r->list + r->n, old->list + *at, (end - *at) * sizeof (*r->list));
        r->n += end - *at;
    }
    *at = end;
    return 0;
}

static int read_trial (struct rows *r, const struct sweep *s, const struct rows *old, long n,
                       size_t *at)
{
    long last = trial_last (sweep_trial (s, n)).attempt;
    int64_t covered = old && n <= old->ntrials ? old->covered[n - 1] : 0;
    struct row_reading g = { .rows = r, .trial = n };
    size_t first = r->n;
    bool all = true;

    if (covered > last)
        covered = 0; /* it is of another log */
    if (old && copy_trial (r, old, n, at, covered > 0) < 0)
        return -1;
    for (g.attempt = (long)covered + 1; g.attempt <= last; g.attempt++) {
        int rv = read_attempt (&g, s, first);
        if (rv < 0)
            return -1;
        all = all && rv == 0;
    }
    r->covered[n - 1] = all ? last : 0;
    r->damaged += !all;
    return 0;
}

int rows_read (struct rows *r, const struct sweep *s, const struct rows *old)
{
    size_t at = 0;

    *r = (struct rows){ .ntrials = s->ntrials };
    r->covered = calloc ((size_t)s->ntrials + 1, sizeof (*r->covered));
    if (!r->covered || copy_names (r, old) < 0)
        return -1;
    for (long n = 1; n <= s->ntrials; n++)
        if (read_trial (r, s, old, n, &at) < 0)
            return -1;
    return 0;
}

void rows_destroy (struct rows *r)
{
    free (r->list);
    free (r->names);
    free (r->covered);
    *r = (struct rows){ 0 };
}
