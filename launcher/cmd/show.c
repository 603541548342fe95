/* SPDX-License-Identifier: Apache-2.0 */
/* dl show: print an experiment with selected trials and columns, or one trial. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/columns.h"
#include "launcher/sweep/experiment_json.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_word.h"
#include "runtime/slurmdl.h"
#include "searcher/space/constraint.h"

/* ---- select trials and columns ---- */

struct selection {
    struct columns all;
    struct logged_metrics logged; /* for the last columns of 'all' */
    struct columns shown; /* the columns of --columns, in that order, or else all but the logged
                             ones; elements of 'all' */
    bool chosen;          /* --columns was given */
    bool complete;        /* 'logged' covers all trials */
    long *trials;         /* numbers, in the order of --sort, or else best first */
    long n;
};

/* ---- names of columns ---- */

/* A name that users may write for a column. */
struct column_name {
    const char *name;
    size_t column;
};

struct column_names {
    struct column_name *list;
    size_t n;
    char **owned; /* names such as "hp.lr" */
};

static void add_column_name (struct column_names *names, const char *name, size_t column)
{
    names->list[names->n++] = (struct column_name){ name, column };
}

static size_t find_fixed (const struct columns *c, const char *name)
{
    size_t i = 0;

    while (i < c->n && (c->list[i].hparam || strcmp (c->list[i].name, name)))
        i++;
    return i;
}

/* The name of the metric itself means the value by which trials are compared. */
static void add_others (struct column_names *names, const struct columns *c, const struct sweep *s)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].title && !c->list[i].metric && !c->list[i].logged)
            add_column_name (names, c->list[i].title, i);
    if (sweep_metrics (s) == 1)
        add_column_name (names, sweep_metric (s, 0), find_fixed (c, "best"));
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].metric || c->list[i].logged)
            add_column_name (names, c->list[i].title, i);
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].hparam) {
            names->owned[i] = xasprintf ("hp.%s", c->list[i].name);
            add_column_name (names, names->owned[i], i);
        }
}

/* The first match wins, so a column takes precedence over a hyperparameter with the
 * same name.
 */
static void names_make (struct column_names *names, const struct columns *c, const struct sweep *s)
{
    size_t most = 3 * c->n + sweep_metrics (s);

    *names = (struct column_names){ 0 };
    names->list = xcalloc (most + 1, sizeof (*names->list));
    names->owned = xcalloc (c->n + 1, sizeof (*names->owned));
    for (size_t i = 0; i < c->n; i++)
        add_column_name (names, c->list[i].name, i);
    add_others (names, c, s);
}

static void names_free (struct column_names *names, const struct columns *c)
{
    for (size_t i = 0; i < c->n; i++)
        free (names->owned[i]);
    free (names->owned);
    free (names->list);
}

static const struct column_name *find_column_name (const struct column_names *names,
                                                   const char *option, const char *name)
{
    const char **words;
    const char *meant;

    for (size_t i = 0; i < names->n; i++)
        if (!strcmp (names->list[i].name, name))
            return &names->list[i];
    words = xcalloc (names->n + 1, sizeof (*words));
    for (size_t i = 0; i < names->n; i++)
        words[i] = names->list[i].name;
    meant = nearest_word (name, words);
    complain ("--%s: there is no column '%s'%s%s%s", option, name,
              DID_YOU_MEAN (meant, "'", "'", "; 'dl export' has all of them"));
    free (words);
    return NULL;
}

/* ---- --columns ---- */

static int choose_columns (struct selection *sel, const struct column_names *names,
                           const char *wanted)
{
    struct columns *c = &sel->shown;
    const struct column_name *found = NULL;
    size_t most = strlen (wanted) + 1;
    char *list = xstrdup (wanted);
    char *save = NULL;
    bool good = true;

    c->list = xcalloc (most, sizeof (*c->list));
    for (char *w = strtok_r (list, ", ", &save); w && good; w = strtok_r (NULL, ", ", &save))
        if ((good = (found = find_column_name (names, "columns", w))))
            c->list[c->n++] = sel->all.list[found->column];
    free (list);
    if (good && c->n == 0) {
        complain ("--columns needs column names");
        good = false;
    }
    sel->chosen = true;
    return good ? 0 : -1;
}

/* ---- --where ---- */

/* The texts in a column, which the expression uses as choices. */
struct column_texts {
    const char **list;
    long n;
    bool open; /* texts that are not in the list are valid, too */
};

static const char *const shown_states[] = { "open",   "paused",        "completed",
                                            "failed", "stopped early", "rejected" };
enum { NSTATES = sizeof (shown_states) / sizeof (*shown_states) };

/* Collect the texts of all trials, sorted and without duplicates. */
static void texts_make (struct column_texts *t, const struct sweep *s,
                        const struct result_column *c)
{
    long n = 0;

    t->open = strcmp (c->name, "state") || c->hparam;
    t->list = xcalloc ((size_t)s->ntrials + NSTATES + 1, sizeof (*t->list));
    for (long i = 1; i <= s->ntrials; i++) {
        const char *text = column_cell (c, s, i).text;
        if (text)
            t->list[n++] = text;
    }
    for (int i = 0; !t->open && i < NSTATES; i++)
        t->list[n++] = shown_states[i];
    if (n > 0)
        qsort (t->list, (size_t)n, sizeof (*t->list), strings_compare);
    for (long i = 0; i < n; i++)
        if (t->n == 0 || strcmp (t->list[t->n - 1], t->list[i]))
            t->list[t->n++] = t->list[i];
}

static double text_index (const struct column_texts *t, const char *text)
{
    const char **at =
        text ? bsearch (&text, t->list, (size_t)t->n, sizeof (*t->list), strings_compare) : NULL;

    return at ? (double)(at - t->list) : NAN;
}

struct filter {
    const struct sweep *s;
    const struct columns *all;
    const struct column_names *names;
    struct column_texts *texts; /* of each column; empty for numbers */
    double *values;             /* values of a trial for each column ... */
    double *x;                  /* ... and for each name */
    struct constraint program;
};

static void complain_unknown_column (const struct column_names *names, const char *at)
{
    char word[64];
    bool quoted = *at == '`';

    at += quoted;
    snprintf (word, sizeof (word), "%.*s",
              (int)strcspn (at, quoted ? "`" : " \t\"'`<>=!&|()+-*/%^,"), at);
    find_column_name (names, "where", word);
}

static int compile_filter (struct filter *f, const char *text)
{
    size_t n = f->names->n;
    const char **words = xcalloc (n + 1, sizeof (*words));
    const char *const **labels = xcalloc (n + 1, sizeof (*labels));
    long *nlabels = xcalloc (n + 1, sizeof (*nlabels));
    bool *open = xcalloc (n + 1, sizeof (*open));
    struct constraint_names names = { words, labels, nlabels, n, open, true };
    const char *why;
    int column = 0;

    for (size_t i = 0; i < n; i++) {
        const struct column_texts *t = &f->texts[f->names->list[i].column];
        words[i] = f->names->list[i].name;
        labels[i] = t->list;
        nlabels[i] = t->n;
        open[i] = t->open;
    }
    why = constraint_compile (&f->program, text, &names, &column);
    if (why && errno == ENOENT)
        complain_unknown_column (f->names, text + column - 1);
    else if (why) /* only states have a fixed set of choices */
        complain ("--where: column %d: %s%s", column, why,
                  errno == EDOM ? " (states are open, paused, completed, failed, 'stopped early' "
                                  "and rejected)"
                                : "");
    free (words);
    free (labels);
    free (nlabels);
    free (open);
    return why ? -1 : 0;
}

static bool filter_keeps (struct filter *f, long trial)
{
    for (size_t i = 0; i < f->all->n; i++) {
        const struct result_column *c = &f->all->list[i];
        struct cell cell = column_cell (c, f->s, trial);
        f->values[i] = c->type == COLUMN_INT    ? (double)cell.integer
                       : c->type == COLUMN_REAL ? cell.real
                                                : text_index (&f->texts[i], cell.text);
    }
    for (size_t i = 0; i < f->names->n; i++)
        f->x[i] = f->values[f->names->list[i].column];
    return constraint_is_true (&f->program, f->x);
}

static int filter_make (struct filter *f, const char *text)
{
    size_t n = f->all->n;

    f->texts = xcalloc (n + 1, sizeof (*f->texts));
    f->values = xcalloc (n + 1, sizeof (*f->values));
    f->x = xcalloc (f->names->n + 1, sizeof (*f->x));
    for (size_t i = 0; i < n; i++)
        if (f->all->list[i].type == COLUMN_TEXT)
            texts_make (&f->texts[i], f->s, &f->all->list[i]);
    return compile_filter (f, text);
}

static int filter_trials (struct selection *sel, const struct sweep *s,
                          const struct column_names *names, const char *text)
{
    struct filter f = { .s = s, .all = &sel->all, .names = names };
    int rv = filter_make (&f, text);
    long n = 0;

    for (long i = 0; rv == 0 && i < sel->n; i++)
        if (filter_keeps (&f, sel->trials[i]))
            sel->trials[n++] = sel->trials[i];
    sel->n = n;
    for (size_t i = 0; i < sel->all.n; i++)
        free (f.texts[i].list);
    free (f.texts);
    free (f.values);
    free (f.x);
    return rv;
}

/* ---- --sort ---- */

struct sorting {
    const struct sweep *s;
    const struct result_column *column;
    bool down;
};

static int compare_cells_real (double a, double b)
{
    return (a > b) - (a < b);
}

/* Trials without a value come last in both directions. */
static int compare_cells (const void *a, const void *b, void *arg)
{
    const struct sorting *o = arg;
    long i = *(const long *)a;
    long k = *(const long *)b;
    struct cell x = column_cell (o->column, o->s, i);
    struct cell y = column_cell (o->column, o->s, k);
    bool text = o->column->type == COLUMN_TEXT;
    bool real = o->column->type == COLUMN_REAL;
    bool no_x = text ? !x.text : real && isnan (x.real);
    bool no_y = text ? !y.text : real && isnan (y.real);
    int rv;

    if (no_x || no_y)
        return no_x - no_y ?: compare_cells_real ((double)i, (double)k);
    rv = text   ? strcmp (x.text, y.text)
         : real ? compare_cells_real (x.real, y.real)
                : (x.integer > y.integer) - (x.integer < y.integer);
    rv = o->down ? -rv : rv;
    return rv ?: compare_cells_real ((double)i, (double)k);
}

static int sort_selected_trials (struct selection *sel, const struct sweep *s,
                                 const struct column_names *names, const char *key)
{
    struct sorting o = { .s = s, .down = *key == '-' };
    const struct column_name *found = find_column_name (names, "sort", key + o.down);

    if (!found)
        return -1;
    o.column = &sel->all.list[found->column];
    if (sel->n > 0)
        qsort_r (sel->trials, (size_t)sel->n, sizeof (*sel->trials), compare_cells, &o);
    return 0;
}

/* ---- the whole selection ---- */

static int select_by (struct selection *sel, const struct sweep *s, const struct show_options *opt,
                      const struct column_names *names)
{
    sel->shown = (struct columns){ .n = 0 };
    if (opt->columns && choose_columns (sel, names, opt->columns) < 0)
        return EXIT_USAGE;
    if (!opt->columns)
        sel->shown = (struct columns){ sel->all.list, sel->all.n - sel->logged.n };
    if ((opt->where && filter_trials (sel, s, names, opt->where) < 0)
        || (opt->sort && sort_selected_trials (sel, s, names, opt->sort) < 0))
        return EXIT_USAGE;
    if (opt->trials > 0 && opt->trials < sel->n)
        sel->n = (long)opt->trials;
    return EXIT_OK;
}

/* Reading logged metrics that are not optimised takes a while, so add them as columns
 * only if an option names one.  Read a few trials to find out which metrics exist.
 */
enum { SAMPLE_TRIALS = 8, SAMPLE_ROWS = 10000 };

static bool names_logged (const struct selection *sel, const struct show_options *opt)
{
    const char *const texts[] = { opt->columns, opt->where, opt->sort };

    for (size_t i = 0; i < sel->logged.n; i++)
        for (size_t k = 0; k < sizeof (texts) / sizeof (*texts); k++)
            if (texts[k] && strstr (texts[k], sel->logged.list[i].name))
                return true;
    return false;
}

static void read_shown_metrics (struct selection *sel, const struct sweep *s)
{
    struct columns *c = &sel->all;

    for (size_t i = 0; i < sel->logged.n; i++) {
        free (c->list[--c->n].name);
        free (c->list[c->n].text);
    }
    logged_free (&sel->logged);
    logged_read_all (&sel->logged, s, sel->trials, sel->n);
    columns_add_logged (c, &sel->logged);
}

/* Add all logged metrics to JSON and CSV.  The text table chooses its columns itself.
 */
static void show_logged (struct selection *sel, const struct sweep *s,
                         const struct show_options *opt)
{
    if (sel->chosen || !(opt->json || opt->csv))
        return;
    if (!sel->complete)
        read_shown_metrics (sel, s);
    sel->shown = sel->all;
}

static void add_logged_columns (struct selection *sel, const struct sweep *s,
                                const struct show_options *opt)
{
    long sample = sel->n < SAMPLE_TRIALS ? sel->n : SAMPLE_TRIALS;

    if (!opt->columns && !opt->where && !opt->sort)
        return;
    logged_read (&sel->logged, s, sel->trials, sample, SAMPLE_ROWS);
    if (names_logged (sel, opt)) {
        sel->complete = true;
        logged_free (&sel->logged);
        logged_read (&sel->logged, s, sel->trials, sel->n, LONG_MAX);
    }
    columns_add_logged (&sel->all, &sel->logged);
}

/* Apply --columns, --where, --sort and --trials.  Prints errors and returns an exit
 * status.  Call selection_free() in every case.
 */
static int selection_make (struct selection *sel, const struct sweep *s,
                           const struct command_line *line)
{
    struct column_names names;
    int rv;

    *sel = (struct selection){ .n = s->ntrials };
    columns_create (&sel->all, s);
    sel->trials = sweep_order (s);
    add_logged_columns (sel, s, line->options);
    names_make (&names, &sel->all, s);
    rv = select_by (sel, s, line->options, &names);
    names_free (&names, &sel->all);
    if (rv == EXIT_OK)
        show_logged (sel, s, line->options);
    return rv;
}

static void selection_free (struct selection *sel)
{
    if (sel->chosen)
        free (sel->shown.list);
    columns_destroy (&sel->all);
    logged_free (&sel->logged);
    free (sel->trials);
}

/* ---- text ---- */

/* Print only the columns named by --columns. */
static void show_columns (const struct sweep *s, const struct selection *sel)
{
    const struct columns *c = &sel->shown;
    struct table_column *heads = xcalloc (c->n + 1, sizeof (*heads));
    struct libscols_table *tb;

    for (size_t i = 0; i < c->n; i++)
        heads[i] = (struct table_column){ c->list[i].logged ? c->list[i].title : c->list[i].name,
                                          c->list[i].type != COLUMN_TEXT };
    tb = table_create ("trials", heads, false);
    for (long i = 0; i < sel->n; i++) {
        struct libscols_line *line = table_line (tb);
        for (size_t k = 0; k < c->n; k++) {
            char *text = column_text (&c->list[k], s, sel->trials[i]);
            scols_line_refer_data (line, k, text ? text : xstrdup ("-"));
        }
    }
    table_print (tb);
    scols_unref_table (tb);
    free (heads);
}

/* ---- CSV ---- */

static void show_csv (const struct sweep *s, const struct selection *sel)
{
    csv_put_names (stdout, &sel->shown, false);
    for (long i = 0; i < sel->n; i++)
        csv_put_trial (stdout, s, &sel->shown, sel->trials[i], false);
}

/* ---- JSON ---- */

static json_t *selected_trials_json (const struct sweep *s, const struct selection *sel)
{
    bool *front = sweep_metrics (s) > 1 ? sweep_front (s) : NULL;
    json_t *list = json_array ();

    for (long i = 0; i < sel->n; i++) {
        json_t *o = trial_json (s, &sel->shown, sel->trials[i]);
        if (front)
            json_object_set_new (o, "pareto", json_boolean (front[sel->trials[i] - 1]));
        json_array_append_new (list, o);
    }
    free (front);
    return list;
}

/* The worker's notes about the ranks of all attempts. */
static void each_healing (const struct sweep *s, long n, healing_f f, void *arg)
{
    for (long k = 1; k <= sweep_trial (s, n)->over + 1; k++)
        healing_each (trial_healing (s, n, k), k, f, arg);
}

/* For printing only the last lines. */
struct healing_lines {
    long seen, from;
};

static void count_healing (long attempt, double when, const char *text, void *lines)
{
    (void)attempt, (void)when, (void)text;
    ((struct healing_lines *)lines)->from++;
}

static void print_healing_line (long attempt, double when, const char *text, void *arg)
{
    struct healing_lines *lines = arg;
    char at[32];

    if (lines->seen++ < lines->from)
        return;
    time_text (at, sizeof (at), when);
    printf ("  %s attempt %ld: %s\n", at, attempt, text);
}

static void print_healing (const struct sweep *s, long n, long most)
{
    struct healing_lines lines = { 0 };

    each_healing (s, n, count_healing, &lines);
    lines.from -= most;
    each_healing (s, n, print_healing_line, &lines);
}

/* ---- no progress ---- */

/* A trial without progress for less time than this is not worth a line. */
enum { QUIET_SECONDS = 120 };

struct no_progress {
    double since;
    char why[1024];
};

/* Whether an attempt's program, and not its worker, writes the file. */
static bool is_sign (const char *name)
{
    return !strcmp (name, "log") || fnmatch ("metrics*.h5", name, 0) == 0
           || !attempt_file_is_ours (name);
}

/* When an attempt last printed, logged or saved something; 0: it has no folder. */
static double last_sign (const struct sweep *s, long trial, long attempt)
{
    char dir[PATH_MAX];
    struct dirent *e;
    struct stat st;
    double last = 0;
    DIR *d;

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    if (!(d = opendir (dir)))
        return 0;
    while ((e = readdir (d)))
        if (is_sign (e->d_name) && fstatat (dirfd (d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            last = fmax (last, (double)st.st_mtim.tv_sec);
    closedir (d);
    return last;
}

/* Why no attempt runs, from the conditions. */
static void explain_wait (const struct sweep *s, long n, struct no_progress *q)
{
    const struct conditions *c = trial_conditions (s, n);
    const struct condition_entry *now = &c->list[c->last];
    long over = sweep_trial (s, n)->over;

    q->since = over > 0 ? last_sign (s, n, over) : 0;
    if (q->since == 0)
        q->since = c->list[CONDITION_CREATED].time;
    snprintf (q->why, sizeof (q->why), "%s%s%.400s; attempt %ld has not started",
              condition_reason_word (now->reason) ?: "", now->message ? ": " : "",
              now->message ?: "", over + 1);
}

/* Returns whether an open trial has made no progress for long.  The times are those of files, which
 * another host's clock may have set, so they are only good to be shown.
 */
static bool find_no_progress (const struct sweep *s, long n, struct no_progress *q)
{
    const struct sweep_trial *t = sweep_trial (s, n);

    if (t->state != TRIAL_OPEN || sweep_has_ended (s))
        return false;
    *q = (struct no_progress){ .since = last_sign (s, n, t->over + 1) };
    if (q->since > 0)
        snprintf (q->why, sizeof (q->why), "attempt %ld has printed, logged and saved nothing",
                  t->over + 1);
    else
        explain_wait (s, n, q);
    return (double)time (NULL) - q->since >= QUIET_SECONDS;
}

static void print_no_progress (const struct sweep *s, long n)
{
    struct no_progress q;
    char at[32], ago[32];

    if (!find_no_progress (s, n, &q))
        return;
    time_text (at, sizeof (at), q.since);
    duration_text (ago, sizeof (ago), (double)time (NULL) - q.since);
    printf ("  no progress since %s, for %s: %s\n", at, ago, q.why);
}

static json_t *no_progress_json (const struct sweep *s, long n)
{
    struct no_progress q;

    return find_no_progress (s, n, &q) ? json_pack ("{s:f, s:s}", "since", q.since, "why", q.why)
                                       : json_null ();
}

static void print_shown_json (json_t *v)
{
    json_put (v, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (v);
}

/* Print the experiment with its trials. */
static void show_json (const struct sweep *s, const struct selection *sel)
{
    json_t *o = experiment_json (s);

    json_object_set_new (o, "trials", selected_trials_json (s, sel));
    print_shown_json (o);
}

/* ---- one trial and the rows of its metrics ---- */

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
    long last;    /* ignore later attempts */
    long attempt; /* the last one with a printed heading */
    struct metric_summary *list;
    size_t n;
};

/* Print the headings of all attempts up to this one. */
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

static struct metric_summary *trial_metric_summary (struct trial_rows *t, const char *name)
{
    struct metric_summary *m;

    for (size_t i = 0; i < t->n; i++)
        if (!strcmp (t->list[i].name, name))
            return &t->list[i];
    XGROW (t->list, t->n);
    m = &t->list[t->n++];
    *m = (struct metric_summary){ .name = xstrdup (name), .min = NAN, .max = NAN };
    return m;
}

static void add_summary_row (struct metric_summary *m, const struct slurmdl_row *row)
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

static void keep_summary_value (struct metric_summary *m, const struct slurmdl_row *row)
{
    if (!m->values)
        m->values = json_array ();
    json_array_append_new (m->values, isfinite (row->value)
                                          ? json_pack ("[I, f]", (json_int_t)row->step, row->value)
                                          : json_pack ("[I, n]", (json_int_t)row->step));
}

static int take_trial_row (const struct slurmdl_row *row, void *arg)
{
    struct trial_rows *t = arg;
    struct metric_summary *m;

    if (row->superseded || row->attempt > t->last)
        return 0;
    m = trial_metric_summary (t, row->name);
    add_summary_row (m, row);
    if (t->opt->values && t->opt->json)
        keep_summary_value (m, row);
    else if (t->opt->values) {
        print_headings (t, row->attempt);
        printf ("    %-32s %8lld  %.9g\n", row->name, (long long)row->step, row->value);
    }
    return 0;
}

/* Report attempts whose result was accepted but whose directory is missing. */
static int complain_missing_folders (const struct trial_rows *t)
{
    char dir[PATH_MAX];
    int rv = EXIT_OK;

    for (long k = 1; k <= t->last; k++)
        if (attempt_is_missing (t->sweep, t->trial, k, dir, sizeof (dir))) {
            complain ("%s: missing, although the result of this attempt was accepted", dir);
            rv = EXIT_DAMAGED;
        }
    return rv;
}

static int read_metric_rows (struct trial_rows *t)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", t->sweep->dir, t->trial);
    if (slurmdl_trial_read (dir, take_trial_row, t, &err) == 0)
        return complain_missing_folders (t);
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

    for (size_t i = 0; i < t->n; i++) {
        const struct metric_summary *m = &t->list[i];
        struct libscols_line *line = table_line (tb);
        table_set (line, 0, "  %s", m->name);
        table_set (line, 1, "%ld", m->rows);
        table_set (line, 2, "%lld-%lld", (long long)m->first_step, (long long)m->last_step);
        table_set (line, 3, "%.6g", m->last);
        table_set (line, 4, "%.6g", m->min);
        table_set (line, 5, "%lld", (long long)m->min_step);
        table_set (line, 6, "%.6g", m->max);
        table_set (line, 7, "%lld", (long long)m->max_step);
    }
    if (t->n > 0)
        scols_print_table (tb);
    scols_unref_table (tb);
}

/* "now at 7 of 27: loss 0.97, 3.0s ago, 2.1 a second", without "of 27" if it is not known */
static void print_trial_now (const struct sweep *s, long n)
{
    const struct sweep_trial *t = sweep_trial (s, n);
    struct metric_progress p;
    char ago[32];

    if (t->state != TRIAL_OPEN || sweep_has_ended (s) || trial_progress (s, n, &p) < 0)
        return;
    duration_text (ago, sizeof (ago), progress_age (&p));
    printf ("  now at %lld", (long long)p.step);
    if (experiment_knows_length (s->exp))
        printf (" of %lld", (long long)t->target);
    printf (": %s %.6g, %s ago", sweep_metric (s, 0), p.value, ago);
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

static void print_trial_head (const struct sweep *s, long n)
{
    struct sweep_trial *t = sweep_trial (s, n);
    struct sweep_result r = trial_result (s, n, 0);
    char *text = json_string_of (trial_hparams (s, t), JSON_SORT_KEYS);
    char path[PATH_MAX];
    char took[32];

    printf ("trial %ld: %s", n, trial_state_name (s, t));
    if (t->length > 0 && (!s->exp->metric->is_assumed || isfinite (t->metric)))
        printf (", length %lld, %s %.6g", (long long)t->length, s->exp->metric->name, t->metric);
    if (t->length > r.length)
        printf (" (compared at %lld: %.6g)", (long long)r.length, r.value);
    puts (t->length > 0 ? "" : ", no result");
    print_trial_now (s, n);
    printf ("  hyperparameters: %s\n", text);
    printf ("  seed: %u\n", (unsigned)searcher_trial_seed (s->exp->search->config.seed, n));
    if (s->exp->search->config.repeats > 1)
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
    conditions_print (trial_conditions (s, n), stdout);
    print_healing (s, n, LONG_MAX);
    print_no_progress (s, n);
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

static void print_trial_json (struct trial_rows *t)
{
    struct columns c;
    json_t *metrics = json_object ();
    json_t *healing = json_array ();
    char path[PATH_MAX];
    json_t *o;

    columns_create (&c, t->sweep);
    o = trial_json (t->sweep, &c, t->trial);
    columns_destroy (&c);
    for (size_t i = 0; i < t->n; i++)
        json_object_set_new (metrics, t->list[i].name, summary_json (&t->list[i]));
    json_object_set_new (o, "metrics", metrics);
    each_healing (t->sweep, t->trial, healing_add_json, healing);
    json_object_set_new (o, "healing", healing);
    json_object_set_new (o, "no_progress", no_progress_json (t->sweep, t->trial));
    if (best_checkpoint (t->sweep, t->trial, path, sizeof (path)) == 0)
        json_object_set_new (o, "checkpoint", json_string (path));
    json_object_set_new (
        o, "seed",
        json_integer (searcher_trial_seed (t->sweep->exp->search->config.seed, t->trial)));
    print_shown_json (o);
}

/* Print a summary of each metric or, with --values, every value.  Returns an exit
 * status.
 */
static int show_trial (const struct sweep *s, long n, const struct command_line *line)
{
    const struct show_options *opt = line->options;
    struct trial_rows t = {
        .sweep = s, .opt = opt, .trial = n, .last = sweep_trial (s, n)->over + 1
    };
    int rv;

    if (!opt->json)
        print_trial_head (s, n);
    rv = read_metric_rows (&t);
    if (opt->json)
        print_trial_json (&t);
    else {
        print_headings (&t, t.last);
        if (!opt->values)
            print_summaries (&t);
    }
    rows_free (&t);
    return rv;
}

/* ---- the command ---- */

/* Notes to print for a job; 'dl show JOB 1' prints all of them. */
enum { HEALING_SHOWN = 10 };

static void print_selected (const struct sweep *s, const struct selection *sel)
{
    if (!sel->chosen)
        print_overview (s);
    if (!sel->chosen && s->exp->job->is_given)
        conditions_print (job_conditions (s), stdout);
    if (!sel->chosen && s->exp->job->is_given && s->ntrials > 0) {
        print_healing (s, 1, HEALING_SHOWN);
        print_no_progress (s, 1);
    }
    if (sel->chosen)
        show_columns (s, sel);
    else
        print_trials (s, sel->trials, sel->n);
    if (sel->n < s->ntrials && !sel->chosen)
        printf ("(%ld of %ld trials; 'dl show' prints all)\n", sel->n, s->ntrials);
}

static int show_experiment (const struct sweep *s, const struct command_line *line)
{
    const struct show_options *opt = line->options;
    struct selection sel;
    int rv = selection_make (&sel, s, line);

    if (rv == EXIT_OK && opt->json)
        show_json (s, &sel);
    else if (rv == EXIT_OK && opt->csv)
        show_csv (s, &sel);
    else if (rv == EXIT_OK)
        print_selected (s, &sel);
    selection_free (&sel);
    return rv;
}

int cmd_show (const struct command_line *line)
{
    const struct show_options *opt = line->options;
    struct sweep *s;
    long n;
    int rv;

    if (opt->json && opt->csv) {
        complain ("show: --json and --csv cannot be used together");
        return EXIT_USAGE;
    }
    if ((rv = open_experiment (line, line->args[0], &s)))
        return rv;
    if (opt->provenance)
        rv = provenance_print (s, opt->json);
    else if (line->nargs < 2)
        rv = show_experiment (s, line);
    else if ((rv = parse_trial (s, line->args[1], &n)) == 0)
        rv = show_trial (s, n, line);
    sweep_close (s);
    return rv;
}
