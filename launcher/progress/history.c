/* SPDX-License-Identifier: Apache-2.0 */
/* Results in their order, and since when each trial is as it is. */
#include "launcher/progress/history.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/sweep/best.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"

static int note_time (struct history *h, const struct event *e)
{
    size_t trial = (size_t)e->trial;

    if (trial > h->nsince) {
        if (array_reserve (&h->since, &h->room, h->nsince, trial - h->nsince, sizeof (*h->since))
            < 0)
            return -1;
        while (h->nsince < trial)
            h->since[h->nsince++] = NAN;
    }
    h->since[trial - 1] = e->time;
    return 0;
}

static int note_result (struct history *h, const struct event *e)
{
    if (array_reserve (&h->results, &h->capacity, h->n, 1, sizeof (*h->results)) < 0)
        return -1;
    h->results[h->n++] = (struct history_result){
        .trial = (long)e->trial,
        .attempt = (long)e->attempt,
        .length = e->length,
        .value = e->nmetrics ? e->metrics[0] : e->metric,
        .time = e->time,
    };
    return 0;
}

static int take_event (const struct event *e, void *arg, struct slurmdl_error *err)
{
    struct history *h = arg;

    if (e->trial < 1 || e->trial > h->limit)
        return 0;
    if (note_time (h, e) < 0 || (e->op == EVENT_RESULT && note_result (h, e) < 0))
        return errorf (err, "out of memory");
    return 0;
}

int history_sync (struct history *h, const struct sweep *s, struct slurmdl_error *err)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/log", s->dir);
    if (!h->log && !(h->log = log_create (path, err)))
        return -1;
    /* entries may be newer than the sweep, but nobody begins so many at once */
    h->limit = s->ntrials + 65536;
    return log_sync (h->log, take_event, h, err) < 0 ? -1 : 0;
}

void history_free (struct history *h)
{
    log_destroy (h->log);
    free (h->results);
    free (h->since);
    *h = (struct history){ 0 };
}

/* Whether a result was accepted. */
static bool counts (const struct sweep *s, const struct history_result *r)
{
    const struct sweep_trial *t = sweep_trial (s, r->trial);

    return t && trial_milestone (t, r->length) == r->attempt;
}

double history_age (const struct history *h, long trial)
{
    struct timespec now;

    if (trial < 1 || (size_t)trial > h->nsince)
        return NAN;
    clock_gettime (CLOCK_REALTIME, &now);
    return fmax (0, (double)now.tv_sec - h->since[trial - 1]);
}

static struct history_rung *find_rung (struct history_rung *list, int *n, int max, int64_t length)
{
    int at = 0;

    while (at < *n && list[at].length < length)
        at++;
    if (at < *n && list[at].length == length)
        return &list[at];
    if (*n == max) { /* the shortest one gives way */
        if (at == 0)
            return NULL;
        memmove (list, list + 1, (size_t)(at - 1) * sizeof (*list));
        at--;
    } else {
        memmove (list + at + 1, list + at, (size_t)(*n - at) * sizeof (*list));
        (*n)++;
    }
    list[at] = (struct history_rung){ .length = length, .value = NAN };
    return &list[at];
}

int history_rungs (const struct history *h, const struct sweep *s, struct history_rung *list,
                   int max)
{
    int n = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct history_result *r = &h->results[i];
        struct history_rung *g;
        struct sweep_result of;
        if (!counts (s, r) || !(g = find_rung (list, &n, max, r->length)))
            continue;
        g->results++;
        of = point_result_at (s, trial_point (s, r->trial), r->length);
        if ((s->exp->search.repeats <= 1 || of.n == s->exp->search.repeats)
            && sweep_better (s, of.value, g->value)) {
            g->value = of.value;
            g->best = r->trial;
        }
    }
    return n;
}

long history_best (const struct history *h, const struct sweep *s, double **list)
{
    struct best_walk walk;
    long n = 0;

    *list = malloc ((h->n + 1) * sizeof (**list));
    if (best_walk_begin (&walk, s) < 0 || !*list) {
        best_walk_end (&walk);
        free (*list);
        *list = NULL;
        return -1;
    }
    for (size_t i = 0; i < h->n; i++) {
        const struct history_result *r = &h->results[i];
        if (isfinite (r->value) && counts (s, r) && best_walk_take (&walk, r->trial, r->length))
            (*list)[n++] = walk.best;
    }
    best_walk_end (&walk);
    return n;
}
