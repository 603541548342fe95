/* SPDX-License-Identifier: Apache-2.0 */
/* Which trials and which columns a user wants to see, in which order. */
#include "launcher/cmd/select.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "searcher/space/constraint.h"

/* ---- names of columns ---- */

/* A name that a user may write, and the column that it means. */
struct column_name {
    const char *name;
    size_t column;
};

struct column_names {
    struct column_name *list;
    size_t n;
    char **owned; /* "hp.lr" */
};

static void add_name (struct column_names *names, const char *name, size_t column)
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

/* The metric's own name means the value by which trials are compared. */
static void add_others (struct column_names *names, const struct columns *c, const struct sweep *s)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].title)
            add_name (names, c->list[i].title, i);
    if (sweep_metrics (s) == 1)
        add_name (names, sweep_metric (s, 0), find_fixed (c, "best"));
    for (size_t i = 0, k = 0; sweep_metrics (s) > 1 && i < c->n; i++)
        if (!strncmp (c->list[i].name, "metric.", 7) && !c->list[i].hparam && !c->list[i].logged)
            add_name (names, sweep_metric (s, k++), i);
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].logged)
            add_name (names, c->list[i].text, i);
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].hparam && asprintf (&names->owned[i], "hp.%s", c->list[i].name) > 0)
            add_name (names, names->owned[i], i);
}

/* The first that fits counts: a column before a hyperparameter of its name. */
static int names_make (struct column_names *names, const struct columns *c, const struct sweep *s)
{
    size_t most = 3 * c->n + sweep_metrics (s);

    *names = (struct column_names){ 0 };
    names->list = calloc (most + 1, sizeof (*names->list));
    names->owned = calloc (c->n + 1, sizeof (*names->owned));
    if (!names->list || !names->owned)
        return -1;
    for (size_t i = 0; i < c->n; i++)
        add_name (names, c->list[i].name, i);
    add_others (names, c, s);
    return 0;
}

static void names_free (struct column_names *names, const struct columns *c)
{
    for (size_t i = 0; names->owned && i < c->n; i++)
        free (names->owned[i]);
    free (names->owned);
    free (names->list);
}

static const struct column_name *find_name (const struct column_names *names, const char *option,
                                            const char *name)
{
    const char **words;
    const char *meant;

    for (size_t i = 0; i < names->n; i++)
        if (!strcmp (names->list[i].name, name))
            return &names->list[i];
    words = calloc (names->n + 1, sizeof (*words));
    for (size_t i = 0; words && i < names->n; i++)
        words[i] = names->list[i].name;
    meant = words ? nearest_word (name, words) : NULL;
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
    char *list = strdup (wanted);
    char *save = NULL;
    bool good = list && (c->list = calloc (most, sizeof (*c->list)));

    for (char *w = good ? strtok_r (list, ", ", &save) : NULL; w && good;
         w = strtok_r (NULL, ", ", &save))
        if ((good = (found = find_name (names, "columns", w))))
            c->list[c->n++] = sel->all.list[found->column];
    free (list);
    if (good && c->n == 0) {
        complain ("--columns: names of columns are missing");
        good = false;
    }
    sel->chosen = true;
    return good ? 0 : -1;
}

/* ---- --where ---- */

/* The texts of a column: the choices of the expression. */
struct column_texts {
    const char **list;
    long n;
    bool open; /* others would make sense, too */
};

static const char *const states[] = { "open",   "paused",        "completed",
                                      "failed", "stopped early", "rejected" };
enum { NSTATES = sizeof (states) / sizeof (*states) };

/* Those of all trials, each once, sorted. */
static int texts_make (struct column_texts *t, const struct sweep *s, const struct result_column *c)
{
    long n = 0;

    t->open = strcmp (c->name, "state") || c->hparam;
    t->list = calloc ((size_t)s->ntrials + NSTATES + 1, sizeof (*t->list));
    if (!t->list)
        return -1;
    for (long i = 1; i <= s->ntrials; i++) {
        const char *text = column_cell (c, s, i).text;
        if (text)
            t->list[n++] = text;
    }
    for (int i = 0; !t->open && i < NSTATES; i++)
        t->list[n++] = states[i];
    if (n > 0)
        qsort (t->list, (size_t)n, sizeof (*t->list), strings_compare);
    for (long i = 0; i < n; i++)
        if (t->n == 0 || strcmp (t->list[t->n - 1], t->list[i]))
            t->list[t->n++] = t->list[i];
    return 0;
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
    struct column_texts *texts; /* of each column; of numbers: empty */
    double *values;             /* of each column, for a trial ... */
    double *x;                  /* ... and of each name */
    struct constraint program;
};

static void say_unknown (const struct column_names *names, const char *at)
{
    char word[64];

    snprintf (word, sizeof (word), "%.*s", (int)strcspn (at, " \t\"'`<>=!&|()+-*/%^,"), at);
    find_name (names, "where", word);
}

static int compile (struct filter *f, const char *text)
{
    size_t n = f->names->n;
    const char **words = calloc (n + 1, sizeof (*words));
    const char *const **labels = calloc (n + 1, sizeof (*labels));
    long *nlabels = calloc (n + 1, sizeof (*nlabels));
    bool *open = calloc (n + 1, sizeof (*open));
    struct constraint_names names = { words, labels, nlabels, n, open, true };
    const char *why = "out of memory";
    int column = 0;

    if (words && labels && nlabels && open) {
        for (size_t i = 0; i < n; i++) {
            const struct column_texts *t = &f->texts[f->names->list[i].column];
            words[i] = f->names->list[i].name;
            labels[i] = t->list;
            nlabels[i] = t->n;
            open[i] = t->open;
        }
        why = constraint_compile (&f->program, text, &names, &column);
    }
    if (why && !strcmp (why, "there is nothing of this name"))
        say_unknown (f->names, text + column - 1);
    else if (why)
        complain ("--where: column %d: %s%s", column, why,
                  strstr (why, "choice") ? " (states are open, paused, completed, failed, "
                                           "'stopped early' and rejected)"
                                         : "");
    free (words);
    free (labels);
    free (nlabels);
    free (open);
    return why ? -1 : 0;
}

static bool keeps (struct filter *f, long trial)
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

    f->texts = calloc (n + 1, sizeof (*f->texts));
    f->values = calloc (n + 1, sizeof (*f->values));
    f->x = calloc (f->names->n + 1, sizeof (*f->x));
    if (!f->texts || !f->values || !f->x)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (f->all->list[i].type == COLUMN_TEXT
            && texts_make (&f->texts[i], f->s, &f->all->list[i]) < 0)
            return -1;
    return compile (f, text);
}

static int filter_trials (struct selection *sel, const struct sweep *s,
                          const struct column_names *names, const char *text)
{
    struct filter f = { .s = s, .all = &sel->all, .names = names };
    int rv = filter_make (&f, text);
    long n = 0;

    for (long i = 0; rv == 0 && i < sel->n; i++)
        if (keeps (&f, sel->trials[i]))
            sel->trials[n++] = sel->trials[i];
    sel->n = n;
    for (size_t i = 0; f.texts && i < sel->all.n; i++)
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

static int compare_numbers (double a, double b)
{
    return (a > b) - (a < b);
}

/* Where there is no value is last, upwards and downwards. */
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
        return no_x - no_y ?: compare_numbers ((double)i, (double)k);
    rv = text   ? strcmp (x.text, y.text)
         : real ? compare_numbers (x.real, y.real)
                : (x.integer > y.integer) - (x.integer < y.integer);
    rv = o->down ? -rv : rv;
    return rv ?: compare_numbers ((double)i, (double)k);
}

static int sort_trials (struct selection *sel, const struct sweep *s,
                        const struct column_names *names, const char *key)
{
    struct sorting o = { .s = s, .down = *key == '-' };
    const struct column_name *found = find_name (names, "sort", key + o.down);

    if (!found)
        return -1;
    o.column = &sel->all.list[found->column];
    if (sel->n > 0)
        qsort_r (sel->trials, (size_t)sel->n, sizeof (*sel->trials), compare_cells, &o);
    return 0;
}

/* ---- all ---- */

static int select_by (struct selection *sel, const struct sweep *s, const struct show_options *opt,
                      const struct column_names *names)
{
    sel->shown = (struct columns){ .n = 0 };
    if (opt->columns && choose_columns (sel, names, opt->columns) < 0)
        return EXIT_USAGE;
    if (!opt->columns)
        sel->shown = (struct columns){ sel->all.list, sel->all.n - sel->logged.n };
    if ((opt->where && filter_trials (sel, s, names, opt->where) < 0)
        || (opt->sort && sort_trials (sel, s, names, opt->sort) < 0))
        return EXIT_USAGE;
    if (opt->trials > 0 && opt->trials < sel->n)
        sel->n = (long)opt->trials;
    return EXIT_OK;
}

/* Metrics that are logged, but not optimised, are columns if the options name
 * one: reading them takes a while.  What a few trials have logged tells which
 * there are.
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

static int read_shown (struct selection *sel, const struct sweep *s)
{
    struct columns *c = &sel->all;

    for (size_t i = 0; i < sel->logged.n; i++) {
        free (c->list[--c->n].name);
        free (c->list[c->n].text);
    }
    logged_free (&sel->logged);
    return logged_read_all (&sel->logged, s, sel->trials, sel->n) < 0
               ? -1
               : columns_add_logged (c, &sel->logged);
}

/* As text there are those that the table chooses. */
static int show_logged (struct selection *sel, const struct sweep *s,
                        const struct show_options *opt)
{
    if (sel->chosen || !(opt->json || opt->csv))
        return 0;
    if (!sel->complete && read_shown (sel, s) < 0)
        return -1;
    sel->shown = sel->all;
    return 0;
}

static int add_logged (struct selection *sel, const struct sweep *s, const struct show_options *opt)
{
    long sample = sel->n < SAMPLE_TRIALS ? sel->n : SAMPLE_TRIALS;

    if (!opt->columns && !opt->where && !opt->sort)
        return 0;
    if (logged_read (&sel->logged, s, sel->trials, sample, SAMPLE_ROWS) < 0)
        return -1;
    if (!names_logged (sel, opt))
        return columns_add_logged (&sel->all, &sel->logged);
    sel->complete = true;
    logged_free (&sel->logged);
    return logged_read (&sel->logged, s, sel->trials, sel->n, LONG_MAX) < 0
               ? -1
               : columns_add_logged (&sel->all, &sel->logged);
}

int selection_make (struct selection *sel, const struct sweep *s, const struct command_line *line)
{
    struct slurmdl_error err = { "out of memory" };
    struct column_names names = { 0 };
    int rv = -1;

    *sel = (struct selection){ .n = s->ntrials };
    if (columns_create (&sel->all, s) == 0 && (sel->trials = sweep_order (s))
        && add_logged (sel, s, line->options) == 0 && names_make (&names, &sel->all, s) == 0)
        rv = select_by (sel, s, line->options, &names);
    names_free (&names, &sel->all);
    if (rv == EXIT_OK && show_logged (sel, s, line->options) < 0)
        rv = -1;
    return rv < 0 ? fail (&err) : rv;
}

void selection_free (struct selection *sel)
{
    if (sel->chosen)
        free (sel->shown.list);
    columns_destroy (&sel->all);
    logged_free (&sel->logged);
    free (sel->trials);
}
