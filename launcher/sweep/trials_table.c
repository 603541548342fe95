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
#include "launcher/sweep/text.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/terminal.h"

/* clang-format off */
/* Names of columns (columns.h). */
static const struct table_column trial_columns[] = {
    { "trial",  true  },
    { "state",  false },
    { "length", true  },
    { "best",   true  },
    { "metric", true  },
    { "seconds", true },
    { "attempts", true },
};
/* clang-format on */
enum { FIXED = 7, OF_POINT = 4 };

/* Columns to drop first if the table is too wide: these, then metrics that are only logged, and
 * then ...
 */
static const char *const least[] = { "attempts", "seconds" };
static const char *const less[] = { "metric", "length", "state" };
enum { LEAST = 2, LESS = 3 };

/* Read all logged metrics of up to TRIALS_READ trials, unless these have more than ROWS_READ rows,
 * and show LOGGED_SHOWN of them.
 */
enum { TRIALS_READ = 100, ROWS_READ = 500000, LOGGED_SHOWN = 4 };

static bool value_is_repeated (const struct sweep *s)
{
    return s->exp->search->config.repeats > 1;
}

/* The columns of 'logged' follow the fixed ones. */
struct trials_table {
    struct libscols_table *tb;
    const struct sweep *s;
    struct logged_metrics logged;
    size_t nlogged; /* how many of them are shown */
};

/* The column of the second metric. */
static size_t first_metric (const struct trials_table *t)
{
    return FIXED + t->nlogged + (value_is_repeated (t->s) ? OF_POINT : 0);
}

/* Fill in all metrics but the first, each in a column of its own. */
static void fill_metrics (struct libscols_line *line, const struct sweep *s,
                          const struct sweep_trial *t, size_t column)
{
    for (size_t i = 1; i < sweep_metrics (s); i++)
        if (trial_values (t))
            table_set (line, column + i - 1, "%.6g", trial_values (t)[i]);
}

static void fill_hparams (struct libscols_line *line, const struct sweep *s,
                          const struct sweep_trial *t, size_t column)
{
    for (size_t i = 0; i < s->exp->space->nhparams; i++) {
        const struct hparam *h = &s->exp->space->hparams[i];
        char *value = h->dim >= 0 ? cell_text (s, t, h) : NULL;
        if (value)
            scols_line_refer_data (line, column, value);
        else if (h->dim >= 0)
            table_set (line, column, "-");
        column += h->dim >= 0;
    }
}

/* Fill in the number of the trial's point, its mean, its deviation and its number of results. */
static void fill_point (struct libscols_line *line, const struct sweep *s, long trial,
                        size_t column)
{
    struct sweep_result r = point_result (s, trial_point (s, trial), 0);

    table_set (line, column, "%ld", trial_point (s, trial));
    if (r.n > 0)
        table_set (line, column + 1, "%.6g", r.value);
    if (r.n > 1)
        table_set (line, column + 2, "%.2g", r.deviation);
    table_set (line, column + 3, "%ld", r.n);
}

/* How far a trial that is being trained has come. */
static void fill_progress (struct libscols_line *line, const struct sweep *s, long n)
{
    const struct sweep_trial *t = sweep_trial (s, n);
    struct metric_progress p;

    if (t->state != TRIAL_OPEN || sweep_has_ended (s) || trial_progress (s, n, &p) < 0)
        return;
    table_set (line, 2, "%lld/%lld", (long long)p.step, (long long)t->target);
    table_set (line, 4, "%.6g", p.value);
}

static const char *state_colour (const struct sweep_trial *t)
{
    return t->state == TRIAL_FAILED ? "red" : t->state == TRIAL_OPEN ? "cyan" : NULL;
}

static bool has_failed (const struct sweep_trial *t)
{
    return t->why && (t->fails || t->ooms || t->state == TRIAL_FAILED);
}

static void fill_logged (struct libscols_line *line, const struct trials_table *table, long trial)
{
    for (size_t i = 0; i < table->nlogged; i++) {
        const struct logged_metric *m = &table->logged.list[i];
        if (isnan (m->values[trial - 1]) && m->has[trial - 1])
            table_set (line, FIXED + i, "nan");
        else if (m->has[trial - 1])
            table_set (line, FIXED + i, "%.6g", m->values[trial - 1]);
    }
}

static void add_trial_line (const struct trials_table *table, long n, bool in_front)
{
    const struct sweep *s = table->s;
    struct libscols_table *tb = table->tb;
    size_t further = first_metric (table);
    const struct sweep_trial *t = sweep_trial (s, n);
    struct libscols_line *line = scols_table_new_line (tb, NULL);
    char elapsed[32];

    if (!line)
        return;
    duration_text (elapsed, sizeof (elapsed), t->seconds);
    table_set (line, 0, "%ld%s", n, in_front ? "*" : "");
    scols_line_set_data (line, 1, trial_state_name (s, t));
    table_set (line, 2, "%lld", (long long)t->length);
    if (t->length) {
        table_set (line, 3, "%.6g", trial_result (s, n, 0).value);
        table_set (line, 4, "%.6g", t->metric);
    }
    scols_line_set_data (line, 5, elapsed);
    table_set (line, 6, "%ld", trial_attempts (s, t));
    fill_progress (line, s, n);
    fill_logged (line, table, n);
    if (value_is_repeated (s))
        fill_point (line, s, n, FIXED + table->nlogged);
    fill_metrics (line, s, t, further);
    fill_hparams (line, s, t, further + sweep_metrics (s) - 1);
    if (has_failed (t))
        table_set (line, scols_table_get_ncols (tb) - 1, "%s", t->why);
    table_colour (line, 1, state_colour (t));
    if (n == sweep_best (s) || in_front)
        table_colour (line, 0, "green");
}

/* Whether any attempt failed.  If so, the last column shows why. */
static bool has_failures (const struct sweep *s)
{
    for (long i = 0; i < s->ntrials; i++)
        if (has_failed (&s->trials[i]))
            return true;
    return false;
}

static void add_columns (const struct trials_table *t)
{
    static const char *const of_point[] = { "point", "mean", "deviation", "n" };
    struct libscols_table *tb = t->tb;
    const struct sweep *s = t->s;

    for (size_t i = 0; i < t->nlogged; i++)
        scols_table_new_column (tb, t->logged.list[i].name, 0, SCOLS_FL_RIGHT);
    for (int i = 0; value_is_repeated (s) && i < OF_POINT; i++)
        scols_table_new_column (tb, of_point[i], 0, SCOLS_FL_RIGHT);
    for (size_t i = 1; i < sweep_metrics (s); i++)
        scols_table_new_column (tb, sweep_metric (s, i), 0, SCOLS_FL_RIGHT);
    for (size_t i = 0; i < s->exp->space->nhparams; i++)
        if (s->exp->space->hparams[i].dim >= 0)
            scols_table_new_column (tb, s->exp->space->hparams[i].path, 0, SCOLS_FL_RIGHT);
    if (has_failures (s))
        scols_table_new_column (tb, "failure", 0, SCOLS_FL_TRUNC);
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
    int rv = logged_read (&t->logged, t->s, trials, all ? n : 1, ROWS_READ);

    if (all && rv == 0)
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
    const char *names[LEAST + LOGGED_SHOWN + LESS + 1] = { 0 };
    size_t n = LEAST;

    for (size_t i = 0; i < LEAST; i++)
        names[i] = column_title (least[i]);
    for (size_t i = t->nlogged; i > 0; i--)
        names[n++] = t->logged.list[i - 1].name;
    for (size_t i = 0; i < LESS; i++)
        names[n++] = column_title (less[i]);
    return table_fit (t->tb, names, FIXED + t->nlogged, sweep_metrics (t->s) > 1 ? 1 : 4);
}

static struct libscols_table *create_table (void)
{
    struct table_column titled[FIXED + 1] = { { NULL, false } };

    for (int i = 0; i < FIXED; i++)
        titled[i] =
            (struct table_column){ column_title (trial_columns[i].name), trial_columns[i].right };
    return table_create ("trials", titled, false);
}

int print_trials (const struct sweep *s, const long *trials, long n)
{
    struct trials_table t = { create_table (), .s = s };
    bool *front = sweep_metrics (s) > 1 ? sweep_front (s) : NULL;
    char *left_out;

    if (!t.tb)
        return -1;
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
    logged_free (&t.logged);
    if (left_out)
        printf ("(no room for %s; widen the window or use --columns)\n", left_out);
    free (left_out);
    free (front);
    return 0;
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
