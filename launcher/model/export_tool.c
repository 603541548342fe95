/* SPDX-License-Identifier: Apache-2.0 */
/* Export an experiment to other tools through the Python package. */
#include "launcher/model/model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/experiment_json.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/python.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

/* ---- the stream ---- */

/* What the reader knows about a trial. */
struct told_trial {
    enum sweep_trial_state state;
    int64_t length;
    long over;
    int fails;
    bool final;
    long n; /* with repeats, the number of results of its point */
};

struct export_stream {
    FILE *f;
    const struct sweep *sweep;
    struct told_trial *trials;
    long ntrials;
    struct columns columns;
    char **names; /* of the metrics that the reader knows, by their numbers */
    size_t nnames;
};

/* The stream has one JSON value per line:
 *
 *   {"experiment": ...}         first, from experiment_json()
 *   {"values": ..., ...}        a trial, before its rows and when it has changed
 *   {"metric": I, "name": ...}  before the first row of metric I
 *   [N, I, ATTEMPT, STEP, TIME, VALUE]  a row
 *   {"flush": true}             everything known so far has been sent
 *   {"end": true}               last
 *
 * A trial is the object of trial_json() with the values of its metrics and with
 * "final", which is true if the trial will not change unless the experiment is
 * continued.  With repeats, it also has the deviations, the trial's own values, and
 * whether its point is compared.
 *
 * Numbers that are not finite are NaN, Infinity and -Infinity.
 */

/* ---- lines ---- */

/* Takes ownership of 'o'. */
static int put_stream_line (struct export_stream *x, json_t *o)
{
    int rv = o ? json_dumpf (o, x->f, JSON_COMPACT) : -1;

    json_decref (o);
    fputc ('\n', x->f);
    return rv;
}

/* JSON has no such numbers, but Python's parser accepts these words. */
static const char *stream_number (char buf[32], double v)
{
    if (isnan (v))
        return "NaN";
    if (isinf (v))
        return v > 0 ? "Infinity" : "-Infinity";
    snprintf (buf, 32, "%.17g", v);
    return buf;
}

/* ---- the experiment ---- */

/* Write the first line. */
static int stream_begin (struct export_stream *x, FILE *f, const struct sweep *s)
{
    *x = (struct export_stream){ .f = f, .sweep = s };
    columns_create (&x->columns, s);
    return put_stream_line (x, json_pack ("{s:o}", "experiment", experiment_json (s)));
}

/* ---- a trial ---- */

/* Whether the trial will not change unless the experiment is continued. */
static bool trial_is_final (const struct sweep *s, const struct sweep_trial *t)
{
    return sweep_has_ended (s) || t->state == TRIAL_FAILED || t->state == TRIAL_REJECTED;
}

static void put_numbers (struct export_stream *x, const char *name, const double *v, size_t n)
{
    char buf[32];

    fprintf (x->f, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++)
        fprintf (x->f, "%s%s", i ? "," : "", stream_number (buf, v[i]));
    fputs ("],", x->f);
}

/* With repeats, write the values of the point and also the trial's own. */
static void put_trial_values (struct export_stream *x, long n)
{
    const struct sweep *s = x->sweep;
    const struct sweep_trial *t = sweep_trial (s, n);
    size_t k = t->length ? sweep_metrics (s) : 0;
    const double *own = trial_values (t) ?: &t->metric;
    double v[OBJECTIVES_MAX], deviation[OBJECTIVES_MAX];
    struct sweep_result r = { .n = 0 };

    if (s->exp->search->config.repeats <= 1) {
        put_numbers (x, "values", own, k);
        return;
    }
    for (size_t i = k; i > 0; i--) {
        r = point_result (s, trial_point (s, n), i - 1);
        v[i - 1] = r.value;
        deviation[i - 1] = r.deviation;
    }
    put_numbers (x, "values", v, k);
    put_numbers (x, "deviations", deviation, k);
    put_numbers (x, "own", own, k);
    fprintf (x->f, "\"compared\":%s,", r.compared ? "true" : "false");
}

/* Leave out inactive hyperparameters, because null may be the value of an active one.
 */
static json_t *active_hparams (const struct sweep *s, const struct columns *c, long trial)
{
    json_t *hparams = json_object ();

    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].hparam)
            json_object_set_new (hparams, c->list[i].name,
                                 trial_hparam (s, sweep_trial (s, trial),
                                               &s->exp->space->hparams[c->list[i].index]));
    return hparams;
}

/* Write the trial as JSON, preceded by the numbers that Jansson cannot write. */
static int put_trial (struct export_stream *x, long n)
{
    const struct sweep *s = x->sweep;
    json_t *o = trial_json (s, &x->columns, n);
    int rv;

    json_object_set_new (o, "final", json_boolean (trial_is_final (s, sweep_trial (s, n))));
    json_object_set_new (o, "hyperparameters", active_hparams (s, &x->columns, n));
    fputc ('{', x->f);
    put_trial_values (x, n);
    rv = json_dumpf (o, x->f, JSON_COMPACT | JSON_EMBED);
    json_decref (o);
    fputs ("}\n", x->f);
    return rv;
}

/* ---- rows of a trial ---- */

struct row_telling {
    struct export_stream *x;
    long trial;
    long last; /* attempt to read; later ones do not count */
    size_t name;
};

enum { READER_GONE = 1 };

/* Start the search after the last metric found, because programs log their metrics in
 * turn.
 */
static size_t find_metric_name (const struct export_stream *x, const char *name, size_t last)
{
    for (size_t i = 1; i <= x->nnames; i++)
        if (!strcmp (x->names[(last + i) % x->nnames], name))
            return (last + i) % x->nnames;
    return x->nnames;
}

static int add_metric_name (struct export_stream *x, const char *name)
{
    XGROW (x->names, x->nnames);
    x->names[x->nnames++] = xstrdup (name);
    return put_stream_line (
        x, json_pack ("{s:I, s:o}", "metric", (json_int_t)x->nnames - 1, "name", text_json (name)));
}

static int put_stream_row (const struct slurmdl_row *row, void *arg)
{
    struct row_telling *g = arg;
    char time[32], value[32];

    if (row->superseded || row->attempt > g->last)
        return 0;
    g->name = find_metric_name (g->x, row->name, g->name);
    if (g->name == g->x->nnames && add_metric_name (g->x, row->name) < 0)
        return READER_GONE;
    fprintf (g->x->f, "[%ld,%zu,%ld,%" PRId64 ",%s,%s]\n", g->trial, g->name, row->attempt,
             row->step, stream_number (time, row->time), stream_number (value, row->value));
    return ferror (g->x->f) ? READER_GONE : 0;
}

/* Returns 1 if some rows could not be read, or -1 if the reader is gone. */
static int put_trial_rows (struct export_stream *x, long n)
{
    struct row_telling g = { .x = x, .trial = n, .last = sweep_trial (x->sweep, n)->over + 1 };
    char dir[PATH_MAX];
    int rv;

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", x->sweep->dir, n);
    rv = slurmdl_trial_read (dir, put_stream_row, &g, NULL);
    return rv > 0 ? -1 : rv < 0;
}

/* ---- changes ---- */

static struct told_trial told_now (const struct sweep *s, long n)
{
    const struct sweep_trial *t = sweep_trial (s, n);

    return (struct told_trial){
        .state = t->state,
        .length = t->length,
        .over = t->over,
        .fails = t->tries.failed,
        .final = trial_is_final (s, t),
        .n = s->exp->search->config.repeats > 1 ? point_result (s, trial_point (s, n), 0).n : 0,
    };
}

static bool same_as_told (const struct told_trial *a, const struct told_trial *b)
{
    return a->state == b->state && a->length == b->length && a->over == b->over
           && a->fails == b->fails && a->final == b->final && a->n == b->n;
}

static int put_if_new (struct export_stream *x, long n)
{
    struct told_trial now = told_now (x->sweep, n);
    struct told_trial *told = &x->trials[n - 1];
    int rv;

    if (same_as_told (&now, told) && (now.state != TRIAL_OPEN || now.final))
        return 0;
    if (put_trial (x, n) < 0 || (rv = put_trial_rows (x, n)) < 0)
        return -1;
    *told = now;
    if (rv > 0)
        told->length = -1;
    return 0;
}

/* Write the trials that are open or have changed since the last call, with all rows
 * that no later attempt has superseded, then "flush".  A trial whose metrics cannot be
 * read completely is written again the next time.
 *
 * Returns -1 if the reader is gone.
 */
static int stream_changes (struct export_stream *x)
{
    const struct told_trial none = { .length = -1 };

    while (x->ntrials < x->sweep->ntrials) {
        XGROW (x->trials, (size_t)x->ntrials);
        x->trials[x->ntrials++] = none;
    }
    for (long n = 1; n <= x->ntrials; n++)
        if (put_if_new (x, n) < 0)
            return -1;
    fputs ("{\"flush\":true}\n", x->f);
    return fflush (x->f) == 0 ? 0 : -1;
}

/* Write the last line. */
static void stream_end (struct export_stream *x)
{
    fputs ("{\"end\":true}\n", x->f);
}

static void stream_free (struct export_stream *x)
{
    for (size_t i = 0; i < x->nnames; i++)
        free (x->names[i]);
    free (x->names);
    free (x->trials);
    columns_destroy (&x->columns);
    *x = (struct export_stream){ 0 };
}

/* ---- the tools ---- */

static const char *const tool_formats[] = { "tensorboard", "wandb",   "mlflow",
                                            "optuna",      "parquet", NULL };

bool tool_has_format (const char *name)
{
    return strings_contain (tool_formats, name);
}

enum { ID_MAX = 4096 };

/* Reserve the experiment's name in the directory, so that another experiment with the
 * same name is not mixed with this one.
 */
static int claim_name (const struct sweep *s, const char *folder, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char *there;
    int rv = -1;

    if (snprintf (path, sizeof (path), "%s/%s.experiment", folder, sweep_folder_name (s))
        >= (int)sizeof (path)) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: %s", folder, strerror (errno));
    }
    if (publish_if_absent (path, s->id, strlen (s->id), err) < 0
        || !(there = file_read (path, ID_MAX, NULL, err)))
        return -1;
    if (!strcmp (there, s->id))
        rv = 0;
    else {
        errno = EINVAL;
        errorf (err,
                "%s has another experiment with the name %.60s: name another folder with --output",
                folder, sweep_folder_name (s));
    }
    free (there);
    return rv;
}

static int open_export_folder (const struct sweep *s, const char *given, char folder[PATH_MAX],
                               struct slurmdl_error *err)
{
    struct stat st;

    if (own_folder_make (given, 0755, err) < 0)
        return -1;
    if (!realpath (given, folder) || stat (folder, &st) < 0)
        return errorf (err, "%s: %s", given, strerror (errno));
    /* the tools' libraries follow symbolic links, so nobody else may be able to create
     * any
     */
    if (!user_writes_alone (&st)) {
        errno = EPERM;
        return errorf (err,
                       "%s: others may write there: chmod go-w, or name "
                       "another folder with --output",
                       given);
    }
    return claim_name (s, folder, err);
}

/* Remove the directory after a failure if nothing was written to it. */
static void remove_empty (const struct sweep *s, const char *folder)
{
    char claim[NAME_MAX + 1], path[PATH_MAX];
    struct dirent *e;
    DIR *d = opendir (folder);
    int others = 0;

    snprintf (claim, sizeof (claim), "%s.experiment", sweep_folder_name (s));
    while (d && (e = readdir (d)))
        others += strcmp (e->d_name, ".") && strcmp (e->d_name, "..") && strcmp (e->d_name, claim);
    if (d)
        closedir (d);
    if (!d || others > 0
        || snprintf (path, sizeof (path), "%s/%s", folder, claim) >= (int)sizeof (path))
        return;
    unlink (path);
    rmdir (folder);
}

struct tool {
    pid_t pid;
    FILE *to;
};

static int start_tool (struct tool *t, const char *format, char *folder, struct slurmdl_error *err)
{
    char *args[] = { (char *)format, folder, NULL };
    int fds[2];

    if (pipe2 (fds, O_CLOEXEC) < 0)
        return errorf (err, "pipe: %s", strerror (errno));
    t->pid = python_start ("slurmdl.export", args, fds[0], err);
    close (fds[0]);
    if (t->pid >= 0 && (t->to = fdopen (fds[1], "w")))
        return 0;
    if (t->pid >= 0)
        errorf (err, "pipe: %s", strerror (errno));
    close (fds[1]);
    return -1;
}

/* Returns the tool's exit status, after printing an error if the tool printed none. */
static int finish_tool (struct tool *t)
{
    if (t->to)
        fclose (t->to);
    return python_wait (t->pid, "dl export --format");
}

/* Reading a long experiment takes time, so spend at most a fifth of the time on it. */
static int follow_changes (struct sweep *s, struct export_stream *x, double every, bool *ended)
{
    struct slurmdl_error err = { "" };
    double start = monotonic ();
    int rv = stream_changes (x);

    *ended = every <= 0 || sweep_has_ended (s);
    if (rv < 0 || *ended)
        return rv;
    every = fmax (every, 4 * (monotonic () - start));
    poll (NULL, 0, (int)(fmin (every, 86400) * 1000));
    if (sweep_sync (s, &err) >= 0)
        return 0;
    fail (&err);
    return -1;
}

static int feed (struct tool *t, struct sweep *s, double every)
{
    struct export_stream x;
    bool ended = false;
    int rv = stream_begin (&x, t->to, s);

    while (rv == 0 && !ended)
        rv = follow_changes (s, &x, every, &ended);
    if (rv == 0)
        stream_end (&x);
    stream_free (&x);
    return rv;
}

int tool_export (struct sweep *s, const char *format, const char *output, double every)
{
    struct slurmdl_error err = { "" };
    struct tool t = { 0 };
    char given[PATH_MAX], folder[PATH_MAX];
    bool is_new;
    int rv, fed;

    snprintf (given, sizeof (given), "%s%s%s", output ? output : sweep_folder_name (s),
              output ? "" : ".", output ? "" : format);
    is_new = access (given, F_OK) < 0;
    if (open_export_folder (s, given, folder, &err) < 0
        || start_tool (&t, format, folder, &err) < 0)
        return fail (&err);
    signal (SIGPIPE, SIG_IGN);
    fed = feed (&t, s, every);
    rv = finish_tool (&t);
    if (rv == EXIT_OK && fed < 0) {
        complain ("%s: could not be read completely", s->dir);
        rv = EXIT_IO;
    }
    if (rv == EXIT_OK)
        puts (given);
    else if (is_new)
        remove_empty (s, folder);
    return rv;
}
