/* SPDX-License-Identifier: Apache-2.0 */
/* Learn from an earlier experiment: searcher.warm_start. */
#include "launcher/sweep/find_experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/points.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"

enum { FILE_MAX = 64 << 20 };

/* A constant must have the same value in the earlier experiment, if it exists there. */
static bool same_constants (const struct experiment *e, const json_t *hparams)
{
    bool same = true;

    for (size_t i = 0; same && i < e->space->nhparams; i++) {
        char *then, *now;
        if (e->space->hparams[i].dim >= 0)
            continue;
        then = hparams_text (hparams, e->space->hparams[i].path);
        now = json_text (e->space->hparams[i].values);
        same = !then || (now && !strcmp (then, now));
        free (then);
        free (now);
    }
    return same;
}

/* Convert a text to JSON that json_value() accepts. */
static json_t *json_of_text (const struct param *d, const char *text)
{
    char *end;
    double v;

    if (d->type == PARAM_CATEGORICAL)
        return json_string (text);
    v = strtod (text, &end);
    return end > text && !*end && isfinite (v) ? json_real (v) : NULL;
}

/* The earlier value of 'h', or its default; NaN: it has neither. */
static double old_value (const struct experiment *e, const struct hparam *h, const json_t *old)
{
    char *text = hparams_text (old, h->path);
    json_t *v = text ? json_of_text (&e->space->params[h->dim], text) : NULL;
    double x = text ? NAN : h->preset;

    if (v && json_value (e, h, v, &x) < 0)
        x = NAN;
    json_decref (v);
    free (text);
    return x;
}

/* Returns -1 if the trial is not a point of this space. */
static int old_point (const struct experiment *e, const json_t *old, double *x)
{
    bool ok = same_constants (e, old);
    bool *active = xcalloc (e->space->nparams + 1, sizeof (*active));

    for (size_t i = 0; i < e->space->nhparams; i++)
        if (e->space->hparams[i].dim >= 0)
            x[e->space->hparams[i].dim] = old_value (e, &e->space->hparams[i], old);
    for (size_t i = 0; i < e->space->nparams; i++)
        active[i] = point_active (e, i, x);
    for (size_t i = 0; i < e->space->nparams; i++) {
        if (!active[i])
            x[i] = NAN;
        ok = ok && active[i] == !isnan (x[i]);
    }
    free (active);
    return ok ? 0 : -1;
}

static bool is_finished (const struct sweep *s, const struct sweep_trial *t)
{
    return t->state == TRIAL_PAUSED && t->length >= s->exp->search->config.max_length;
}

/* Find the index of each of our metrics in the earlier experiment; -1 after a problem. */
static int find_metrics (const struct experiment *e, const struct sweep *s, size_t *at,
                         struct problems *p)
{
    for (size_t i = 0; i < e->metric->n; i++) {
        for (at[i] = 0; at[i] < s->exp->metric->n; at[i]++)
            if (!strcmp (e->metric->names[i], s->exp->metric->names[at[i]]))
                break;
        if (at[i] == s->exp->metric->n) {
            problem_at (p, e->search->warm_start_origin,
                        "'searcher.warm_start': %s has no metric '%s'; its metric is '%s'", s->dir,
                        e->metric->names[i], s->exp->metric->name);
            return -1;
        }
    }
    return 0;
}

/* Returns the number of finished trials. */
static long take_trials (struct experiment *e, const struct sweep *s, const size_t *at)
{
    long finished = 0;

    for (long n = 0; n < s->ntrials; n++) {
        struct sweep_trial *t = &s->trials[n];
        double *x = e->search->known_numbers
                    + (size_t)e->search->config.nknown * (e->space->nparams + e->metric->n);
        if (!is_finished (s, t))
            continue;
        finished++;
        if (old_point (e, trial_hparams (s, t), x) < 0)
            continue;
        for (size_t i = 0; i < e->metric->n; i++)
            x[e->space->nparams + i] = trial_values (t) ? trial_values (t)[at[i]] : t->metric;
        e->search->config.nknown++;
    }
    return finished;
}

/* Print a note if a full training in the earlier experiment has another length than here. */
static void note_length (const struct experiment *e, const struct sweep *s, struct problems *p)
{
    if (s->exp->search->config.max_length != e->search->config.max_length)
        note_at (p, e->search->warm_start_origin,
                 "warning: 'searcher.warm_start': the trials of %s have the length %lld, those of "
                 "this experiment %lld: their values are used unchanged",
                 s->dir, (long long)s->exp->search->config.max_length,
                 (long long)e->search->config.max_length);
}

static int take_sweep (struct experiment *e, const struct sweep *s, struct problems *p)
{
    size_t at[OBJECTIVES_MAX];
    long finished;

    if (find_metrics (e, s, at, p) < 0)
        return -1;
    known_points_allocate (e, (size_t)s->ntrials);
    finished = take_trials (e, s, at);
    if (e->search->config.nknown > 0) {
        note_length (e, s, p);
        return 0;
    }
    problem_at (p, e->search->warm_start_origin,
                "'searcher.warm_start': none of the %ld finished trials of %s lies in this space "
                "(a hyperparameter that it did not have needs a default)",
                finished, s->dir);
    return -1;
}

/* Report only the first problem of its file. */
static struct sweep *open_other (const char *dir, struct slurmdl_error *err)
{
    struct slurmdl_error cannot = { "" };
    struct problems p;
    struct sweep *s;

    problems_open (&p);
    s = sweep_open (dir, &p, &cannot);
    problems_close (&p);
    if (!s && p.count > 0)
        errorf (err, "%.*s", (int)strcspn (p.text, "\n"), p.text);
    else if (!s)
        errorf (err, "%s", cannot.text);
    free (p.text);
    return s;
}

/* ---- results of another program ---- */

/* Read the values of a trial; -1 if it has none. */
static int result_values (const struct experiment *e, const json_t *trial, double *values)
{
    const json_t *v = json_object_get (trial, "value");

    if (json_is_array (v) && json_array_size (v) != e->metric->n)
        return -1;
    for (size_t i = 0; i < e->metric->n; i++) {
        const json_t *one = json_is_array (v) ? json_array_get (v, i) : v;
        if (!json_is_number (one) || (i > 0 && !json_is_array (v)))
            return -1;
        values[i] = json_number_value (one);
    }
    return 0;
}

/* Returns how many trials have values. */
static size_t take_results (struct experiment *e, const json_t *list)
{
    size_t n = 0;
    size_t i;
    json_t *trial;

    json_array_foreach (list, i, trial) {
        double *x = e->search->known_numbers
                    + (size_t)e->search->config.nknown * (e->space->nparams + e->metric->n);
        if (result_values (e, trial, x + e->space->nparams) < 0)
            continue;
        n++;
        e->search->config.nknown += old_point (e, json_object_get (trial, "params"), x) == 0;
    }
    return n;
}

static int take_file (struct experiment *e, const char *path, struct problems *p)
{
    struct slurmdl_error err = { "" };
    size_t size = 0;
    char *text = file_read_named (path, FILE_MAX, &size, &err);
    json_error_t why = { .text = "" };
    json_t *list = text ? json_loadb (text, size, 0, &why) : NULL;
    size_t n = 0;

    free (text);
    if (!text)
        problem_at (p, e->search->warm_start_origin, "'searcher.warm_start': %s", err.text);
    else if (!json_is_array (list))
        problem_at (p, e->search->warm_start_origin,
                    "'searcher.warm_start': %s: line %d: is not a list of {\"params\": {NAME: "
                    "VALUE, ...}, \"value\": NUMBER}%s%s",
                    path, why.line > 0 ? why.line : 1, *why.text ? ": " : "", why.text);
    else {
        known_points_allocate (e, json_array_size (list));
        n = take_results (e, list);
        if (e->search->config.nknown == 0)
            problem_at (p, e->search->warm_start_origin,
                        "'searcher.warm_start': none of the %zu trials with a value of %s lies in "
                        "this space (a hyperparameter that they do not have needs a default)",
                        n, path);
    }
    json_decref (list);
    return e->search->config.nknown > 0 ? 0 : -1;
}

static int take_folder (struct experiment *e, const char *dir, struct problems *p)
{
    struct slurmdl_error err = { "" };
    struct sweep *s = open_other (dir, &err);
    int rv = -1;

    if (s)
        rv = take_sweep (e, s, p);
    else
        problem_at (p, e->search->warm_start_origin, "'searcher.warm_start': %s", err.text);
    sweep_close (s);
    return rv;
}

int warm_start (struct experiment *e, struct problems *p)
{
    char path[PATH_MAX];
    struct stat st;

    p->file = e->file;
    if (!e->search->warm_start)
        return 0;
    path_from (path, e->dir, e->search->warm_start);
    return stat (path, &st) == 0 && S_ISREG (st.st_mode) ? take_file (e, path, p)
                                                         : take_folder (e, path, p);
}
