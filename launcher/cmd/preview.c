/* SPDX-License-Identifier: Apache-2.0 */
/* dl preview: estimate what a search will cost. */
#include "launcher/cmd/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/worker/worker.h"

enum { RUNGS = 64 };

/* Disk usage without the program's output, with blocks of 4 KiB.  Each trial has a
 * directory.  Each segment has a directory, hparams.json, log, metrics.h5 and a log
 * entry.  The rest exists once per experiment.
 */
enum { TRIAL_FILES = 1, SEGMENT_FILES = 5, OTHER_FILES = 20 };
static const double trial_bytes = 4096, segment_bytes = 7 * 4096 + 4096;

struct preview_plan {
    const struct experiment *exp;
    struct search_rung rungs[RUNGS];
    int n;
    double trials, length, segments;
    double points;  /* in the search space; INFINITY if continuous */
    double seconds; /* per unit of length, 0 if unknown */
    double bytes;   /* mean size of a file in checkpoint_policy.files, 0 if unknown */
};

/* ---- size of the search space ---- */

static double count_values (const struct param *d)
{
    double step = d->type == PARAM_INT && d->step == 0 ? 1 : d->step;

    if (d->type == PARAM_CATEGORICAL)
        return (double)d->choices;
    if (step > 0)
        return floor ((d->max - d->min) / step * (1 + 1e-12) + 1e-12) + 1;
    return d->min == d->max ? 1 : INFINITY;
}

static bool waits_for (const struct param *d, const char *name, double value)
{
    bool waits = false;

    if (!d->when || strcmp (d->when, name))
        return false;
    for (long i = 0; i < d->when_count; i++)
        waits = waits || d->when_values[i] == value;
    return waits;
}

static double count_point_tree (const struct experiment *e, const struct param *d);

/* Count the points of all parameters that are active if 'd' has the value. */
static double count_points_below (const struct experiment *e, const struct param *d, double value)
{
    double points = 1;

    for (size_t i = 0; i < e->space->nparams; i++)
        if (waits_for (&e->space->params[i], d->name, value))
            points *= count_point_tree (e, &e->space->params[i]);
    return points;
}

/* Whether 'value' was counted already, for a parameter before 'last' or for one of the
 * first 'at' values of 'last'.
 */
static bool value_is_counted (const struct experiment *e, const struct param *last, long at,
                              double value)
{
    for (const struct param *p = e->space->params; p < last; p++)
        if (waits_for (p, last->when, value))
            return true;
    for (long i = 0; i < at; i++)
        if (last->when_values[i] == value)
            return true;
    return false;
}

/* Count one point for each value of 'd', plus those of the parameters that its values
 * activate.
 */
static double count_point_tree (const struct experiment *e, const struct param *d)
{
    double points = count_values (d);

    for (size_t i = 0; i < e->space->nparams; i++) {
        const struct param *p = &e->space->params[i];
        if (!p->when || strcmp (p->when, d->name))
            continue;
        for (long k = 0; k < p->when_count; k++)
            if (!value_is_counted (e, p, k, p->when_values[k]))
                points += count_points_below (e, d, p->when_values[k]) - 1;
    }
    return points;
}

static double count_points (const struct experiment *e)
{
    double points = 1;

    for (size_t i = 0; i < e->space->nparams; i++)
        if (!e->space->params[i].when)
            points *= count_point_tree (e, &e->space->params[i]);
    return points;
}

/* ---- the plan ---- */

/* Whether trials may be stopped early, so that the numbers are upper limits. */
static bool is_most (const struct experiment *e)
{
    return experiment_needs (e) & HAS_REPORTS;
}

static void make_preview_plan (struct preview_plan *plan, const struct experiment *e,
                               double seconds, double bytes)
{
    *plan = (struct preview_plan){ .exp = e, .seconds = seconds, .bytes = bytes };
    plan->n = searcher_preview (&e->search->config, e->space->params, e->space->nparams,
                                plan->rungs, RUNGS);
    if (plan->n > RUNGS)
        plan->n = RUNGS;
    for (int i = 0; i < plan->n; i++) {
        double trials = (double)plan->rungs[i].trials;
        plan->trials += trials;
        plan->length += trials * (double)plan->rungs[i].length;
        plan->segments += trials * (i + 1);
    }
    plan->points = count_points (e);
}

static double full_length (const struct preview_plan *plan)
{
    return (double)plan->exp->search->config.max_length;
}

static double trial_hours (const struct preview_plan *plan)
{
    return plan->length * plan->seconds / 3600;
}

static double count_files (const struct preview_plan *plan)
{
    return TRIAL_FILES * plan->trials + SEGMENT_FILES * plan->segments + OTHER_FILES;
}

static double megabytes (const struct preview_plan *plan)
{
    return (trial_bytes * plan->trials + segment_bytes * plan->segments) / 1e6;
}

/* Assume that all workers are busy.  It still takes as long as one full training. */
static double wall_hours (const struct preview_plan *plan)
{
    const struct experiment *e = plan->exp;
    double at_once = fmin ((double)e->resources->workers, plan->trials);
    double longest = full_length (plan) * plan->seconds / 3600;

    if (e->search->config.max_concurrent > 0)
        at_once = fmin (at_once, (double)e->search->config.max_concurrent);
    return fmax (longest, trial_hours (plan) / fmax (at_once, 1));
}

/* ---- printing ---- */

static void print_preview_head (const struct preview_plan *plan)
{
    const struct experiment *e = plan->exp;

    printf ("%s: searcher %s, metric", e->name, e->search->searcher);
    for (size_t i = 0; i < e->metric->n; i++)
        printf ("%s %s (%s is better)", i ? "," : "", e->metric->names[i],
                e->search->config.larger[i] ? "larger" : "smaller");
    printf (", %lld worker%s\n", (long long)e->resources->workers,
            e->resources->workers == 1 ? "" : "s");
}

static void print_choices (const struct hparam *h)
{
    for (char *const *l = h->labels; *l; l++)
        printf ("%s%s", l == h->labels ? "" : ", ", *l);
}

/* "lr: 0.0001 to 0.1, logarithmic" */
static void print_range (const struct experiment *e, const struct hparam *h)
{
    const struct param *d = &e->space->params[h->dim];
    bool is_log = d->type == PARAM_LOG;

    printf ("  %s: ", h->path);
    if (d->type == PARAM_CATEGORICAL)
        print_choices (h);
    else
        printf ("%.9g to %.9g%s", is_log ? pow (d->base, d->min) : d->min,
                is_log ? pow (d->base, d->max) : d->max,
                is_log || d->base > 1 ? ", logarithmic" : "");
    if (d->step > 0)
        printf (", in steps of %.9g", d->step);
    puts (d->when ? ", not always active" : "");
}

static void print_ranges (const struct experiment *e)
{
    for (size_t i = 0; i < e->space->nhparams; i++)
        if (e->space->hparams[i].dim >= 0)
            print_range (e, &e->space->hparams[i]);
}

static void print_space (const struct preview_plan *plan)
{
    const struct experiment *e = plan->exp;

    printf ("space: %zu dimension%s", e->space->nparams, e->space->nparams == 1 ? "" : "s");
    if (isfinite (plan->points))
        printf (", %s%.15g point%s", e->search->config.constraint ? "at most " : "", plan->points,
                plan->points == 1 ? "" : "s");
    puts (e->search->config.constraint ? ", constrained" : "");
    print_ranges (e);
    if (e->search->config.npoints > 0)
        printf ("tried first: %ld given point%s\n", e->search->config.npoints,
                e->search->config.npoints == 1 ? "" : "s");
    if (e->search->config.nknown > 0)
        printf ("known before: %ld point%s of %s\n", e->search->config.nknown,
                e->search->config.nknown == 1 ? "" : "s", e->search->warm_start);
}

static void print_rungs (const struct preview_plan *plan)
{
    printf ("\n%12s %10s %14s\n", "length", "trials end", "sum");
    for (int i = 0; i < plan->n; i++)
        printf ("%12lld %10ld %14.0f\n", (long long)plan->rungs[i].length, plan->rungs[i].trials,
                (double)plan->rungs[i].trials * (double)plan->rungs[i].length);
    printf ("%12s %10.0f %14.0f\n\n", "all", plan->trials, plan->length);
}

static void print_time (const struct preview_plan *plan)
{
    const struct experiment *e = plan->exp;
    double hours = trial_hours (plan);
    double gpus = hours * (double)experiment_gpus (e);

    printf ("%.4g trial-hours, %.4g GPU-hours, about %.4g hours with %lld worker%s\n", hours, gpus,
            wall_hours (plan), (long long)e->resources->workers,
            e->resources->workers == 1 ? "" : "s");
    if (e->search->max_gpu_hours > 0 && fmax (gpus, hours) > e->search->max_gpu_hours)
        printf ("'searcher.max_gpu_hours' = %.9g will end it early\n", e->search->max_gpu_hours);
    if (e->search->max_hours > 0 && wall_hours (plan) > e->search->max_hours)
        printf ("'searcher.max_hours' = %.9g will end it early\n", e->search->max_hours);
}

/* If trials save one file per segment, return how many of them remain at the end. */
static double count_kept (const struct preview_plan *plan)
{
    const struct checkpoint_policy *p = plan->exp->checkpoints;

    return fmin (plan->segments, plan->trials * (double)(p->trial_best + p->trial_latest)
                                     + (double)p->experiment_best);
}

static void print_trainer_files (const struct preview_plan *plan)
{
    char **patterns = plan->exp->checkpoints->files;
    double n = 0;

    while (patterns && patterns[(size_t)n])
        n++;
    if (n > 0)
        printf ("checkpoint_policy.files: at most %.0f files, one of each "
                "pattern in each segment; at most %.0f stay at the end",
                n * plan->segments, n * count_kept (plan));
    if (n > 0 && plan->bytes > 0)
        printf (": %.3g MB, because the files saved so far have %.3g MB each\n",
                n * count_kept (plan) * plan->bytes / 1e6, plan->bytes / 1e6);
    else if (n > 0)
        puts ("; the MB above do not include them: 'dl try' prints what one attempt saves");
    else if (plan->segments > plan->trials)
        printf ("if each attempt saves a file, there are at most %.0f of them; "
                "checkpoint_policy.files removes superseded ones\n",
                plan->segments);
}

static void print_totals (const struct preview_plan *plan)
{
    printf ("%.0f trial%s, as much as %.1f full trainings, %s%.0f segment%s\n", plan->trials,
            plan->trials == 1 ? "" : "s", plan->length / full_length (plan),
            plan->n > 1 ? "at most " : "", plan->segments, plan->segments == 1 ? "" : "s");
    if (is_most (plan->exp))
        puts ("trials may be stopped early, which costs less");
    printf ("on the disk: about %.0f files and folders, %.3g MB, besides checkpoints and output\n",
            count_files (plan), megabytes (plan));
    print_trainer_files (plan);
    if (plan->seconds > 0)
        print_time (plan);
}

static void print_preview_plan (const struct experiment *e, double seconds, double bytes)
{
    struct preview_plan plan;

    make_preview_plan (&plan, e, seconds, bytes);
    print_preview_head (&plan);
    print_space (&plan);
    print_rungs (&plan);
    print_totals (&plan);
}

void print_preview (const struct experiment *e)
{
    print_preview_plan (e, 0, 0);
}

/* ---- JSON ---- */

static json_t *preview_rungs_json (const struct preview_plan *plan)
{
    json_t *list = json_array ();

    for (int i = 0; i < plan->n; i++)
        json_array_append_new (
            list, json_pack ("{s:I, s:I, s:f}", "length", (json_int_t)plan->rungs[i].length,
                             "trials", (json_int_t)plan->rungs[i].trials, "sum",
                             (double)plan->rungs[i].trials * (double)plan->rungs[i].length));
    return list;
}

static void set_times (json_t *v, const struct preview_plan *plan)
{
    double hours = trial_hours (plan);

    json_object_set_new (v, "trial_hours", json_real (hours));
    json_object_set_new (v, "gpu_hours", json_real (hours * (double)experiment_gpus (plan->exp)));
    json_object_set_new (v, "wall_hours", json_real (wall_hours (plan)));
}

static json_t *plan_json (const struct preview_plan *plan)
{
    const struct experiment *e = plan->exp;
    json_t *points = finite_to_json (plan->points);
    /* clang-format off */
    json_t *v = json_pack (
        "{s:s, s:s, s:I, s:o, s:b, s:I, s:I, s:I, s:o, s:I, s:f, s:f, s:I, s:b, s:I, s:f}",
        "name", e->name,
        "searcher", e->search->searcher,
        "dimensions", (json_int_t)e->space->nparams,
        "points", points,
        "constrained", e->search->config.constraint != NULL,
        "tried_first", (json_int_t)e->search->config.npoints,
        "known", (json_int_t)e->search->config.nknown,
        "workers", (json_int_t)e->resources->workers,
        "rungs", preview_rungs_json (plan),
        "trials", (json_int_t)plan->trials,
        "length", plan->length,
        "full_trainings", plan->length / full_length (plan),
        "max_segments", (json_int_t)plan->segments,
        "stops_early", is_most (e),
        "files", (json_int_t)count_files (plan),
        "megabytes", megabytes (plan));
    /* clang-format on */

    if (plan->seconds > 0)
        set_times (v, plan);
    if (plan->bytes > 0)
        json_object_set_new (v, "megabytes_of_a_file", json_real (plan->bytes / 1e6));
    return v;
}

static void print_preview_json (const struct preview_plan *plan)
{
    json_t *v = plan_json (plan);

    json_put (v, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (v);
}

static void preview (const struct experiment *e, bool json, double seconds, double bytes)
{
    struct preview_plan plan;

    if (json) {
        make_preview_plan (&plan, e, seconds, bytes);
        print_preview_json (&plan);
        return;
    }
    print_preview_plan (e, seconds, bytes);
    if (seconds == 0)
        puts ("to print hours, use --seconds=S, the time for one unit of length of one trial");
}

/* Return the mean time for one unit of length over all trials, or 0 if unknown. */
static double measured_seconds (const struct sweep *s)
{
    double seconds = 0;
    double length = 0;

    for (long i = 0; i < s->ntrials; i++) {
        seconds += s->trials[i].seconds;
        length += (double)s->trials[i].length;
    }
    return length > 0 ? seconds / length : 0;
}

/* Return the mean size of the saved files that match checkpoint_policy.files, or 0 if
 * unknown.
 */
static double measured_files (const struct sweep *s)
{
    struct trainer_files saved = { 0 };
    double bytes = 0;

    if (s->exp->checkpoints->files)
        trainer_files_list (s, s->exp->checkpoints->files, &saved);
    for (size_t i = 0; i < saved.n; i++)
        bytes += (double)saved.files[i].bytes / (double)saved.n;
    trainer_files_free (&saved);
    return bytes;
}

/* Preview an existing experiment: use the time and file sizes that its trials have
 * needed so far.
 */
static int preview_made (const struct command_line *line)
{
    const struct preview_options *opt = line->options;
    struct sweep *s;
    int rv = open_experiment (line, line->args[0], &s);
    double seconds = opt->seconds;

    if (rv)
        return rv;
    if (seconds == 0 && (seconds = measured_seconds (s)) > 0 && !opt->json)
        printf ("a unit of length took %.4g s so far\n", seconds);
    preview (s->exp, opt->json, seconds, measured_files (s));
    sweep_close (s);
    return EXIT_OK;
}

int cmd_preview (const struct command_line *line)
{
    const struct preview_options *opt = line->options;
    const struct edit edit = { .sets = opt->sets };
    struct experiment *e;
    struct stat file;
    int rv;

    if (stat (line->args[0], &file) == 0 && S_ISDIR (file.st_mode) && !opt->sets)
        return preview_made (line);
    if ((rv = read_experiment (line->args[0], &edit, &e)))
        return rv;
    command_warn (e);
    preview (e, opt->json, opt->seconds, 0);
    experiment_destroy (e);
    return EXIT_OK;
}
