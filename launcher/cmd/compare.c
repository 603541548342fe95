/* SPDX-License-Identifier: Apache-2.0 */
/* dl compare: compare experiments. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/keys.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/report/report.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/experiment_json.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/terminal.h"

/* ---- differences ---- */

static char *list_text (char *const *list)
{
    char *text;
    size_t size;
    FILE *f;

    if (!list || !*list)
        return NULL;
    f = xopen_memstream (&text, &size);
    for (size_t i = 0; list[i]; i++)
        fprintf (f, "%s%s", i ? " " : "", list[i]);
    xclose_memstream (f);
    return text;
}

static char *bools_text (const struct bools *b)
{
    char text[8 * OBJECTIVES_MAX + 1] = "", *end = text;

    for (int i = 0; i < b->n && i < OBJECTIVES_MAX; i++)
        end = stpcpy (stpcpy (end, i ? " " : ""), b->value[i] ? "true" : "false");
    return xstrdup (text);
}

/* Return NULL if the key has no value, or one that cannot be shown as a single text. */
static char *compared_key_text (const struct experiment *e, const struct key *k)
{
    const void *at = key_at (e, k);

    switch (k->type) {
    case KEY_STRING:
        return xstrdup (*(char *const *)at);
    case KEY_TEXT:
        return e->entrypoint ? xstrdup (e->entrypoint) : list_text (e->argv);
    case KEY_INT:
        return xasprintf ("%" PRId64, *(const int64_t *)at);
    case KEY_FLOAT:
        return isnan (*(const double *)at) || *(const double *)at == 0
                   ? NULL
                   : xasprintf ("%.9g", *(const double *)at);
    case KEY_BOOL:
        return xstrdup (*(const bool *)at ? "true" : "false");
    case KEY_BOOLS:
        return bools_text (at);
    case KEY_LIST:
        return list_text (*(char **const *)at);
    case KEY_GROUPS:
        break;
    }
    return NULL;
}

static char *number_range (const struct param *p)
{
    if (p->type == PARAM_LOG)
        return xasprintf ("log %.4g to %.4g", pow (p->base, p->min), pow (p->base, p->max));
    return xasprintf ("%s%.6g to %.6g", p->type == PARAM_INT ? "int " : "", p->min, p->max);
}

static char *compared_hparam_text (const struct experiment *e, const char *path)
{
    const struct hparam *h = hparam_find (e, path);

    if (!h)
        return NULL;
    if (h->dim < 0 || e->space->params[h->dim].type == PARAM_CATEGORICAL)
        return json_text (h->values);
    return number_range (&e->space->params[h->dim]);
}

static bool all_equal (char *const *values, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!values[i] != !values[0] || (values[i] && strcmp (values[i], values[0])))
            return false;
    return true;
}

struct collection {
    struct sweep *const *list;
    size_t n;
    char **values;
    void (*f) (const char *key, char *const *values, void *arg);
    void *arg;
};

/* Pass the values of a key to c->f if they differ, and free them. */
static void report_if_different (const struct collection *c, const char *key)
{
    if (!all_equal (c->values, c->n))
        c->f (key, c->values, c->arg);
    for (size_t i = 0; i < c->n; i++)
        free (c->values[i]);
}

/* Whether one of the first 'k' experiments has the hyperparameter. */
static bool hparam_was_compared (const struct collection *c, size_t k, const char *path)
{
    for (size_t i = 0; i < k; i++)
        if (hparam_find (c->list[i]->exp, path))
            return true;
    return false;
}

static void compare_hparams (const struct collection *c, size_t k)
{
    const struct experiment *e = c->list[k]->exp;

    for (size_t h = 0; h < e->space->nhparams; h++) {
        const char *path = e->space->hparams[h].path;
        if (hparam_was_compared (c, k, path))
            continue;
        for (size_t i = 0; i < c->n; i++)
            c->values[i] = compared_hparam_text (c->list[i]->exp, path);
        report_if_different (c, path);
    }
}

/* Call 'f' for each key and hyperparameter whose value is not the same in all
 * experiments.  'values' has one text for each experiment, NULL if it has no value.
 */
static void differences_each (struct sweep *const *list, size_t n,
                              void (*f) (const char *key, char *const *values, void *arg),
                              void *arg)
{
    struct collection c = { list, n, xcalloc (n + 1, sizeof (char *)), f, arg };

    for (const struct key *k = experiment_keys; k->path; k++) {
        if (!strcmp (k->path, "name"))
            continue;
        for (size_t i = 0; i < n; i++)
            c.values[i] = compared_key_text (list[i]->exp, k);
        report_if_different (&c, k->path);
    }
    for (size_t k = 0; k < n; k++)
        compare_hparams (&c, k);
    free (c.values);
}

struct comparison {
    struct sweep **list;
    size_t n;
    struct report report;
    double budget; /* trial time in s that every experiment has spent */
    double from;   /* trial time in s after which every experiment has a result */
};

/* The outcome of one experiment. */
struct compare_outcome {
    struct report_cost cost;
    long best, failed; /* index of the best trial in the report, or -1; number of failed trials */
    double at_budget;  /* best value after the budget was spent */
    double area;       /* mean of the best so far from 'from' to the budget */
};

/* ---- best value so far over trial time ---- */

struct compare_walk {
    const struct comparison *c;
    size_t sweep;
    size_t result; /* index of the next result */
    double time;   /* trial time so far, in s */
    struct best_walk best;
};

/* Advance to the next result that is compared.  The report lists results in the order
 * of the attempts that produced them.
 */
static bool next_result (struct compare_walk *w, size_t *attempt)
{
    const struct report *r = &w->c->report;
    const struct report_result *of;

    for (; *attempt < r->nattempts; (*attempt)++) {
        const struct report_attempt *a = &r->attempts[*attempt];
        if (a->how == ATTEMPT_RESULT)
            w->result++;
        if (r->trials[a->trial].sweep != w->sweep)
            continue;
        w->time += a->end - a->begin;
        if (a->how != ATTEMPT_RESULT)
            continue;
        of = &r->results[w->result - 1];
        if (!isfinite (of->value)
            || !best_walk_take (&w->best, r->trials[of->trial].number, of->length))
            continue;
        (*attempt)++;
        return true;
    }
    return false;
}

static struct compare_walk walk_begin (const struct comparison *c, size_t sweep)
{
    struct compare_walk w = { .c = c, .sweep = sweep };

    best_walk_begin (&w.best, c->report.sweeps[sweep].s);
    return w;
}

static double first_result (const struct comparison *c, size_t sweep)
{
    struct compare_walk w = walk_begin (c, sweep);
    size_t attempt = 0;
    bool found = next_result (&w, &attempt);

    best_walk_end (&w.best);
    return found ? w.time : INFINITY;
}

static void measure_outcome (const struct comparison *c, size_t sweep, struct compare_outcome *o)
{
    struct compare_walk w = walk_begin (c, sweep);
    double before = NAN, time = c->from, sum = 0;
    size_t attempt = 0;

    o->at_budget = NAN;
    while (next_result (&w, &attempt) && w.time <= c->budget) {
        if (w.time > time) {
            sum += before * (w.time - time);
            time = w.time;
        }
        o->at_budget = before = w.best.best;
    }
    sum += before * (c->budget - time);
    o->area = c->budget > c->from ? sum / (c->budget - c->from) : NAN;
    best_walk_end (&w.best);
}

static struct compare_outcome outcome_of_sweep (const struct comparison *c, size_t k)
{
    const struct report *r = &c->report;
    const struct report_sweep *of = &r->sweeps[k];
    struct compare_outcome o = { .cost = report_cost_of (r, k),
                                 .best =
                                     sweep_best (of->s) ? of->first + sweep_best (of->s) - 1 : -1 };

    for (long i = of->first; i < of->first + of->s->ntrials; i++)
        o.failed += report_phase (r, i) == PHASE_FAILED;
    measure_outcome (c, k, &o);
    return o;
}

static void find_budget (struct comparison *c)
{
    c->budget = INFINITY;
    c->from = 0;
    for (size_t k = 0; k < c->n; k++) {
        c->budget = fmin (c->budget, report_cost_of (&c->report, k).busy);
        c->from = fmax (c->from, first_result (c, k));
    }
}

/* ---- text ---- */

enum { FIXED = 11 };

static void set_value (struct libscols_line *line, size_t column, double v)
{
    if (isfinite (v))
        table_set (line, column, "%.6g", v);
    else
        table_set (line, column, "-");
}

static void set_time (struct libscols_line *line, size_t column, double seconds)
{
    char text[32];

    duration_text (text, sizeof (text), seconds);
    table_set (line, column, "%s", text);
}

static void add_compared_line (const struct comparison *c, struct libscols_table *tb, size_t k)
{
    const struct report *r = &c->report;
    const struct report_sweep *of = &r->sweeps[k];
    struct libscols_line *line = table_line (tb);
    struct compare_outcome o = outcome_of_sweep (c, k);

    table_set (line, 0, "%s", of->name);
    set_value (line, 1, o.best < 0 ? NAN : report_value (r, o.best, 0));
    if (o.best >= 0)
        table_set (line, 2, "%ld", r->trials[o.best].number);
    set_value (line, 3, o.at_budget);
    set_value (line, 4, o.area);
    table_set (line, 5, "%s", of->s->exp->search->searcher);
    table_set (line, 6, "%s", sweep_state_name (of->s->state));
    table_set (line, 7, "%ld", of->s->ntrials);
    table_set (line, 8, "%ld", o.failed);
    set_time (line, 9, o.cost.wall);
    set_time (line, 10, o.cost.busy);
    if (o.cost.gpus > 0)
        table_set (line, 11, "%.3g", o.cost.gpus / 3600);
    if (r->best >= 0 && r->trials[r->best].sweep == k)
        table_colour (line, 0, "green");
}

static void add_difference (const char *key, char *const *values, void *arg)
{
    struct libscols_table *tb = arg;
    struct libscols_line *line = table_line (tb);

    table_set (line, 0, "%s", key);
    for (size_t i = 1; i < scols_table_get_ncols (tb); i++)
        table_set (line, i, "%s", values[i - 1] ? values[i - 1] : "-");
}

static void print_differences (const struct comparison *c)
{
    static const struct table_column first[] = { { "setting", false }, { NULL, false } };
    struct libscols_table *tb = table_create ("settings", first, false);

    for (size_t k = 0; k < c->n; k++)
        scols_table_new_column (tb, c->report.sweeps[k].name, 0,
                                table_width () ? SCOLS_FL_TRUNC : 0);
    differences_each (c->list, c->n, add_difference, tb);
    if (scols_table_get_nlines (tb) == 0) {
        puts ("\nall settings are the same");
    } else {
        static const char *const none[] = { NULL };
        puts ("");
        free (table_fit (tb, none, 1, c->n + 1));
        scols_print_table (tb);
    }
    scols_unref_table (tb);
}

static void print_comparison (const struct comparison *c)
{
    static const struct table_column columns[] = {
        { "experiment", false }, { "best", true },       { "trial", true },
        { "at budget", true },   { "area", true },       { "searcher", false },
        { "state", false },      { "trials", true },     { "failed", true },
        { "wall", true },        { "trial time", true }, { "GPU h", true },
        { NULL, false },
    };
    static const char *const least[] = { "searcher", "failed", "GPU h",  "state",
                                         "area",     "wall",   "trials", NULL };
    struct libscols_table *tb = table_create ("experiments", columns, false);
    char budget[32];
    char *left_out;

    for (size_t k = 0; k < c->n; k++)
        add_compared_line (c, tb, k);
    left_out = table_fit (tb, least, FIXED + 1, 2);
    terminal_allow_colours (true);
    scols_print_table (tb);
    terminal_allow_colours (false);
    scols_unref_table (tb);
    if (left_out)
        printf ("(no room for %s; widen the window or use --json)\n", left_out);
    free (left_out);
    duration_text (budget, sizeof (budget), c->budget);
    printf ("%s: %s is better\nat budget: after %s of trial time, which all have spent; area: mean "
            "of the best so far until then\n",
            sweep_metric (c->list[0], 0),
            c->list[0]->exp->search->config.smaller_is_better ? "smaller" : "larger", budget);
    print_differences (c);
}

/* ---- JSON ---- */

static json_t *compared_json (const struct comparison *c, size_t k)
{
    const struct report *r = &c->report;
    const struct report_sweep *of = &r->sweeps[k];
    struct compare_outcome o = outcome_of_sweep (c, k);

    return json_pack ("{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o}", "experiment",
                      text_json (of->name), "searcher", of->s->exp->search->searcher, "state",
                      sweep_state_name (of->s->state), "best",
                      finite_to_json (o.best < 0 ? NAN : report_value (r, o.best, 0)), "trial",
                      o.best < 0 ? json_null () : json_integer (r->trials[o.best].number),
                      "at_budget", finite_to_json (o.at_budget), "area", finite_to_json (o.area),
                      "trials", (json_int_t)of->s->ntrials, "failed", (json_int_t)o.failed,
                      "wall_seconds", finite_to_json (o.cost.wall), "trial_seconds",
                      finite_to_json (o.cost.busy), "gpu_seconds", finite_to_json (o.cost.gpus));
}

struct differences {
    json_t *list;
    size_t n;
};

static void difference_json (const char *key, char *const *values, void *arg)
{
    struct differences *d = arg;
    json_t *texts = json_array ();

    for (size_t i = 0; i < d->n; i++)
        json_array_append_new (texts, values[i] ? text_json (values[i]) : json_null ());
    json_array_append_new (d->list,
                           json_pack ("{s:o, s:o}", "key", text_json (key), "values", texts));
}

static void print_comparison_json (const struct comparison *c)
{
    struct differences d = { json_array (), c->n };
    json_t *list = json_array (), *o;

    for (size_t k = 0; k < c->n; k++)
        json_array_append_new (list, compared_json (c, k));
    differences_each (c->list, c->n, difference_json, &d);
    o = json_pack ("{s:o, s:o, s:o, s:o}", "metric", text_json (sweep_metric (c->list[0], 0)),
                   "budget_seconds", finite_to_json (c->budget), "experiments", list, "settings",
                   d.list);
    json_put (o, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (o);
}

/* ---- the command ---- */

static int open_compared (struct comparison *c, const struct command_line *line)
{
    int rv = EXIT_OK;

    c->list = xcalloc ((size_t)line->nargs + 1, sizeof (struct sweep *));
    while (rv == EXIT_OK && c->n < (size_t)line->nargs) {
        rv = open_experiment (line, line->args[c->n], &c->list[c->n]);
        c->n += rv == EXIT_OK;
    }
    return rv;
}

/* Experiments that optimise different metrics cannot be compared. */
static int check_metric (const struct comparison *c)
{
    for (size_t k = 1; k < c->n; k++)
        if (strcmp (sweep_metric (c->list[k], 0), sweep_metric (c->list[0], 0))
            || c->list[k]->exp->search->config.smaller_is_better
                   != c->list[0]->exp->search->config.smaller_is_better) {
            complain ("%s optimises %s, but %s %s: they cannot be compared", c->list[0]->dir,
                      sweep_metric (c->list[0], 0), c->list[k]->dir, sweep_metric (c->list[k], 0));
            return EXIT_USAGE;
        }
    return EXIT_OK;
}

int cmd_compare (const struct command_line *line)
{
    const struct compare_options *opt = line->options;
    struct comparison c = { 0 };
    struct slurmdl_error err = { "" };
    int rv = open_compared (&c, line);

    if (rv == EXIT_OK)
        rv = check_metric (&c);
    if (rv == EXIT_OK && report_fill (&c.report, c.list, c.n, &err) < 0)
        rv = fail (&err);
    if (rv == EXIT_OK) {
        find_budget (&c);
        if (opt->json)
            print_comparison_json (&c);
        else
            print_comparison (&c);
    }
    report_free (&c.report);
    for (size_t k = 0; k < c.n; k++)
        sweep_close (c.list[k]);
    free (c.list);
    return rv;
}
