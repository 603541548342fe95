/* SPDX-License-Identifier: Apache-2.0 */
/* dl ls: print the table of experiments. */
#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"

/* clang-format off */
static const struct table_column experiment_columns[] = {
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
    char *out;
    size_t size;
    FILE *f = xopen_memstream (&out, &size);

    for (char **l = s->labels; l && *l; l++)
        fprintf (f, "%s%s", l == s->labels ? "" : ",", *l);
    xclose_memstream (f);
    return out;
}

/* Scripts (--json) get the bare state. */
static void set_state (struct libscols_line *line, const struct sweep *s, bool json)
{
    double idle = json ? NAN : sweep_idle (s);
    char text[32];

    if (isnan (idle)) {
        table_set (line, 1, "%s", sweep_has_lost_log (s) ? "damaged" : state_text (s));
        return;
    }
    duration_text (text, sizeof (text), idle);
    table_set (line, 1, "%s, no worker for %s", state_text (s), text);
}

static void fill_experiment (struct libscols_line *line, const struct sweep *s)
{
    long best = sweep_best (s);
    char created[32];

    time_text (created, sizeof (created), s->created > 0 ? s->created : NAN);
    table_set (line, 2, "%s", s->exp->search->searcher);
    if (s->searcher)
        table_set (line, 3, "%.0f%%", floor (100 * searcher_progress (s->searcher)));
    table_set (line, 4, "%ld", s->ntrials);
    if (!s->exp->metric->is_assumed)
        table_set (line, 5, "%s", s->exp->metric->name);
    if (best)
        table_set (line, 6, "%.6g", point_result (s, trial_point (s, best), 0).value);
    table_set (line, 7, "%s", created);
    scols_line_refer_data (line, 8, labels_text (s));
}

struct listing {
    struct libscols_table *tb;
    const struct ls_options *opt;
};

/* Hidden by dl archive, or because job.ttl_after_finished has passed. */
static bool is_hidden (const struct sweep *s)
{
    int64_t ttl = s->exp->job->ttl;

    return s->archived
           || (ttl >= 0 && sweep_has_ended (s) && time (NULL) >= (time_t)s->changed + (time_t)ttl);
}

/* 's' is NULL if the experiment cannot be read. */
static bool sweep_is_listed (const struct ls_options *opt, const struct sweep *s)
{
    bool has = !opt->label;

    if (!s)
        return !opt->label;
    for (char **l = s->labels; !has && l && *l; l++)
        has = !strcmp (*l, opt->label);
    return has && (!is_hidden (s) || opt->all);
}

static void add_list_line (const struct listing *l, const char *dir, const struct sweep *s)
{
    struct libscols_line *line = table_line (l->tb);
    const char *base = strrchr (dir, '/');

    table_set (line, 0, "%s", base ? base + 1 : dir);
    if (s) {
        set_state (line, s, l->opt->json);
        fill_experiment (line, s);
    }
    if (s && scols_table_get_ncols (l->tb) > ARCHIVED)
        table_set (line, ARCHIVED, "%s", is_hidden (s) ? "yes" : "no");
    if (!s)
        table_set (line, 1, "damaged");
}

/* An experiment that cannot be read must not hide the others. */
static int add_experiment (const char *dir, void *arg)
{
    struct listing *l = arg;
    struct slurmdl_error err = { "" };
    struct problems p;
    struct sweep *s;

    problems_open (&p);
    s = sweep_open (dir, &p, &err);
    if (sweep_is_listed (l->opt, s))
        add_list_line (l, dir, s);
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return 0;
}

/* An empty table would not tell the user about a wrong directory or a misspelt label.
 */
static void print_no_experiments (const struct command_line *line)
{
    const struct ls_options *opt = line->options;
    complain ("no experiment%s%s%s in %s (%sset the folder with --dir or DL_DIR)",
              opt->label ? " with the label '" : "", opt->label ? opt->label : "",
              opt->label ? "'" : "", line->dir, opt->all ? "" : "--all lists archived ones; ");
}

int cmd_ls (const struct command_line *line)
{
    const struct ls_options *opt = line->options;
    struct libscols_table *tb = table_create ("experiments", experiment_columns, opt->json);
    struct listing l = { tb, opt };

    if (!opt->all && !opt->json)
        scols_table_remove_column (tb, scols_table_get_column (tb, ARCHIVED));
    if (each_experiment (line->dir, add_experiment, &l) < 0) {
        complain ("%s: %s", line->dir, strerror (errno));
        scols_unref_table (tb);
        return EXIT_NOT_FOUND;
    }
    if (!opt->json && scols_table_get_nlines (tb) == 0)
        print_no_experiments (line);
    table_print (tb);
    scols_unref_table (tb);
    return EXIT_OK;
}
