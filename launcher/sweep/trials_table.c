/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trials, the best of them, and the machines that are excluded. */
#include "launcher/sweep/trials_table.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/columns.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/table.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/terminal.h"

/* Read all logged metrics of up to TRIALS_READ trials, unless these have more than ROWS_READ rows,
 * and show LOGGED_SHOWN of them.
 */
enum { TRIALS_READ = 100, ROWS_READ = 500000, LOGGED_SHOWN = 4 };

struct trials_table {
    struct libscols_table *tb;
    const struct sweep *s;
    struct logged_metrics logged;
    size_t nlogged; /* how many of them are shown */
    struct columns all;
    const struct result_column **shown; /* elements of 'all', from left to right */
    size_t n;
};

static const char *state_colour (const struct sweep_trial *t)
{
    return t->state == TRIAL_FAILED ? "red" : t->state == TRIAL_OPEN ? "cyan" : NULL;
}

static bool has_failed (const struct sweep_trial *t)
{
    return t->why && (t->tries.failed || t->ooms || t->state == TRIAL_FAILED);
}

/* The text of a trial that is being trained tells how far it has come. */
static char *trial_cell (const struct trials_table *t, const struct result_column *c, long n,
                         const struct metric_progress *now)
{
    const struct sweep_trial *trial = sweep_trial (t->s, n);
    char *text;

    if (c->place == PLACE_LENGTH && now && !experiment_knows_length (t->s->exp))
        return xasprintf ("%lld", (long long)now->step);
    if (c->place == PLACE_LENGTH && now)
        return xasprintf ("%lld/%lld", (long long)now->step, (long long)trial->target);
    if (c->place == PLACE_LAST && now)
        return xasprintf ("%.6g", now->value);
    if (c->place == PLACE_WHY && !has_failed (trial))
        return NULL;
    text = column_text (c, t->s, n);
    return text || !c->hparam ? text : xstrdup ("-");
}

static void add_trial_line (const struct trials_table *t, long n, bool in_front)
{
    const struct sweep_trial *trial = sweep_trial (t->s, n);
    struct libscols_line *line = table_line (t->tb);
    struct metric_progress now;
    bool trains = trial->state == TRIAL_OPEN && !sweep_has_ended (t->s)
                  && trial_progress (t->s, n, &now) == 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct result_column *c = t->shown[i];
        if (c->place == PLACE_TRIAL && in_front)
            table_set (line, i, "%ld*", n);
        else
            scols_line_refer_data (line, i, trial_cell (t, c, n, trains ? &now : NULL));
        if (c->place == PLACE_TRIAL && (n == sweep_best (t->s) || in_front))
            table_colour (line, i, "green");
        if (c->place == PLACE_STATE)
            table_colour (line, i, state_colour (trial));
    }
}

/* Whether any attempt failed.  If so, the last column shows why. */
static bool has_failures (const struct sweep *s)
{
    for (long i = 0; i < s->ntrials; i++)
        if (has_failed (&s->trials[i]))
            return true;
    return false;
}

/* Whether any trial reported a finite value of a metric. */
static bool has_number (const struct sweep *s, size_t metric)
{
    for (long i = 1; i <= s->ntrials; i++) {
        const struct sweep_trial *t = sweep_trial (s, i);
        for (size_t k = 0; k < t->nmilestones; k++)
            if (isfinite (metric ? t->milestones[k].values[metric] : t->milestones[k].metric))
                return true;
    }
    return false;
}

static bool any_trial_logs (const struct sweep *s)
{
    struct metric_progress now;

    for (long i = 1; i <= s->ntrials; i++)
        if (sweep_trial (s, i)->state == TRIAL_OPEN && trial_progress (s, i, &now) == 0)
            return true;
    return false;
}

/* The first metric is in the columns "best" and "last". */
static bool column_is_shown (const struct trials_table *t, const struct result_column *c)
{
    switch (c->place) {
    case PLACE_NONE:
        return false;
    case PLACE_BEST:
    case PLACE_LAST:
        return !t->s->exp->metric->is_assumed || has_number (t->s, 0) || any_trial_logs (t->s);
    case PLACE_LOGGED:
        return (size_t)(c->logged - t->logged.list) < t->nlogged;
    case PLACE_METRIC:
        return c->index > 0;
    case PLACE_HPARAM:
        return t->s->exp->space->hparams[c->index].dim >= 0;
    case PLACE_WHY:
        return has_failures (t->s);
    default:
        return true;
    }
}

/* Columns of the same place keep their order. */
static int by_place (const void *a, const void *b)
{
    const struct result_column *x = *(const struct result_column *const *)a;
    const struct result_column *y = *(const struct result_column *const *)b;

    return x->place != y->place ? (int)x->place - (int)y->place : (x > y) - (x < y);
}

static const char *heading_of (const struct result_column *c)
{
    return c->title ? c->title : c->name;
}

static void add_columns (struct trials_table *t)
{
    columns_create (&t->all, t->s);
    columns_add_logged (&t->all, &t->logged);
    t->shown = xcalloc (t->all.n, sizeof (*t->shown));
    for (size_t i = 0; i < t->all.n; i++)
        if (column_is_shown (t, &t->all.list[i]))
            t->shown[t->n++] = &t->all.list[i];
    qsort (t->shown, t->n, sizeof (*t->shown), by_place);
    for (size_t i = 0; i < t->n; i++)
        scols_table_new_column (t->tb, heading_of (t->shown[i]), 0,
                                t->shown[i]->place == PLACE_STATE ? 0
                                : t->shown[i]->place == PLACE_WHY ? SCOLS_FL_TRUNC
                                                                  : SCOLS_FL_RIGHT);
}

void print_excluded (const struct sweep *s)
{
    for (size_t i = 0; i < s->nhosts; i++)
        if (s->hosts[i].why)
            printf ("machine %s is excluded: %s\n", s->hosts[i].name, s->hosts[i].why);
}

/* Reading the metrics of many trials takes too long, so read one trial, for the names of its
 * metrics.
 */
static void read_logged (struct trials_table *t, const long *trials, long n)
{
    bool all = n <= TRIALS_READ;
    bool more = logged_read (&t->logged, t->s, trials, all ? n : 1, ROWS_READ);

    if (all && !more)
        t->nlogged = t->logged.n < LOGGED_SHOWN ? t->logged.n : LOGGED_SHOWN;
}

static void print_unshown (const struct trials_table *t)
{
    for (size_t i = t->nlogged; i < t->logged.n && i < t->nlogged + 8; i++)
        printf ("%s%s", i == t->nlogged ? "(also logged, and shown by --columns: " : ", ",
                t->logged.list[i].name);
    if (t->logged.n > t->nlogged)
        puts (t->logged.n > t->nlogged + 8 ? ", ...)" : ")");
}

static char *fit_trials_table (const struct trials_table *t)
{
    const char **names = xcalloc (t->n + 1, sizeof (*names));
    size_t n = 0, own = 0;
    char *left_out;

    for (int rank = 1; rank <= COLUMN_DROPS; rank++)
        for (size_t i = t->n; i > 0; i--)
            if (t->shown[i - 1]->drop == rank)
                names[n++] = heading_of (t->shown[i - 1]);
    while (own < t->n && t->shown[own]->place <= PLACE_LOGGED)
        own++;
    left_out = table_fit (t->tb, names, own, sweep_metrics (t->s) > 1 ? 1 : 4);
    free (names);
    return left_out;
}

void print_trials (const struct sweep *s, const long *trials, long n)
{
    static const struct table_column none[] = { { NULL, false } };
    struct trials_table t = { table_create ("trials", none, false), .s = s };
    bool *front = sweep_metrics (s) > 1 ? sweep_front (s) : NULL;
    char *left_out;

    read_logged (&t, trials, n);
    add_columns (&t);
    for (long i = 0; i < n; i++)
        add_trial_line (&t, trials[i], front && front[trials[i] - 1]);
    left_out = fit_trials_table (&t);
    terminal_allow_colours (true);
    table_print (t.tb);
    terminal_allow_colours (false);
    scols_unref_table (t.tb);
    if (front)
        puts ("* Pareto front");
    print_unshown (&t);
    free (t.shown);
    columns_destroy (&t.all);
    logged_free (&t.logged);
    if (left_out)
        printf ("(no room for %s; widen the window or use --columns)\n", left_out);
    free (left_out);
    free (front);
}

void print_best_trials (const struct sweep *s, long max)
{
    long *trials = sweep_order (s);

    if (trials)
        print_trials (s, trials, max < s->ntrials ? max : s->ntrials);
    if (max < s->ntrials)
        printf ("(%ld of %ld trials; 'dl show' prints all)\n", max, s->ntrials);
    free (trials);
}

static void print_numberless (const struct sweep *s)
{
    for (size_t i = 0; i < sweep_metrics (s); i++)
        if (!has_number (s, i) && !s->exp->job->is_given)
            printf ("%s was never a finite number in %ld result%s: %s\n", sweep_metric (s, i),
                    s->nresults, s->nresults == 1 ? "" : "s",
                    i ? "the Pareto front is empty" : "there is no best trial");
}

static void print_checkpoint (const struct sweep *s)
{
    char path[PATH_MAX];

    if (best_checkpoint (s, sweep_best (s), path, sizeof (path)) == 0)
        printf ("  its checkpoint: %s\n", path);
}

void print_direction (const struct sweep *s)
{
    if (s->exp->metric->is_assumed)
        return;
    printf (sweep_metrics (s) > 1 ? "metrics: " : "metric: ");
    for (size_t i = 0; i < sweep_metrics (s); i++)
        printf ("%s%s, %s is better", i ? "; " : "", sweep_metric (s, i),
                (i ? s->exp->search->config.larger[i] : !s->exp->search->config.smaller_is_better)
                    ? "larger"
                    : "smaller");
    putchar ('\n');
}

void print_best (const struct sweep *s)
{
    char text[256];

    sweep_best_text (s, NULL, text, sizeof (text));
    if (s->nresults)
        print_numberless (s);
    if (*text) {
        printf ("best %s\n", text);
        print_checkpoint (s);
    }
    if (sweep_seed_unused (s))
        puts (sweep_seed_unused (s));
    if (s->reached)
        printf ("searcher.goal (%g) is reached\n", s->exp->metric->goal);
}

/* ---- CSV ---- */

/* Quote as RFC 4180 requires, but end lines with a newline only.  Spreadsheets take a text that
 * begins with one of these characters for a formula; 'safe' puts an apostrophe before it.
 */
static void put_csv_text (FILE *f, const char *text, bool safe)
{
    const char *mark = safe && *text && strchr ("=+-@\t\r", *text) ? "'" : "";

    if (!text[strcspn (text, ",\"\r\n")]) {
        fprintf (f, "%s%s", mark, text);
        return;
    }
    fprintf (f, "\"%s", mark);
    for (; *text; text++) {
        if (*text == '"')
            fputc ('"', f);
        fputc (*text, f);
    }
    fputc ('"', f);
}

/* Print nothing for NaN. */
static void put_real (FILE *f, double v)
{
    char text[NUMBER_TEXT];

    if (isnan (v))
        return;
    number_text (text, v);
    fputs (text, f);
}

static void put_csv_cell (FILE *f, enum column_type type, const struct cell *cell, bool safe)
{
    switch (type) {
    case COLUMN_INT:
        fprintf (f, "%lld", (long long)cell->integer);
        break;
    case COLUMN_REAL:
        put_real (f, cell->real);
        break;
    case COLUMN_TEXT:
        put_csv_text (f, cell->text ? cell->text : "", safe);
        break;
    }
}

/* The prefix "hp." keeps hyperparameters apart from columns of the same name. */
void csv_put_names (FILE *f, const struct columns *c, bool safe)
{
    for (size_t i = 0; i < c->n; i++) {
        fputs (i ? "," : "", f);
        fputs (c->list[i].hparam ? "hp." : "", f);
        put_csv_text (f, c->list[i].name, safe && !c->list[i].hparam);
    }
    fputc ('\n', f);
}

void csv_put_trial (FILE *f, const struct sweep *s, const struct columns *c, long trial, bool safe)
{
    for (size_t i = 0; i < c->n; i++) {
        struct cell cell = column_cell (&c->list[i], s, trial);
        fputs (i ? "," : "", f);
        put_csv_cell (f, c->list[i].type, &cell, safe);
    }
    fputc ('\n', f);
}
