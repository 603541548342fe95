/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a trial, made of all values of a metric: searcher.summary. */
#include "launcher/sweep/metric_summary.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

struct summing {
    const struct sweep *sweep;
    long attempt; /* the last that counts */
    struct {
        bool larger; /* wanted */
        double best;
        double last[MEAN_MAX]; /* a ring */
        long n;                /* finite values */
    } of[OBJECTIVES_MAX];
};

static bool wants_larger (const struct sweep *s, size_t metric)
{
    switch (s->exp->summary[metric]) {
    case SUMMARY_MIN:
        return false;
    case SUMMARY_MAX:
        return true;
    case SUMMARY_LAST:
    case SUMMARY_BEST:
    case SUMMARY_MEAN:
        break;
    }
    return metric ? s->exp->search.larger[metric] : !s->exp->search.smaller_is_better;
}

static int add_row (const struct slurmdl_row *row, void *arg)
{
    struct summing *sum = arg;
    int64_t most = sum->sweep->exp->mean_of_last;

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
        last = last && e->summary[i] == SUMMARY_LAST;
    }
    if (last)
        return;
    snprintf (dir, sizeof (dir), "%s/trials/%04ld", a->sweep->dir, a->trial);
    slurmdl_trial_read (dir, add_row, &sum, NULL);
    for (size_t i = 0; i < sweep_metrics (a->sweep); i++)
        if (sum.of[i].n > 0 && e->summary[i] != SUMMARY_LAST)
            values[i] = e->summary[i] == SUMMARY_MEAN
                            ? mean_of (sum.of[i].last, sum.of[i].n, e->mean_of_last)
                            : sum.of[i].best;
}

struct metric_finding {
    const char *name;
    double value;
    int64_t step;
};

static int compare_row (const struct slurmdl_row *row, void *arg)
{
    struct metric_finding *f = arg;

    if (!row->superseded && row->value == f->value && !strcmp (row->name, f->name) && f->step < 0)
        f->step = row->step;
    return 0;
}

static int64_t step_of (const struct sweep *s, long trial, double value)
{
    struct metric_finding f = { sweep_metric (s, 0), value, -1 };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", s->dir, trial);
    slurmdl_trial_read (dir, compare_row, &f, NULL);
    return f.step;
}

int best_checkpoint (const struct sweep *s, long trial, char *path, size_t size)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    bool at_step = s->exp->summary[0] == SUMMARY_BEST || s->exp->summary[0] == SUMMARY_MIN
                   || s->exp->summary[0] == SUMMARY_MAX;
    struct sweep_result r = trial_result (s, trial, 0);
    int64_t step = at_step ? step_of (s, trial, r.value) : r.length;

    for (long k = t->over + 1; k >= 1 && step >= 0; k--) {
        snprintf (path, size, "%s/trials/%04ld/a.%ld/ckpt/%08lld.h5", s->dir, trial, k,
                  (long long)step);
        if (r.length > 0 && access (path, F_OK) == 0)
            return 0;
    }
    return -1;
}
