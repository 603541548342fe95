/* SPDX-License-Identifier: Apache-2.0 */
/* dl show EXPERIMENT TRIAL: all that is known about one trial. */
#include "launcher/cmd/show_trial.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/show_output.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/experiment_json.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/say.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* ---- the rows of its metrics ---- */

struct metric_summary {
    char *name;
    long rows;
    int64_t first_step, last_step, min_step, max_step;
    double last, min, max;
    json_t *values; /* with --values */
};

struct trial_rows {
    const struct sweep *sweep;
    const struct show_options *opt;
    long trial;
    long last;    /* attempt; of later ones nothing counts */
    long attempt; /* whose heading was printed last */
    struct metric_summary *list;
    size_t n;
};

/* The headings of all attempts up to this one. */
static void print_headings (struct trial_rows *t, long attempt)
{
    char dir[PATH_MAX];

    while (t->attempt < attempt) {
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", t->sweep->dir, t->trial,
                  ++t->attempt);
        if (access (dir, F_OK) == 0)
            printf ("  attempt %ld: %s\n", t->attempt, dir);
    }
}

static struct metric_summary *summary_of (struct trial_rows *t, const char *name)
{
    struct metric_summary *m;

    for (size_t i = 0; i < t->n; i++)
        if (!strcmp (t->list[i].name, name))
            return &t->list[i];
    if (!(m = array_grow (t->list, t->n, sizeof (*m))))
        return NULL;
    t->list = m;
    m += t->n;
    *m = (struct metric_summary){ .name = strdup (name), .min = NAN, .max = NAN };
    if (!m->name)
        return NULL;
    t->n++;
    return m;
}

static void add_row (struct metric_summary *m, const struct slurmdl_row *row)
{
    if (m->rows++ == 0)
        m->first_step = row->step;
    m->last_step = row->step;
    m->last = row->value;
    if (isfinite (row->value) && !(row->value >= m->min)) {
        m->min = row->value;
        m->min_step = row->step;
    }
    if (isfinite (row->value) && !(row->value <= m->max)) {
        m->max = row->value;
        m->max_step = row->step;
    }
}

static void keep_value (struct metric_summary *m, const struct slurmdl_row *row)
{
    if (!m->values)
        m->values = json_array ();
    json_array_append_new (m->values, isfinite (row->value)
                                          ? json_pack ("[I, f]", (json_int_t)row->step, row->value)
                                          : json_pack ("[I, n]", (json_int_t)row->step));
}

static int take_row (const struct slurmdl_row *row, void *arg)
{
    struct trial_rows *t = arg;
    struct metric_summary *m;

    if (row->superseded || row->attempt > t->last)
        return 0;
    if (!(m = summary_of (t, row->name)))
        return -1;
    add_row (m, row);
    if (t->opt->values && t->opt->json)
        keep_value (m, row);
    else if (t->opt->values) {
        print_headings (t, row->attempt);
        printf ("    %-32s %8lld  %.9g\n", row->name, (long long)row->step, row->value);
    }
    return 0;
}

/* Results were accepted of attempts whose folders are not there. */
static int say_missing (const struct trial_rows *t)
{
    char dir[PATH_MAX];
    int rv = EXIT_OK;

    for (long k = 1; k <= t->last; k++)
        if (attempt_is_missing (t->sweep, t->trial, k, dir, sizeof (dir))) {
            complain ("%s: missing, although the result of this attempt was "
                      "accepted",
                      dir);
            rv = EXIT_DAMAGED;
        }
    return rv;
}

static int read_rows (struct trial_rows *t)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", t->sweep->dir, t->trial);
    if (slurmdl_trial_read (dir, take_row, t, &err) == 0)
        return say_missing (t);
    complain ("%s", err.text);
    return error_status (errno);
}

static void rows_free (struct trial_rows *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free (t->list[i].name);
        json_decref (t->list[i].values);
    }
    free (t->list);
}

/* ---- text ---- */

static void print_summaries (const struct trial_rows *t)
{
    static const struct table_column heads[] = {
        { "  metric", false }, { "values", true }, { "steps", true },
        { "last", true },      { "min", true },    { "at", true },
        { "max", true },       { "at", true },     { NULL, false },
    };
    struct libscols_table *tb = table_create ("metrics", heads, false);

    for (size_t i = 0; tb && i < t->n; i++) {
        const struct metric_summary *m = &t->list[i];
        struct libscols_line *line = scols_table_new_line (tb, NULL);
        table_set (line, 0, "  %s", m->name);
        table_set (line, 1, "%ld", m->rows);
        table_set (line, 2, "%lld-%lld", (long long)m->first_step, (long long)m->last_step);
        table_set (line, 3, "%.6g", m->last);
        table_set (line, 4, "%.6g", m->min);
        table_set (line, 5, "%lld", (long long)m->min_step);
        table_set (line, 6, "%.6g", m->max);
        table_set (line, 7, "%lld", (long long)m->max_step);
    }
    if (tb && t->n > 0)
        scols_print_table (tb);
    scols_unref_table (tb);
}

/* "now at 7 of 27: loss 0.97, 3.0s ago, 2.1 a second" */
static void print_progress (const struct sweep *s, long n)
{
    const struct sweep_trial *t = sweep_trial (s, n);
    struct metric_progress p;
    char ago[32];

    if (t->state != TRIAL_OPEN || sweep_has_ended (s) || trial_progress (s, n, &p) < 0)
        return;
    duration_text (ago, sizeof (ago), progress_age (&p));
    printf ("  now at %lld of %lld: %s %.6g, %s ago", (long long)p.step, (long long)t->target,
            sweep_metric (s, 0), p.value, ago);
    if (isfinite (progress_rate (&p)))
        printf (", %.3g a second", progress_rate (&p));
    putchar ('\n');
}

static void print_point (const struct sweep *s, long n)
{
    struct sweep_result r = point_result (s, trial_point (s, n), 0);

    printf ("  point %ld, repeat %ld", trial_point (s, n), trial_repeat (s, n));
    if (r.n > 0)
        printf (": mean %.6g of %ld", r.value, r.n);
    if (r.n > 1)
        printf (", deviation %.2g", r.deviation);
    putchar ('\n');
}

static void print_head (const struct sweep *s, long n)
{
    struct sweep_trial *t = sweep_trial (s, n);
    struct sweep_result r = trial_result (s, n, 0);
    char *text = json_string_of (trial_hparams (s, t), JSON_SORT_KEYS);
    char path[PATH_MAX];
    char took[32];

    printf ("trial %ld: %s", n, trial_state_name (s, t));
    if (t->length > 0)
        printf (", length %lld, %s %.6g", (long long)t->length, s->exp->metric, t->metric);
    if (t->length > r.length)
        printf (" (compared at %lld: %.6g)", (long long)r.length, r.value);
    puts (t->length > 0 ? "" : ", no result");
    print_progress (s, n);
    printf ("  hyperparameters: %s\n", text ? text : "");
    printf ("  seed: %u\n", (unsigned)searcher_trial_seed (s->exp->search.seed, n));
    if (s->exp->search.repeats > 1)
        print_point (s, n);
    duration_text (took, sizeof (took), t->seconds);
    printf ("  time: %s in %ld attempt%s that ended\n", took, t->over, t->over == 1 ? "" : "s");
    if (t->from)
        printf ("  starts from the checkpoint of trial %ld at length %lld\n", t->from,
                (long long)t->from_length);
    for (size_t i = 1; i < sweep_metrics (s) && trial_values (t); i++)
        printf ("  %s: %.6g\n", sweep_metric (s, i), trial_values (t)[i]);
    if (best_checkpoint (s, n, path, sizeof (path)) == 0)
        printf ("  checkpoint of the best value: %s\n", path);
    if (t->why)
        printf ("  last failure: %s\n", t->why);
    print_conditions (trial_conditions (s, n));
    free (text);
}

/* ---- JSON ---- */

static json_t *summary_json (const struct metric_summary *m)
{
    json_t *o = json_pack ("{s:I, s:I, s:I, s:o}", "rows", (json_int_t)m->rows, "first_step",
                           (json_int_t)m->first_step, "last_step", (json_int_t)m->last_step, "last",
                           finite_to_json (m->last));

    if (isfinite (m->min))
        json_object_update_new (o, json_pack ("{s:f, s:I, s:f, s:I}", "min", m->min, "min_step",
                                              (json_int_t)m->min_step, "max", m->max, "max_step",
                                              (json_int_t)m->max_step));
    if (m->values)
        json_object_set (o, "values", m->values);
    return o;
}

static int print_trial_json (struct trial_rows *t)
{
    struct columns c;
    json_t *metrics = json_object ();
    char path[PATH_MAX];
    json_t *o;

    if (columns_create (&c, t->sweep) < 0) {
        json_decref (metrics);
        return EXIT_IO;
    }
    o = trial_json (t->sweep, &c, t->trial);
    columns_destroy (&c);
    for (size_t i = 0; i < t->n; i++)
        json_object_set_new (metrics, t->list[i].name, summary_json (&t->list[i]));
    json_object_set_new (o, "metrics", metrics);
    if (best_checkpoint (t->sweep, t->trial, path, sizeof (path)) == 0)
        json_object_set_new (o, "checkpoint", json_string (path));
    json_object_set_new (o, "seed",
                         json_integer (searcher_trial_seed (t->sweep->exp->search.seed, t->trial)));
    print_json (o);
    return EXIT_OK;
}

int show_trial (const struct sweep *s, long n, const struct command_line *line)
{
    const struct show_options *opt = line->options;
    struct trial_rows t = {
        .sweep = s, .opt = opt, .trial = n, .last = sweep_trial (s, n)->over + 1
    };
    int rv;

    if (!opt->json)
        print_head (s, n);
    rv = read_rows (&t);
    if (opt->json)
        rv = print_trial_json (&t) ?: rv;
    else {
        print_headings (&t, t.last);
        if (!opt->values)
            print_summaries (&t);
    }
    rows_free (&t);
    return rv;
}
