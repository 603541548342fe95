/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of experiments and trials: dl ls, dl show, dl logs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libsmartcols/libsmartcols.h>

#include "launcher/cmd.h"

void duration_text (char *buf, size_t size, double seconds)
{
    long s = (long)seconds;

    if (s >= 3600)
        snprintf (buf, size, "%ldh%02ldm", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf (buf, size, "%ldm%02lds", s / 60, s % 60);
    else
        snprintf (buf, size, "%.1fs", seconds);
}

/* Short: all digits are in hparams.json and in --json. */
static char *cell_text (const struct sweep *s,
                        const struct trial *t,
                        const struct hparam *h,
                        bool json)
{
    char *text = hparams_text (t->hparams, h->path);
    enum param_type type = s->exp->params[h->dim].type;
    char *brief;

    if (!text || json || (type != PARAM_FLOAT && type != PARAM_LOG)
        || asprintf (&brief, "%.4g", strtod (text, NULL)) < 0)
        return text;
    free (text);
    return brief;
}

char *trial_text (const struct sweep *s, const struct trial *t)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);
    const char *gap = "";

    for (size_t i = 0; f && i < s->exp->nhparams; i++) {
        const struct hparam *h = &s->exp->hparams[i];
        char *value = h->dim >= 0 ? cell_text (s, t, h, false) : NULL;
        if (value) {
            fprintf (f, "%s%s=%s", gap, h->path, value);
            gap = " ";
        }
        free (value);
    }
    if (f)
        fclose (f);
    return out;
}

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

static void
add_trial_line (struct libscols_table *tb, const struct sweep *s, long n)
{
    const struct trial *t = sweep_trial (s, n);
    struct libscols_line *line = scols_table_new_line (tb, NULL);
    char elapsed[32];
    size_t column = FIXED;

    if (!line)
        return;
    duration_text (elapsed, sizeof (elapsed), t->seconds);
    set_cell (line, 0, "%ld", n);
    set_cell (line, 1, "%s", trial_state_name (s, t));
    set_cell (line, 2, "%lld", (long long)t->length);
    if (t->length) {
        set_cell (line, 3, "%.6g", t->best);
        set_cell (line, 4, "%.6g", t->metric);
    }
    set_cell (line, 5, "%s", elapsed);
    set_cell (line, 6, "%ld", t->over + (t->state == TRIAL_OPEN));
    for (size_t i = 0; i < s->exp->nhparams; i++) {
        char *value;
        if (s->exp->hparams[i].dim < 0)
            continue;
        if ((value = cell_text (
                 s, t, &s->exp->hparams[i], scols_table_is_json (tb))))
            scols_line_refer_data (line, column, value);
        column++;
    }
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

int print_trials (const struct sweep *s, long max, bool json)
{
    struct libscols_table *tb = new_table ("trials", trial_columns, json);
    struct order *order = sorted_trials (s);
    long rows = max > 0 && max < s->ntrials ? max : s->ntrials;

    if (!tb || !order)
        return -1;
    for (size_t i = 0; i < s->exp->nhparams; i++)
        if (s->exp->hparams[i].dim >= 0)
            scols_table_new_column (tb,
                                    s->exp->hparams[i].path,
                                    0,
                                    SCOLS_FL_RIGHT | SCOLS_FL_TRUNC);
    for (long i = 0; i < rows; i++)
        add_trial_line (tb, s, order[i].trial);
    scols_print_table (tb);
    scols_unref_table (tb);
    if (rows < s->ntrials && !json)
        printf (
            "(%ld of %ld trials; 'dl show' prints all)\n", rows, s->ntrials);
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
    { NULL,         false },
};
/* clang-format on */

static void time_text (char *buf, size_t size, double when)
{
    time_t t = (time_t)when;
    struct tm tm;

    strftime (buf, size, "%Y-%m-%d %H:%M", localtime_r (&t, &tm));
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
}

/* One experiment that cannot be read must not hide the others. */
static int add_experiment (const char *dir, void *arg)
{
    struct libscols_line *line = scols_table_new_line (arg, NULL);
    struct slurmdl_error err = { "" };
    const char *base = strrchr (dir, '/');
    struct problems p;
    struct sweep *s;

    if (!line || problems_open (&p) < 0)
        return -1;
    set_cell (line, 0, "%s", base ? base + 1 : dir);
    if ((s = sweep_open (dir, &p, &err)))
        fill_experiment (line, s);
    else
        set_cell (line, 1, "damaged");
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return 0;
}

int cmd_ls (const struct settings *st)
{
    struct libscols_table *tb =
        new_table ("experiments", experiment_columns, st->json);

    if (!tb)
        return EXIT_IO;
    if (each_experiment (st->dir, add_experiment, tb) < 0) {
        complain ("%s: %s", st->dir, strerror (errno));
        scols_unref_table (tb);
        return EXIT_NOT_FOUND;
    }
    scols_print_table (tb);
    scols_unref_table (tb);
    return EXIT_OK;
}

/* ---- dl show ---- */

static int trial_number (const struct sweep *s, const char *text, long *n)
{
    char *end;

    *n = strtol (text, &end, 10);
    if (end != text && !*end && sweep_trial (s, *n))
        return 0;
    complain ("%s: no trial '%s' (there are %ld)", s->dir, text, s->ntrials);
    return EXIT_NOT_FOUND;
}

static int print_row (const struct slurmdl_row *row, void *arg)
{
    (void)arg;
    printf (
        "    %-32s %8lld  %.9g\n", row->name, (long long)row->step, row->value);
    return 0;
}

static void print_attempt (const struct sweep *s, long trial, long attempt)
{
    char dir[PATH_MAX];

    snprintf (
        dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    if (access (dir, F_OK) < 0)
        return;
    printf ("  attempt %ld: %s\n", attempt, dir);
    slurmdl_metrics_read_dir (dir, print_row, NULL, NULL);
}

static void show_trial (const struct sweep *s, long n)
{
    const struct trial *t = sweep_trial (s, n);
    char *text = json_dumps (t->hparams, JSON_SORT_KEYS);

    printf ("trial %ld: %s, length %lld, %s %.6g (best %.6g at %lld)\n",
            n,
            trial_state_name (s, t),
            (long long)t->length,
            s->exp->metric,
            t->metric,
            t->best,
            (long long)t->best_length);
    printf ("  hyperparameters: %s\n", text ? text : "");
    printf ("  seed: %u\n",
            (unsigned)searcher_trial_seed (s->exp->search.seed, n));
    if (t->why)
        printf ("  last failure: %s\n", t->why);
    for (long k = 1; k <= t->over + 1; k++)
        print_attempt (s, n, k);
    free (text);
}

static void show_header (const struct sweep *s)
{
    const struct trial *best = sweep_trial (s, s->best);

    printf ("%s: %s, searcher %s, %.0f %% done\n",
            s->dir,
            sweep_state_name (s->state),
            s->exp->searcher_name,
            floor (100 * searcher_progress (s->searcher)));
    if (best)
        printf ("best %s %.6g: trial %ld at length %lld\n",
                s->exp->metric,
                best->best,
                s->best,
                (long long)best->best_length);
}

int cmd_show (const struct settings *st)
{
    struct sweep *s;
    int rv = open_experiment (st, st->args[0], &s);
    long n;

    if (rv)
        return rv;
    if (st->nargs == 2) {
        if ((rv = trial_number (s, st->args[1], &n)) == 0)
            show_trial (s, n);
    } else {
        if (!st->json)
            show_header (s);
        print_trials (s, (long)st->trials, st->json);
    }
    sweep_close (s);
    return rv;
}

/* ---- dl logs ---- */

static int copy_file (const char *path)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    char buf[65536];
    ssize_t n;

    if (fd < 0) {
        complain ("%s: %s", path, strerror (errno));
        return EXIT_NOT_FOUND;
    }
    while ((n = read (fd, buf, sizeof (buf))) > 0)
        fwrite (buf, 1, (size_t)n, stdout);
    close (fd);
    return n < 0 ? EXIT_IO : EXIT_OK;
}

static long last_attempt (const struct sweep *s, long trial)
{
    long k = sweep_trial (s, trial)->over + 1;
    char dir[PATH_MAX];

    for (; k > 1; k--) {
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial, k);
        if (access (dir, F_OK) == 0)
            break;
    }
    return k;
}

int cmd_logs (const struct settings *st)
{
    bool named = st->nargs == 2;
    struct sweep *s;
    char path[PATH_MAX];
    int rv = open_experiment (st, named ? st->args[0] : NULL, &s);
    long n;

    if (rv)
        return rv;
    if ((rv = trial_number (s, st->args[named], &n)) == 0) {
        snprintf (path,
                  sizeof (path),
                  "%s/trials/%04ld/a.%ld/log",
                  s->dir,
                  n,
                  st->attempt ? (long)st->attempt : last_attempt (s, n));
        rv = copy_file (path);
    }
    sweep_close (s);
    return rv;
}
