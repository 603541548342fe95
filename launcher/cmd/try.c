/* SPDX-License-Identifier: Apache-2.0 */
/* dl try: run one trial of length 1 here and report what it did. */
#include <libconfig.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/code/code.h"
#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/diagnostics.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/missing_metric.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/slurmdl.h"
#include "searcher/searcher.h"

/* ---- the point to try ---- */

/* Sample a point as random search would.  Every searcher trains such points. */
static int sample_point (const struct experiment *e, double *x)
{
    const struct search_config config = {
        .name = "random",
        .seed = e->search->seed < 0 ? (uint64_t)time (NULL) : (uint64_t)e->search->seed,
        .max_trials = 1,
        .max_length = 1,
        .smaller_is_better = true,
        .constraint = e->search->constraint,
    };
    struct searcher *s = searcher_create (&config, e->space->params, e->space->nparams);
    struct search_op op;
    int rv = s && searcher_ask (s, &op, x) == SEARCH_RUN ? 0 : -1;

    searcher_destroy (s);
    return rv;
}

/* Write the point to 'x': the given one, which is the last point of searcher.try_first,
 * or a random one.  Returns -1 if no point satisfies the constraint.
 */
static int try_point (const struct experiment *e, bool given, double *x)
{
    const double *last =
        e->search->points + (size_t)e->space->nparams * (size_t)(e->search->config.npoints - 1);

    if (!given)
        return sample_point (e, x);
    memcpy (x, last, e->space->nparams * sizeof (*x));
    return 0;
}

static bool is_value (const char *text)
{
    char *end;

    strtod (text, &end);
    return (*text && !*end) || !strcmp (text, "true") || !strcmp (text, "false")
           || strchr ("\"[({", *text);
}

/* Convert NAME=VALUE for --set, quoting a word. */
static char *as_set (const char *arg)
{
    const char *value = strchr (arg, '=') + 1;

    return xasprintf (is_value (value) ? "%.*s%s" : "%.*s\"%s\"", (int)(value - arg), arg, value);
}

/* Convert the arguments NAME=VALUE to one point of searcher.try_first, as a text for
 * --set that the caller frees.  Returns NULL after printing errors.
 */
static char *try_point_set (char **args, int n)
{
    char **sets = xcalloc ((size_t)n + 1, sizeof (*sets));
    const struct edit edit = { .sets = sets, .words = "" };
    char *text = NULL;
    char *point = NULL;
    struct problems p;
    config_t cf;

    config_init (&cf);
    for (int i = 0; i < n; i++)
        sets[i] = as_set (args[i]);
    problems_open (&p);
    edit_apply (&edit, &cf, &p);
    text = p.count ? NULL : edit_text (&cf);
    problems_close (&p);
    fputs (p.text, stderr);
    free (p.text);
    for (char *c = text; c && *c; c++)
        if (*c == '\n')
            *c = ' ';
    if (text)
        point = xasprintf ("searcher.try_first=({ %s})", text);
    config_destroy (&cf);
    strings_free (sets);
    free (text);
    return point;
}

/* For edit_apply(): remove the keys that belong to the file's own searcher, because not
 * every searcher accepts a given point.
 */
static void try_any_searcher (config_t *cf, const void *arg)
{
    static const char *const kept[] = { "metric", "smaller_is_better", "max_length", "constraint",
                                        NULL };
    config_setting_t *group = config_lookup (cf, "searcher");
    int n = group && config_setting_is_group (group) ? config_setting_length (group) : 0;

    (void)arg;
    for (int i = n - 1; i >= 0; i--) {
        const char *name = config_setting_name (config_setting_get_elem (group, (unsigned)i));
        const char *const *k = kept;
        while (*k && strcmp (*k, name))
            k++;
        if (!*k)
            config_setting_remove_elem (group, (unsigned)i);
    }
}

/* ---- report: metrics ---- */

enum { LOGGED_MAX = 16 };

struct logged {
    char name[64];
    long values;
    int64_t first, last;
    double value;
};

struct all_logged {
    struct logged list[LOGGED_MAX];
    int n;
};

static int note_tried_row (const struct slurmdl_row *row, void *arg)
{
    struct all_logged *all = arg;
    struct logged *l = all->list;

    while (l < all->list + all->n && strcmp (l->name, row->name))
        l++;
    if (l == all->list + LOGGED_MAX)
        return 0;
    if (l == all->list + all->n) {
        *l = (struct logged){ .first = row->step };
        snprintf (l->name, sizeof (l->name), "%s", row->name);
        all->n++;
    }
    l->values++;
    l->last = row->step;
    l->value = row->value;
    return 0;
}

/* Warn if the program trained beyond the first of several lengths that the searcher
 * needs.
 */
static void print_beyond (const struct trial_attempt *a, const struct all_logged *all)
{
    const struct experiment *e = a->sweep->exp;

    for (int i = 0; i < all->n; i++)
        if (!strcmp (all->list[i].name, e->metric->name) && experiment_needs (e) & HAS_RUNGS
            && e->search->config.max_length > 1 && all->list[i].last > a->length) {
            printf ("length:     it logged steps up to %lld, but should train to %lld: it does not "
                    "use {length} (DL_LENGTH), or counts steps in another unit\n",
                    (long long)all->list[i].last, (long long)a->length);
            return;
        }
}

static void print_logged (const struct trial_attempt *a)
{
    struct all_logged all = { .n = 0 };
    long matched, lines;

    slurmdl_metrics_read_dir (a->dir, note_tried_row, &all, NULL);
    for (int i = 0; i < all.n; i++)
        printf ("%s%s: %ld value%s, steps %lld to %lld, the last is %.6g\n",
                i ? "            " : "metrics:    ", all.list[i].name, all.list[i].values,
                all.list[i].values == 1 ? "" : "s", (long long)all.list[i].first,
                (long long)all.list[i].last, all.list[i].value);
    if (all.n == 0)
        puts ("metrics:    none");
    print_beyond (a, &all);
    if (!a->sweep->exp->metric->patterns)
        return;
    matched_lines (a, &matched, &lines);
    printf ("%s matched %ld of %ld lines\n",
            a->sweep->exp->metric->format ? "format:    " : "pattern:   ", matched, lines);
}

static void print_status (const struct try_run *t)
{
    if (WIFSIGNALED (t->status))
        printf ("ended:      by signal %d (%s)", WTERMSIG (t->status),
                strsignal (WTERMSIG (t->status)));
    else
        printf ("ended:      with status %d", WEXITSTATUS (t->status));
    printf (" after %.1f s\n", t->seconds);
}

/* ---- report: files ---- */

static void print_file (const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (lstat (path, &st) == 0)
        printf (" %s%s", name, S_ISDIR (st.st_mode) ? "/" : "");
}

/* Print the files that the next attempt would find, including those in the trial's
 * directory.
 */
static void print_files (const struct try_run *t)
{
    char dir[PATH_MAX];

    printf ("checkpoint:");
    trial_dir (&t->attempt, dir, sizeof (dir));
    if (each_trainer_file (t->attempt.dir, print_file) + each_trainer_file (dir, print_file) == 0)
        printf (" none: an interrupted trial starts from scratch; see {attempt_dir} and "
                "{resume_dir} in dl-trainer(7)");
    putchar ('\n');
}

/* ---- report: files in the working directory ---- */

enum { WRITTEN_SHOWN = 8 };

static int print_written (const char *path, const struct stat *st, void *arg)
{
    int *n = arg;

    if (++*n <= WRITTEN_SHOWN)
        printf ("%s%s (%lld bytes)%s", *n == 1 ? "" : ", ", path, (long long)st->st_size,
                S_ISLNK (st->st_mode) ? ", a link" : "");
    return 0;
}

static int print_shared (const char *path, long long size, void *arg)
{
    const struct stat st = { .st_mode = S_IFREG, .st_size = size };

    if (*(int *)arg == 0)
        printf ("written:    ");
    return print_written (path, &st, arg);
}

static void print_whose (int n, const char *whose)
{
    char more[AND_MORE_SIZE];

    if (n > 0)
        printf ("%s: %s\n", and_more (more, n - WRITTEN_SHOWN), whose);
}

/* A script may save files by relative paths.  Print where they would be in a sweep. */
static void print_work (const struct try_run *t, enum working_folder work)
{
    static const char *const whose[] = {
        [WORK_ATTEMPT] = ("in a sweep each attempt has its own, in trials/NNNN/a.K/work; a later "
                          "attempt finds them through {resume_dir}"),
        [WORK_TRIAL] = "in a sweep each trial has its own: trials/NNNN/a.K/work",
        [WORK_SHARED] = "in a sweep all trials write them into one folder",
    };
    char dir[PATH_MAX + 8];
    int n = 0;

    snprintf (dir, sizeof (dir), "%s/" WORK_NAME, t->attempt.dir);
    if (access (dir, F_OK) == 0) {
        printf ("written:    ");
        working_copy_each (dir, print_written, &n);
        print_whose (n, whose[work]);
    }
    n = 0; /* there is no frozen code, or the program wrote into a linked directory */
    shared_files_each (t->attempt.dir, print_shared, &n);
    print_whose (n, whose[WORK_SHARED]);
}

/* Print how many of these files checkpoint_policy.files covers, which dl gc may remove.
 */
static void print_policy_files (struct try_run *t)
{
    char *const *patterns = t->sweep.exp->checkpoints->files;
    struct trainer_files saved = { 0 };
    long long bytes = 0;

    if (!patterns)
        return;
    t->trial->over = 1;
    trainer_files_list (&t->sweep, patterns, &saved);
    for (size_t i = 0; i < saved.n; i++)
        bytes += saved.files[i].bytes;
    printf ("policy:     checkpoint_policy.files names %zu of these files, %lld bytes\n", saved.n,
            bytes);
    trainer_files_free (&saved);
}

/* Run a copy of the code, as a sweep would.  If none can be frozen, run in the
 * directory itself.
 */
static int take_current_code (struct try_run *t, struct code_files *files,
                              struct slurmdl_error *err)
{
    struct code_archive a = { .data = NULL };
    int rv = code_select (t->sweep.exp, t->sweep.dir, files, err);

    if (rv == 0 && *files->why == '\0') {
        rv = code_archive_pack (files, &a, err);
        if (rv == 0)
            rv = try_run_take_code (t, files->root, &a, err);
        code_archive_free (&a);
    }
    return rv < 0 ? -1 : 0;
}

/* A program that counts iterations may not have logged its first metric at length 1. */
static void print_longer (const struct try_run *t)
{
    int64_t whole = t->sweep.exp->search->config.max_length;

    if (WIFEXITED (t->status) && WEXITSTATUS (t->status) == 0 && t->attempt.length < whole)
        printf ("            the length of this trial was %lld of %lld: --length=L "
                "tries a longer one\n",
                (long long)t->attempt.length, (long long)whole);
}

static int conclude_try (struct try_run *t, enum working_folder work)
{
    struct failure_class v = { .why = "" };
    double values[OBJECTIVES_MAX];
    int64_t step;

    print_status (t);
    print_logged (&t->attempt);
    print_files (t);
    print_work (t, work);
    print_policy_files (t);
    if (WIFEXITED (t->status) && WEXITSTATUS (t->status) == 0
        && attempt_metrics (&t->attempt, &step, values) == 0) {
        for (size_t i = 0; i < sweep_metrics (&t->sweep); i++)
            printf ("result:     %s %.6g at step %lld%s\n", sweep_metric (&t->sweep, i), values[i],
                    (long long)step,
                    isfinite (values[i]) ? "" : ": not a finite number, so the trial is a bad one");
        return EXIT_OK;
    }
    failure_classify (&t->attempt, t->status, false, NULL, &v);
    printf ("no result:  %s\n", v.why);
    print_longer (t);
    return EXIT_FAILED;
}

static int run_trial (struct experiment *e, double *x, int64_t length)
{
    struct slurmdl_error err = { "" };
    struct code_files files = { .root = NULL };
    enum working_folder work = e->code->work;
    char *dir = xstrdup (e->dir);
    struct try_run t;
    int rv = try_run_open (&t, e, 1, NULL, &err);

    t.trial->x = x;
    t.trial->target = t.attempt.length = length;
    e->code->work = WORK_ATTEMPT; /* show which files the program writes, even if the sweep would
                                     share a directory */
    if (rv == 0)
        rv = take_current_code (&t, &files, &err);
    if (rv == 0) {
        try_run_print_command (&t);
        printf ("     in: %s%s\n", *t.attempt.work ? "a copy of " : "", dir ? dir : "");
        software_print (t.sweep.exp->software);
        fflush (stdout);
        rv = try_run_train (&t, &err);
    }
    rv = rv < 0 ? fail (&err) : conclude_try (&t, work);
    try_run_close (&t);
    code_files_free (&files);
    free (dir);
    return rv;
}

/* ---- the command ---- */

/* Use one process here, whatever nodes and ranks the file requests. */
static void make_small (struct experiment *e)
{
    char **const options[] = { &e->plugin->framework, &e->plugin->check,   &e->plugin->bind,
                               &e->plugin->nccl,      &e->plugin->monitor, &e->plugin->debug };

    if (e->resources->nodes * e->resources->ranks > 1)
        printf ("ranks: one, not %lld\n", (long long)(e->resources->nodes * e->resources->ranks));
    e->resources->nodes = e->resources->ranks = 1;
    for (size_t i = 0; i < sizeof (options) / sizeof (*options); i++) {
        free (*options[i]);
        *options[i] = NULL;
    }
    if (e->search->seed < 0)
        e->search->seed = e->search->config.seed = 0;
}

static int try_it (struct experiment *e, bool given, int64_t length)
{
    double *x = xcalloc (e->space->nparams + 1, sizeof (*x));
    int rv = command_check (e, true, true);

    if (rv == 0 && try_point (e, given, x) < 0) {
        complain ("no point satisfies searcher.constraint");
        rv = EXIT_USAGE;
    }
    if (rv == 0)
        command_warn (e);
    make_small (e);
    if (rv == 0)
        rv = run_trial (e, x, length);
    free (x);
    return rv;
}

enum { POINT = 2 };

/* Return the settings that make the given point the only one, followed by the user's
 * own.
 */
static char **all_sets (const struct try_options *opt, const char *point)
{
    char **sets = NULL;

    strings_add (&sets, "searcher.name=\"random\"");
    strings_add (&sets, "searcher.max_trials=1000");
    strings_add (&sets, point);
    strings_add_all (&sets, opt->sets);
    return sets;
}

/* 'words' is the point as the user wrote it, or NULL.  The point itself is sets[POINT].
 */
static int read_and_try (const struct command_line *line, char **sets, const char *words)
{
    const struct try_options *opt = line->options;
    const bool given = words;
    const struct edit edit = { .f = given ? try_any_searcher : NULL,
                               .sets = sets,
                               .point = given ? sets[POINT] : NULL,
                               .words = words };
    struct experiment *e;
    int rv = refuse_experiment (line, line->args[0]) ? EXIT_USAGE
                                                     : read_experiment (line->args[0], &edit, &e);

    if (rv)
        return rv;
    rv = try_it (e, given, opt->length ? opt->length : 1);
    experiment_destroy (e);
    return rv;
}

/* "lr=7 width=3" */
static char *join_words (char **args)
{
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (char **a = args; *a; a++)
        fprintf (f, "%s%s", a == args ? "" : " ", *a);
    xclose_memstream (f);
    return text;
}

int cmd_try (const struct command_line *line)
{
    const struct try_options *opt = line->options;
    char **args = line->args + 1;
    char **sets;
    char *point, *words;
    int rv;

    for (char **a = args; *a; a++)
        if (!strchr (*a, '=') || **a == '=') {
            complain ("try: '%s' must be NAME=VALUE, a hyperparameter", *a);
            return EXIT_USAGE;
        }
    if (!*args)
        return read_and_try (line, opt->sets, NULL);
    if (!(point = try_point_set (args, line->nargs - 1)))
        return EXIT_USAGE;
    sets = all_sets (opt, point);
    words = join_words (args);
    rv = read_and_try (line, sets, words);
    strings_free (sets);
    free (words);
    free (point);
    return rv;
}
