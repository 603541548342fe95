/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of experiments and trials: dl ls. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libsmartcols/libsmartcols.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/config/diagnostics.h"
#include "launcher/format/text.h"
#include "launcher/session/open.h"
#include "launcher/sweep/pareto_front.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"

/* ---- tables ---- */

struct column {
    const char *name;
    bool right;
};

static struct libscols_table *
new_table (const char *name, const struct column *columns, bool json)
{
    struct libscols_table *tb = scols_new_table ();

    if (!tb)
        return NULL;
    scols_table_set_name (tb, name);
    scols_table_enable_json (tb, json);
    for (; columns->name; columns++)
        scols_table_new_column (
            tb, columns->name, 0, columns->right ? SCOLS_FL_RIGHT : 0);
    return tb;
}

static void
set_cell (struct libscols_line *line, size_t column, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

static void
set_cell (struct libscols_line *line, size_t column, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start (ap, fmt);
    if (vasprintf (&text, fmt, ap) >= 0)
        scols_line_refer_data (line, column, text);
    va_end (ap);
}

/* ---- trials ---- */

/* clang-format off */
static const struct column trial_columns[] = {
    { "trial",  true  },
    { "state",  false },
    { "length", true  },
    { "best",   true  },
    { "last",   true  },
    { "time",   true  },
    { "attempts", true },
    { NULL,     false },
};
/* clang-format on */
enum { FIXED = 7 };

/* The further metrics, each in a column of its own. */
static void fill_metrics (struct libscols_line *line,
                          const struct sweep *s,
                          const struct trial *t,
                          size_t column)
{
    for (size_t i = 1; i < sweep_metrics (s); i++)
        if (t->values)
            set_cell (line, column + i - 1, "%.6g", t->values[i]);
}

static void fill_hparams (struct libscols_line *line,
                          const struct sweep *s,
                          const struct trial *t,
                          size_t column,
                          bool json)
{
    for (size_t i = 0; i < s->exp->nhparams; i++) {
        const struct hparam *h = &s->exp->hparams[i];
        char *value = h->dim >= 0 ? cell_text (s, t, h, json) : NULL;
        if (value)
            scols_line_refer_data (line, column, value);
        else if (h->dim >= 0 && !json)
            set_cell (line, column, "-");
        column += h->dim >= 0;
    }
}

static void add_trial_line (struct libscols_table *tb,
                            const struct sweep *s,
                            long n,
                            bool in_front)
{
    const struct trial *t = sweep_trial (s, n);
    struct libscols_line *line = scols_table_new_line (tb, NULL);
    bool json = scols_table_is_json (tb);
    char elapsed[32];

    if (!line)
        return;
    duration_text (elapsed, sizeof (elapsed), t->seconds);
    set_cell (line, 0, "%ld%s", n, in_front && !json ? "*" : "");
    set_cell (line, 1, "%s", trial_state_name (s, t));
    set_cell (line, 2, "%lld", (long long)t->length);
    if (t->length) {
        set_cell (line, 3, "%.6g", t->best);
        set_cell (line, 4, "%.6g", t->metric);
    }
    set_cell (line, 5, "%s", elapsed);
    set_cell (line, 6, "%ld", t->over + (t->state == TRIAL_OPEN));
    fill_metrics (line, s, t, FIXED);
    fill_hparams (line, s, t, FIXED + sweep_metrics (s) - 1, json);
    if (json && sweep_metrics (s) > 1)
        set_cell (line,
                  scols_table_get_ncols (tb) - 1,
                  "%s",
                  in_front ? "true" : "false");
}

struct order {
    const struct sweep *s;
    long trial;
};

static int best_first (const void *a, const void *b)
{
    const struct order *x = a;
    const struct order *y = b;
    double p = sweep_trial (x->s, x->trial)->best;
    double q = sweep_trial (y->s, y->trial)->best;

    if (sweep_better (x->s, p, q))
        return -1;
    if (sweep_better (x->s, q, p))
        return 1;
    return x->trial < y->trial ? -1 : 1;
}

static struct order *sorted_trials (const struct sweep *s)
{
    struct order *list = calloc ((size_t)s->ntrials + 1, sizeof (*list));

    for (long i = 0; list && i < s->ntrials; i++)
        list[i] = (struct order){ s, i + 1 };
    if (list)
        qsort (list, (size_t)s->ntrials, sizeof (*list), best_first);
    return list;
}

/* In JSON the front has a column; else it is a star at the trial's number. */
static void add_columns (struct libscols_table *tb, const struct sweep *s)
{
    for (size_t i = 1; i < sweep_metrics (s); i++)
        scols_table_new_column (tb, sweep_metric (s, i), 0, SCOLS_FL_RIGHT);
    for (size_t i = 0; i < s->exp->nhparams; i++)
        if (s->exp->hparams[i].dim >= 0)
            scols_table_new_column (tb,
                                    s->exp->hparams[i].path,
                                    0,
                                    SCOLS_FL_RIGHT | SCOLS_FL_TRUNC);
    if (scols_table_is_json (tb) && sweep_metrics (s) > 1)
        scols_table_new_column (tb, "pareto", 0, 0);
}

void print_excluded (const struct sweep *s)
{
    for (size_t i = 0; i < s->nhosts; i++)
        if (s->hosts[i].why)
            printf ("machine %s is excluded: %s\n",
                    s->hosts[i].name,
                    s->hosts[i].why);
}

int print_trials (const struct sweep *s, long max, bool json)
{
    struct libscols_table *tb = new_table ("trials", trial_columns, json);
    struct order *order = sorted_trials (s);
    bool *front = sweep_metrics (s) > 1 ? sweep_front (s) : NULL;
    long rows = max > 0 && max < s->ntrials ? max : s->ntrials;

    if (!tb || !order)
        return -1;
    add_columns (tb, s);
    for (long i = 0; i < rows; i++) {
        long n = order[i].trial;
        add_trial_line (tb, s, n, front && front[n - 1]);
    }
    scols_print_table (tb);
    scols_unref_table (tb);
    if (front && !json)
        puts ("* no trial is better in one metric and as good in the others");
    if (rows < s->ntrials && !json)
        printf (
            "(%ld of %ld trials; 'dl show' prints all)\n", rows, s->ntrials);
    free (front);
    free (order);
    return 0;
}

/* ---- dl ls ---- */

/* clang-format off */
static const struct column experiment_columns[] = {
    { "experiment", false },
    { "state",      false },
    { "searcher",   false },
    { "progress",   true  },
    { "trials",     true  },
    { "metric",     false },
    { "best",       true  },
    { "created",    false },
    { "labels",     false },
    { "archived",   false },
    { NULL,         false },
};
/* clang-format on */
enum { ARCHIVED = 9 }; /* the column, the last */

/* "best,paper" */
static char *labels_text (const struct sweep *s)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);

    for (char **l = s->labels; f && l && *l; l++)
        fprintf (f, "%s%s", l == s->labels ? "" : ",", *l);
    if (f)
        fclose (f);
    return out;
}

static void fill_experiment (struct libscols_line *line, const struct sweep *s)
{
    const struct trial *best = sweep_trial (s, s->best);
    char created[32];

    time_text (created, sizeof (created), s->created);
    set_cell (line, 1, "%s", sweep_state_name (s->state));
    set_cell (line, 2, "%s", s->exp->searcher_name);
    if (s->searcher)
        set_cell (
            line, 3, "%.0f%%", floor (100 * searcher_progress (s->searcher)));
    set_cell (line, 4, "%ld", s->ntrials);
    set_cell (line, 5, "%s", s->exp->metric);
    if (best)
        set_cell (line, 6, "%.6g", best->best);
    set_cell (line, 7, "%s", created);
    scols_line_refer_data (line, 8, labels_text (s));
}

struct listing {
    struct libscols_table *tb;
    const struct settings *st;
};

/* 's' is NULL if it cannot be read. */
static bool is_listed (const struct settings *st, const struct sweep *s)
{
    bool has = !st->label;

    if (!s)
        return !st->label;
    for (char **l = s->labels; !has && l && *l; l++)
        has = !strcmp (*l, st->label);
    return has && (!s->archived || st->all);
}

static int add_line (struct listing *l, const char *dir, const struct sweep *s)
{
    struct libscols_line *line = scols_table_new_line (l->tb, NULL);
    const char *base = strrchr (dir, '/');

    if (!line)
        return -1;
    set_cell (line, 0, "%s", base ? base + 1 : dir);
    if (s)
        fill_experiment (line, s);
    if (s && scols_table_get_ncols (l->tb) > ARCHIVED)
        set_cell (line, ARCHIVED, "%s", s->archived ? "yes" : "no");
    if (!s)
        set_cell (line, 1, "damaged");
    return 0;
}

/* One experiment that cannot be read must not hide the others. */
static int add_experiment (const char *dir, void *arg)
{
    struct listing *l = arg;
    struct slurmdl_error err = { "" };
    struct problems p;
    struct sweep *s;
    int rv = 0;

    if (problems_open (&p) < 0)
        return -1;
    s = sweep_open (dir, &p, &err);
    if (is_listed (l->st, s))
        rv = add_line (l, dir, s);
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return rv;
}

int cmd_ls (const struct settings *st)
{
    struct libscols_table *tb =
        new_table ("experiments", experiment_columns, st->json);

    struct listing l = { tb, st };

    if (!tb)
        return EXIT_IO;
    if (!st->all && !st->json)
        scols_table_remove_column (tb, scols_table_get_column (tb, ARCHIVED));
    if (each_experiment (st->dir, add_experiment, &l) < 0) {
        complain ("%s: %s", st->dir, strerror (errno));
        scols_unref_table (tb);
        return EXIT_NOT_FOUND;
    }
    scols_print_table (tb);
    scols_unref_table (tb);
    return EXIT_OK;
}
