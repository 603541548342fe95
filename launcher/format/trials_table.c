/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trials, the best of them, and the machines that are excluded. */
#include "launcher/format/trials_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/format/table.h"
#include "launcher/format/text.h"
#include "launcher/sweep/pareto_front.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"

/* clang-format off */
static const struct table_column trial_columns[] = {
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
                          const struct sweep_trial *t,
                          size_t column)
{
    for (size_t i = 1; i < sweep_metrics (s); i++)
        if (t->values)
            table_set (line, column + i - 1, "%.6g", t->values[i]);
}

static void fill_hparams (struct libscols_line *line,
                          const struct sweep *s,
                          const struct sweep_trial *t,
                          size_t column,
                          bool json)
{
    for (size_t i = 0; i < s->exp->nhparams; i++) {
        const struct hparam *h = &s->exp->hparams[i];
        char *value = h->dim >= 0 ? cell_text (s, t, h, json) : NULL;
        if (value)
            scols_line_refer_data (line, column, value);
        else if (h->dim >= 0 && !json)
            table_set (line, column, "-");
        column += h->dim >= 0;
    }
}

static void add_trial_line (struct libscols_table *tb,
                            const struct sweep *s,
                            long n,
                            bool in_front)
{
    const struct sweep_trial *t = sweep_trial (s, n);
    struct libscols_line *line = scols_table_new_line (tb, NULL);
    bool json = scols_table_is_json (tb);
    char elapsed[32];

    if (!line)
        return;
    duration_text (elapsed, sizeof (elapsed), t->seconds);
    table_set (line, 0, "%ld%s", n, in_front && !json ? "*" : "");
    table_set (line, 1, "%s", trial_state_name (s, t));
    table_set (line, 2, "%lld", (long long)t->length);
    if (t->length) {
        table_set (line, 3, "%.6g", t->best);
        table_set (line, 4, "%.6g", t->metric);
    }
    table_set (line, 5, "%s", elapsed);
    if (!json && t->fails && t->why)
        table_set (line, scols_table_get_ncols (tb) - 1, "%s", t->why);
    table_set (line, 6, "%ld", t->over + (t->state == TRIAL_OPEN));
    fill_metrics (line, s, t, FIXED);
    fill_hparams (line, s, t, FIXED + sweep_metrics (s) - 1, json);
    if (json && sweep_metrics (s) > 1)
        table_set (line,
                   scols_table_get_ncols (tb) - 1,
                   "%s",
                   in_front ? "true" : "false");
}

struct ranked {
    const struct sweep *s;
    long trial;
};

static int best_first (const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    double p = sweep_trial (x->s, x->trial)->best;
    double q = sweep_trial (y->s, y->trial)->best;

    if (sweep_better (x->s, p, q))
        return -1;
    if (sweep_better (x->s, q, p))
        return 1;
    return x->trial < y->trial ? -1 : 1;
}

static struct ranked *sorted_trials (const struct sweep *s)
{
    struct ranked *list = calloc ((size_t)s->ntrials + 1, sizeof (*list));

    for (long i = 0; list && i < s->ntrials; i++)
        list[i] = (struct ranked){ s, i + 1 };
    if (list)
        qsort (list, (size_t)s->ntrials, sizeof (*list), best_first);
    return list;
}

/* Why attempts failed, where any did, in the last column. */
static bool has_failures (const struct sweep *s)
{
    for (long i = 0; i < s->ntrials; i++)
        if (s->trials[i].fails && s->trials[i].why)
            return true;
    return false;
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
    if (!scols_table_is_json (tb) && has_failures (s))
        scols_table_new_column (tb, "failure", 0, SCOLS_FL_TRUNC);
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
    struct libscols_table *tb = table_create ("trials", trial_columns, json);
    struct ranked *order = sorted_trials (s);
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
        puts ("* Pareto front");
    if (rows < s->ntrials && !json)
        printf (
            "(%ld of %ld trials; 'dl show' prints all)\n", rows, s->ntrials);
    free (front);
    free (order);
    return 0;
}

/* Whether a trial's last result had a number for it. */
static bool has_number (const struct sweep *s, size_t metric)
{
    for (long i = 1; i <= s->ntrials; i++) {
        const struct sweep_trial *t = sweep_trial (s, i);
        if (metric == 0 && isfinite (t->best))
            return true;
        if (metric > 0 && t->values && isfinite (t->values[metric]))
            return true;
    }
    return false;
}

static void print_numberless (const struct sweep *s)
{
    for (size_t i = 0; i < sweep_metrics (s); i++)
        if (!has_number (s, i))
            printf ("%s was never a finite number in %ld result%s: %s\n",
                    sweep_metric (s, i),
                    s->nresults,
                    s->nresults == 1 ? "" : "s",
                    i ? "the Pareto front is empty" : "there is no best trial");
}

void print_best (const struct sweep *s)
{
    const struct sweep_trial *t = sweep_trial (s, s->best);

    if (s->nresults)
        print_numberless (s);
    if (t)
        printf ("best %s %.6g: trial %ld at length %lld\n",
                s->exp->metric,
                t->best,
                s->best,
                (long long)t->best_length);
}
