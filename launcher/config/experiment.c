/* SPDX-License-Identifier: Apache-2.0 */
/* Read an experiment file with libconfig into a struct experiment. */
#include "launcher/config/experiment.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/edit.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/key_values.h"
#include "launcher/config/keys.h"
#include "launcher/config/known_points.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/notify_settings.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/reading.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/space.h"
#include "launcher/config/syntax.h"
#include "launcher/config/validate.h"
#include "launcher/config/worker_settings.h"
#include "launcher/config/yaml.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"

#define WORDS_MAX 96

/* ---- the tree of keys ---- */

static bool is_group (const char *path)
{
    size_t n = strlen (path);

    for (const struct key *k = experiment_keys; k->path; k++)
        if (!strncmp (k->path, path, n) && k->path[n] == '.')
            return true;
    return false;
}

/* What other programs call a key. */
static const char *const others[][2] = {
    { "direction", "searcher.smaller_is_better" },
    { "maximize", "searcher.smaller_is_better" },
    { "minimize", "searcher.smaller_is_better" },
    { "method", "searcher.name" },
    { "algorithm", "searcher.name" },
    { "objective", "searcher.metric" },
    { "monitor", "searcher.metric" },
    { "scheduler", "searcher.name" },
    { "pruner", "searcher.name" },
    { "early_terminate", "searcher.name" },
    { "max_concurrent", "searcher.max_concurrent_trials" },
    { "n_trials", "searcher.max_trials" },
    { "num_samples", "searcher.max_trials" },
    { "num_trials", "searcher.max_trials" },
    { "epochs", "searcher.max_length" },
    { "max_epochs", "searcher.max_length" },
    { "max_t", "searcher.max_length" },
    { "reduction_factor", "searcher.divisor" },
    { "eta", "searcher.divisor" },
    { "timeout", "searcher.max_hours" },
    { "max_minutes", "searcher.max_hours" },
    { "seed", "reproducibility.experiment_seed" },
    { "n_jobs", "resources.workers" },
    { "walltime", "resources.time" },
    { "timelimit", "resources.time" },
    { "time_limit", "resources.time" },
    { "gpus", "resources.slots_per_trial" },
    { "cpus", "resources.cpus_per_trial" },
    { "cpus_per_task", "resources.cpus_per_trial" },
    { "gres", "resources.slots_per_trial" },
    { "mem", "resources.memory" },
    { "nodes", "resources.nodes_per_trial" },
    { "ntasks_per_node", "resources.ranks_per_node" },
    { "parameters", "hyperparameters" },
    { "params", "hyperparameters" },
    { "hyperparams", "hyperparameters" },
    { "search_space", "hyperparameters" },
    { "checkpoint", "checkpoint_policy" },
    { "checkpoints", "checkpoint_policy" },
    { "command", "entrypoint" },
    { "cmd", "entrypoint" },
    { "program", "entrypoint" },
    { "script", "entrypoint" },
    { NULL, NULL },
};

/* Determined's keys (0.38) that have no key of the same meaning here. */
static const char *const determined[][2] = {
    { "async_halving", "the searcher is a key: searcher.name = \"asha\"" },
    { "adaptive_asha_search", "searcher.name = \"adaptive_asha\"" },
    { "max_time", "the length of a full training is 'searcher.max_length'" },
    { "time_metric", "lengths are counted in the steps that a trainer logs" },
    { "stop_once", "searcher.name is \"adaptive_stopping\" or \"adaptive_asha\"" },
    { "bracket_rungs", "'searcher.mode' and 'searcher.max_rungs' say it" },
    { NULL, NULL },
};

static const char *suggestion (const char *path, const char *last)
{
    const char *words[WORDS_MAX] = { 0 };
    const char *found;
    size_t group = strlen (path) - strlen (last), n = 0;

    if ((found = other_word (last, others)))
        return found;
    for (const struct key *k = experiment_keys; k->path; k++) {
        const char *dot = strrchr (k->path, '.');
        if (dot && !strcmp (dot + 1, last))
            return k->path;
        /* of the same group, whose name makes no word nearer */
        if (n < WORDS_MAX - 3 && !strncmp (k->path, path, group))
            words[n++] = k->path + group;
    }
    if (group == 0) {
        words[n++] = "hyperparameters";
        words[n++] = "environment";
    }
    return (found = nearest_word (last, words)) ? found - group : NULL;
}

static void unknown_key (const config_setting_t *s, const char *path, struct problems *p)
{
    const char *groups[] = { "searcher",
                             "resources",
                             "metrics",
                             "reproducibility",
                             "checkpoint_policy",
                             "worker",
                             "job",
                             "hyperparameters",
                             "environment",
                             "code",
                             "container",
                             "notify",
                             NULL };
    const char *hint = other_word (config_setting_name (s), determined);
    char group[256];
    const char *meant = suggestion (path, config_setting_name (s));

    if (hint) {
        problem_at (p, origin_of (s), "unknown key '%s'; %s", path, hint);
        return;
    }
    if (!meant && !strchr (path, '.'))
        meant = nearest_word (path, groups);
    /* what is missing may be what it is meant to be */
    snprintf (group, sizeof (group), "%s", path);
    *(strrchr (group, '.') ?: group) = '\0';
    problem_about (p, group);
    problem_at (p, origin_of (s), "unknown key '%s'%s%s%s", path,
                DID_YOU_MEAN (meant, "'", "'", "; dl-experiment(5) lists the keys"));
}

static void read_variable (struct experiment *e, const config_setting_t *s, const char *path,
                           struct problems *p)
{
    const char *text = config_setting_get_string (s);
    const char *name = config_setting_name (s);
    bool strict = !strncmp (path, "environment.variables.", 22);

    if (!text)
        key_wrong_type (p, s, path, "a string");
    else if (!variable_name_fits (name, strict))
        problem_at (p, origin_of (s),
                    "'%s': a variable's name has letters, digits and '_', and "
                    "does not begin with a digit",
                    path);
    else
        strings_addf (&e->variables, "%s=%s", name, text);
}

static void read_environment (struct experiment *e, const config_setting_t *s, const char *path,
                              struct problems *p)
{
    static const char *const keys[] = { "modules", "conda", "venv", "variables", NULL };
    static const char *const none[] = { NULL };
    const char *const *words = strcmp (path, "environment") ? none : keys;
    const char *meant;

    if (!config_setting_is_group (s)) {
        key_wrong_type (p, s, path, "a group");
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *v = config_setting_get_elem (s, (unsigned)i);
        const struct key *k;
        char name[256];
        snprintf (name, sizeof (name), "%s.%s", path, config_setting_name (v));
        if ((k = key_find (experiment_keys, name)))
            key_set (e, k, v, p);
        else if (!strcmp (name, "environment.variables"))
            read_environment (e, v, name, p);
        else if ((meant = nearest_word (config_setting_name (v), words)))
            problem_at (p, origin_of (v),
                        "unknown key '%s'; did you mean 'environment.%s'? (a "
                        "variable of that name belongs into "
                        "environment.variables)",
                        name, meant);
        else
            read_variable (e, v, name, p);
    }
}

void experiment_read_environment (struct experiment *e, const config_setting_t *s,
                                  struct problems *p)
{
    read_environment (e, s, "environment", p);
}

static void read_group (struct experiment *e, const config_setting_t *group, const char *prefix,
                        struct problems *p)
{
    for (int i = 0; i < config_setting_length (group); i++) {
        config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        const struct key *k;
        char path[256];

        snprintf (path, sizeof (path), "%s%s", prefix, config_setting_name (s));
        if ((k = key_find (experiment_keys, path)))
            key_set (e, k, s, p);
        else if (!strcmp (path, "hyperparameters"))
            space_read (e, s, p);
        else if (!strcmp (path, "environment"))
            experiment_read_environment (e, s, p);
        else if (!strcmp (path, "container") && !config_setting_is_group (s))
            key_set (e, key_find (experiment_keys, "container.image"), s, p);
        else if (!is_group (path))
            unknown_key (s, path, p);
        else if (!config_setting_is_group (s))
            key_wrong_type (p, s, path,
                            strcmp (path, "checkpoint_policy")
                                ? "a group { ... }"
                                : "a group { ... }; with its three numbers 0 none is "
                                  "kept");
        else {
            strcat (path, ".");
            read_group (e, s, path, p);
        }
    }
}

/* ---- an experiment and its parts ---- */

struct experiment *experiment_create (void)
{
    struct {
        struct experiment e;
        struct space space;
        struct search_settings search;
        struct metric_settings metric;
        struct resources resources;
        struct plugin_settings plugin;
        struct software software;
        struct code_settings code;
        struct checkpoint_policy checkpoints;
        struct failure_settings failures;
        struct notify_settings notify;
        struct worker_settings worker;
        struct job_settings job;
        struct fork_origin fork;
    } *all = xcalloc (1, sizeof (*all));

    all->e = (struct experiment){
        .space = &all->space,
        .search = &all->search,
        .metric = &all->metric,
        .resources = &all->resources,
        .plugin = &all->plugin,
        .software = &all->software,
        .code = &all->code,
        .checkpoints = &all->checkpoints,
        .failures = &all->failures,
        .notify = &all->notify,
        .worker = &all->worker,
        .job = &all->job,
        .fork = &all->fork,
    };
    return &all->e;
}

void experiment_destroy (struct experiment *e)
{
    int saved = errno;

    if (!e)
        return;
    for (const struct key *k = experiment_keys; k->path; k++)
        key_free (e, k);
    strings_free (e->argv);
    strings_free (e->variables);
    strings_free (e->software->activated);
    space_free (e);
    free (e->search->constraint);
    free (e->search->points);
    policies_free (e);
    job_settings_free (e->job);
    known_points_free (e);
    free (e->file);
    free (e->dir);
    free (e->file_dir);
    free (e->fork->folder);
    free (e->text);
    free (e->fork->experiment);
    free (e->fork->file);
    strings_free (e->fork->files);
    strings_free (e->fork->shared);
    free (e);
    errno = saved;
}

/* ---- the whole file ---- */

char *file_folder (const char *path)
{
    char full[PATH_MAX];
    struct stat st;
    char *slash;

    /* the name of a pipe is not one of a file in a folder */
    if (stat (path, &st) == 0 && !S_ISREG (st.st_mode))
        return realpath (".", NULL);
    if (!realpath (path, full))
        return NULL;
    slash = strrchr (full, '/');
    slash[slash == full] = '\0';
    return strdup (full);
}

void file_folder_problem (struct problems *p, int e)
{
    problem_at (p, NO_ORIGIN, "the path of its folder cannot be found: %s", strerror (e));
}

static bool is_yaml (const char *path)
{
    const char *dot = strrchr (path, '.');

    return dot && (!strcasecmp (dot, ".yaml") || !strcasecmp (dot, ".yml"));
}

int experiment_parse (config_t *cf, const char *path, int *parts, struct problems *p)
{
    if (!parts || !is_yaml (path))
        return syntax_read (cf, path, parts, p);
    *parts = 1;
    return yaml_read (cf, path, p);
}

/* 'text' is NULL: that of the file. */
static void check_gpus (const struct experiment *e, const config_t *cf, struct problems *p)
{
    char key[64];

    snprintf (key, sizeof (key), "resources.%s", experiment_gpus_key (e));
    experiment_check_gpus (e, origin_of_key (cf, key), p);
}

static struct experiment *read_experiment (const char *path, const char *text, size_t size,
                                           const struct edit *edit, struct problems *p)
{
    struct experiment *e = experiment_create ();
    int parts = 0;
    config_t cf;

    config_init (&cf);
    p->file = path;
    e->file = xstrdup (path);
    if ((text ? syntax_read_text (&cf, path, text, size, p)
              : experiment_parse (&cf, path, edit ? &parts : NULL, p))
        < 0)
        goto fail;
    e->dir = edit && edit->dir ? xstrdup (edit->dir) : file_folder (path);
    if (!e->dir) {
        file_folder_problem (p, errno);
        errno = EINVAL;
        goto fail;
    }
    /* an experiment's own copy is one file that libconfig reads */
    if ((edit && edit_apply (edit, &cf, p) == 1) || parts > 0)
        e->text = edit_text (&cf);
    else if (edit && edit->file)
        e->text = xstrdup (edit->file);
    e->search->seed = e->failures->max_failed = -1;
    e->job->backoff = e->job->ttl = -1;
    e->metric->goal = NAN;
    for (const struct key *k = experiment_keys; k->path; k++)
        key_default (e, k);
    if (setting_check_texts (config_lookup (&cf, "hyperparameters"), p) == 0
        && setting_check_texts (config_lookup (&cf, "searcher"), p) == 0) {
        read_group (e, config_root_setting (&cf), "", p);
        experiment_check (e, &cf, p);
        check_gpus (e, &cf, p);
    }
    config_destroy (&cf);
    if (p->count == 0)
        return e;
    experiment_destroy (e);
    errno = EINVAL;
    return NULL;
fail:
    config_destroy (&cf);
    experiment_destroy (e);
    return NULL;
}

struct experiment *experiment_read_edited (const char *path, const struct edit *edit,
                                           struct problems *p)
{
    const char *text = edit ? edit->file : NULL;

    return read_experiment (path, text, text ? strlen (text) : 0, edit, p);
}

struct experiment *experiment_read_text (const char *path, const char *text, size_t size,
                                         struct problems *p)
{
    return read_experiment (path, text, size, NULL, p);
}
