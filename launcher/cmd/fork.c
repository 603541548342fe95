/* SPDX-License-Identifier: Apache-2.0 */
/* dl fork: create an experiment from an existing one. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/start.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/hparams.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/take_file.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* Whether a search of one point keeps this key of the group "searcher". */
static bool is_kept (const char *name)
{
    return !strcmp (name, "metric") || !strcmp (name, "smaller_is_better")
           || !strcmp (name, "max_length");
}

static void put_string (config_t *cf, const char *key, const char *text)
{
    config_t value;

    config_init (&value);
    config_setting_set_string (
        config_setting_add (config_root_setting (&value), "value", CONFIG_TYPE_STRING), text);
    edit_put (cf, key, config_lookup (&value, "value"));
    config_destroy (&value);
}

struct fork_source {
    const struct sweep *s;
    long trial;
    int64_t seeds; /* number of trials with this point, or 0 for one */
};

/* Remove the groups of the entrypoint whose hyperparameters are not active at the
 * point.
 */
static void drop_groups (config_t *cf, const struct fork_source *o)
{
    const json_t *hparams = trial_hparams (o->s, sweep_trial (o->s, o->trial));
    config_setting_t *s = config_lookup (cf, "entrypoint");
    bool is_list = s && config_setting_is_aggregate (s);
    int n = is_list ? config_setting_length (s) : s ? 1 : 0;

    for (int i = n - 1; i >= 0; i--) {
        config_setting_t *word = is_list ? config_setting_get_elem (s, (unsigned)i) : s;
        const char *text = config_setting_get_string (word);
        char *less = text ? hparams_drop_groups (o->s->exp, text, hparams) : NULL;
        if (less && !*less && is_list)
            config_setting_remove_elem (s, (unsigned)i);
        else if (less && strcmp (less, text))
            config_setting_set_string (word, less);
        free (less);
    }
}

/* Make the search a single trial at the old trial's point, for the first metric. */
static void make_single (config_t *cf, const void *source)
{
    const struct fork_source *o = source;
    const struct sweep_trial *t = sweep_trial (o->s, o->trial);
    config_setting_t *root = config_root_setting (cf);
    config_setting_t *group = config_lookup (cf, "searcher");

    for (int i = config_setting_length (group) - 1; i >= 0; i--) {
        const char *name = config_setting_name (config_setting_get_elem (group, (unsigned)i));
        if (!is_kept (name))
            config_setting_remove_elem (group, (unsigned)i);
    }
    put_string (cf, "searcher.name", "single");
    if (o->seeds > 1)
        config_setting_set_int64 (config_setting_add (group, "repeats", CONFIG_TYPE_INT64),
                                  o->seeds);
    if (sweep_metrics (o->s) > 1) {
        put_string (cf, "searcher.metric", o->s->exp->metric->name);
        config_setting_remove (group, "smaller_is_better");
        config_setting_set_bool (config_setting_add (group, "smaller_is_better", CONFIG_TYPE_BOOL),
                                 o->s->exp->search->config.smaller_is_better);
    }
    config_setting_remove (root, "hyperparameters");
    edit_add_json (root, "hyperparameters", trial_hparams (o->s, t));
    if (config_lookup (cf, "resources.workers"))
        config_setting_remove (config_lookup (cf, "resources"), "workers");
    drop_groups (cf, o);
}

/* Return the length to which the first trials are trained. */
static int64_t first_length (const struct experiment *e)
{
    struct search_rung rungs[64];
    int n = searcher_preview (&e->search->config, e->space->params, e->space->nparams, rungs, 64);

    return n > 0 ? rungs[0].length : e->search->config.max_length;
}

/* ---- the files that the trials start from ---- */

/* Find the newest files that the trial has left for its next attempt to start from. */
static int find_files (const struct sweep *s, long trial, char ***list)
{
    struct trial_attempt a = { .sweep = s,
                               .trial = trial,
                               .number = sweep_trial (s, trial)->over + 1 };
    char path[PATH_MAX];

    snprintf (a.dir, sizeof (a.dir), "%s/trials/%04ld/a.%ld", s->dir, trial, a.number);
    return attempt_with_files (&a, NULL, path, sizeof (path)) < 0 ? -1
                                                                  : list_trainer_files (path, list);
}

/* Files do not tell which step they belong to, so assume that of the trial's last
 * result.
 */
static void take_files (struct experiment *e, const struct sweep *s, long trial,
                        const struct fork_options *opt)
{
    int64_t length = sweep_trial (s, trial)->length;
    int64_t first = first_length (e);
    char folder[PATH_MAX];

    snprintf (folder, sizeof (folder), "%s/trials/%04ld", s->dir, trial);
    find_files (s, trial, &e->fork->files);
    list_trial_files (folder, &e->fork->shared);
    e->fork->owner = opt->trust ? (uid_t)ANYBODY : opt->file ? 0 : s->owner;
    if (length > 0 && first > length && (e->fork->files || e->fork->shared)) {
        e->fork->length = length;
        return;
    }
    if (length == 0)
        complain ("trial %ld has no result yet: the fork starts from scratch", trial);
    else if (!e->fork->files && !e->fork->shared)
        complain ("trial %ld has left neither a checkpoint nor files: the fork starts from scratch",
                  trial);
    else
        complain (
            "trial %ld was trained to length %lld, and the fork trains to %lld: it starts from "
            "scratch; with --set searcher.max_length=L it continues from the trial's files",
            trial, (long long)length, (long long)first);
    strings_free (e->fork->files);
    strings_free (e->fork->shared);
    e->fork->files = e->fork->shared = NULL;
}

static int take_checkpoint (struct experiment *e, const struct sweep *s, long trial,
                            const struct fork_options *opt)
{
    int64_t length = first_length (e);
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/trials/%04ld", s->dir, trial);
    e->fork->trial = trial;
    if (opt->seeds)
        return 0;
    e->fork->file = slurmdl_checkpoint_find (
        path, INT64_MAX, trial_last (sweep_trial (s, trial)).attempt, &e->fork->length);
    if (!e->fork->file) {
        take_files (e, s, trial, opt);
        return 0;
    }
    e->fork->owner = opt->trust ? (uid_t)ANYBODY : opt->file ? 0 : s->owner;
    if (length > e->fork->length)
        return 0;
    complain ("%s: the checkpoint of trial %ld is of length %lld, and trials would be trained to "
              "length %lld first (lengths count from the beginning): --set searcher.max_length=L",
              s->dir, trial, (long long)e->fork->length, (long long)length);
    return EXIT_USAGE;
}

static int make_fork (struct sweep *s, long trial, const struct command_line *line)
{
    const struct fork_options *opt = line->options;
    struct fork_source origin = { s, trial, opt->seeds };
    struct edit edit = { .sets = opt->start.sets };
    struct experiment *e;
    char path[PATH_MAX];
    int rv;

    snprintf (path, sizeof (path), "%s/experiment.conf", s->dir);
    if (!opt->file && !opt->start.dry_run && (rv = ask_trust (s, opt->trust)))
        return rv;
    if (!opt->file) {
        edit.dir = s->exp->dir;
        edit.file = s->frozen; /* the file may have changed since the user agreed to run it */
        edit.f = trial ? make_single : NULL;
        edit.arg = &origin;
    }
    if ((rv = read_experiment (opt->file ? opt->file : path, &edit, &e))
        || (rv = gpus_to_nodes (&e, opt->file ? opt->file : path, &edit, &opt->start)))
        return rv;
    e->fork->experiment = xstrdup (s->dir);
    /* NAME must still find the old experiment, not the fork */
    if (!strcmp (e->name, s->exp->name))
        e->fork->folder = xasprintf ("%s-fork", e->name);
    if (trial && (rv = take_checkpoint (e, s, trial, opt))) {
        experiment_destroy (e);
        return rv;
    }
    return run_new (e, line, &opt->start);
}

int cmd_fork (const struct command_line *line)
{
    const struct fork_options *opt = line->options;
    struct sweep *s;
    long trial = 0;
    int rv;

    if (opt->file && line->nargs < 2) {
        complain ("fork: --file without a TRIAL is 'dl run FILE'");
        return EXIT_USAGE;
    }
    if (opt->file && opt->seeds) {
        complain ("fork: --seeds is for the trial's own configuration, and --file has another one");
        return EXIT_USAGE;
    }
    if ((rv = open_experiment (line, line->args[0], &s)))
        return rv;
    if (line->nargs == 2)
        rv = parse_trial (s, line->args[1], &trial);
    else if (opt->seeds && !(trial = sweep_best (s))) {
        complain ("%s: no trial has a result: name one for --seeds", s->dir);
        rv = EXIT_NOT_FOUND;
    }
    if (rv == 0)
        rv = make_fork (s, trial, line);
    sweep_close (s);
    return rv;
}
