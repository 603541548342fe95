/* SPDX-License-Identifier: Apache-2.0 */
/* The newest values of the metrics that are logged, but not optimised. */
#include "launcher/sweep/logged_metrics.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/queries.h"
#include "runtime/base/array.h"
#include "runtime/metrics/metrics.h"

struct logged_reading {
    struct logged_metrics *to;
    const struct sweep *sweep;
    long trial;
    long rows, most;
    size_t last; /* found: the one after it is the likeliest */
};

/* a writer has no more names than LOGGED_MOST, either */
enum { TOO_MANY = 1, NO_MEMORY = 2, LOGGED_MOST = 1024 };

enum { MANY = 10000, SAMPLE = 256 };

static bool is_optimised (const struct sweep *s, const char *name)
{
    for (size_t i = 0; i < sweep_metrics (s); i++)
        if (!strcmp (name, sweep_metric (s, i)))
            return true;
    return false;
}

static struct logged_metric *add (struct logged_reading *r, const char *name)
{
    struct logged_metrics *l = r->to;
    struct logged_metric *list =
        l->n == LOGGED_MOST ? NULL : array_grow (l->list, l->n, sizeof (*list));
    long n = r->sweep->ntrials;

    if (!list)
        return NULL;
    l->list = list;
    list[l->n].values = malloc ((size_t)n * sizeof (double));
    list[l->n].has = calloc ((size_t)n, sizeof (bool));
    if (!list[l->n].values || !list[l->n].has) {
        free (list[l->n].values);
        free (list[l->n].has);
        return NULL;
    }
    for (long i = 0; i < n; i++)
        list[l->n].values[i] = NAN;
    snprintf (list[l->n].name, LOGGED_NAME_SIZE, "%s", name);
    return &list[l->n++];
}

static struct logged_metric *find (struct logged_reading *r, const char *name)
{
    for (size_t i = 1, n = r->to->n; i <= n; i++) {
        struct logged_metric *m = &r->to->list[(r->last + i) % n];
        if (!strncmp (m->name, name, LOGGED_NAME_SIZE - 1)) {
            r->last = (r->last + i) % n;
            return m;
        }
    }
    return add (r, name);
}

static int keep_newest (const struct slurmdl_row *row, void *arg)
{
    struct logged_reading *r = arg;
    struct logged_metric *m;

    if (r->rows++ >= r->most)
        return TOO_MANY;
    if (is_optimised (r->sweep, row->name))
        return 0;
    if (!(m = find (r, row->name)))
        return r->to->n == LOGGED_MOST ? TOO_MANY : NO_MEMORY;
    m->values[r->trial - 1] = row->value;
    m->has[r->trial - 1] = true;
    return 0;
}

int logged_read (struct logged_metrics *l, const struct sweep *s, const long *trials, long n,
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
            rv = slurmdl_metrics_read_dir (dir, keep_newest, &r, NULL);
        }
    }
    return rv == NO_MEMORY ? -1 : rv == TOO_MANY;
}

/* Of many trials some, evenly spread, say whether it is worth reading all. */
static int some_log (const struct sweep *s, const long *trials, long n)
{
    struct logged_metrics l;
    long sample[SAMPLE];
    int rv;

    if (n <= MANY)
        return 1;
    for (long i = 0; i < SAMPLE; i++) {
        long at = i * (n - 1) / (SAMPLE - 1);
        sample[i] = trials ? trials[at] : at + 1;
    }
    rv = logged_read (&l, s, sample, SAMPLE, LONG_MAX);
    if (rv == 0)
        rv = l.n > 0;
    logged_free (&l);
    return rv;
}

int logged_read_all (struct logged_metrics *l, const struct sweep *s, const long *trials, long n)
{
    int rv = some_log (s, trials, n);

    *l = (struct logged_metrics){ .n = 0 };
    return rv > 0 ? logged_read (l, s, trials, n, LONG_MAX) : rv;
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
