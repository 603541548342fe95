/* SPDX-License-Identifier: Apache-2.0 */
/* Read an experiment file with libconfig into a struct experiment. */
#include "launcher/config/experiment.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/edit.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/hparams.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/keys.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/metric_pattern.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/notify_settings.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/points.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/setting.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/space.h"
#include "launcher/config/syntax.h"
#include "launcher/config/worker_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "runtime/rank/plugin_options.h"

/* ---- checks that need several keys ---- */

static bool is_set (const struct experiment *e, const struct key *k)
{
    const void *at = key_at (e, k);

    return (k->type == KEY_TEXT && e->argv) || *(char *const *)at;
}

static void check_required (const struct experiment *e, config_t *cf, struct problems *p)
{
    for (const struct key *k = experiment_keys; k->path; k++)
        if (k->byname && *k->byname == '!' && !is_set (e, k) && !config_lookup (cf, k->path)
            && !problem_is_about (p, k->path))
            problem (p, "%s: '%s' is missing (%s)", e->file, k->path, k->help);
}

static void check_name (const struct experiment *e, config_t *cf, struct problems *p)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n;

    if (!e->name)
        return;
    n = strlen (e->name);
    if (n == 0 || n > 100 || e->name[strspn (e->name, good)] || strchr (".-", e->name[0]))
        problem_at (p, origin_of_key (cf, "name"),
                    "'name' must be 1 to 100 letters, digits, '.', '_' "
                    "or '-', and not begin with '.' or '-'");
}

static void check_placeholders (const struct experiment *e, const char *text, config_t *cf,
                                struct problems *p)
{
    const char *words[256] = { "length", "trial", "seed", "attempt_dir", "trial_dir", RESUME_DIR };
    const config_setting_t *group;
    const char *meant;
    char name[128], key[160];
    size_t n = 6;

    if (!hparams_unknown (e, text, name, sizeof (name)) || problem_is_about (p, "hyperparameters"))
        return;
    snprintf (key, sizeof (key), "hyperparameters.%s", name);
    if ((group = config_lookup (cf, key)) && config_setting_is_group (group)) {
        problem_at (p, origin_of (group),
                    "hyperparameter '%s': 'type' is missing: it is a group of "
                    "other hyperparameters",
                    name);
        return;
    }
    for (size_t i = 0; i < e->space->nhparams && n < 255; i++)
        words[n++] = e->space->hparams[i].path;
    meant = nearest_word (name, words);
    problem_at (p, origin_of_key (cf, "entrypoint"),
                "'entrypoint': {%s} is not a hyperparameter%s%s%s", name,
                DID_YOU_MEAN (meant, "{", "}", ""));
}

static void check_entrypoint (struct experiment *e, config_t *cf, struct problems *p)
{
    e->entrypoint_origin = origin_of_key (cf, "entrypoint");
    if (e->entrypoint)
        check_placeholders (e, e->entrypoint, cf, p);
    for (char **a = e->argv; a && *a; a++)
        check_placeholders (e, *a, cf, p);
    if ((e->entrypoint && !*e->entrypoint) || (e->argv && !e->argv[0]))
        problem_at (p, origin_of_key (cf, "entrypoint"), "'entrypoint' is empty");
}

/* Treat a format as an additional pattern. */
static void read_format (struct experiment *e, config_t *cf, struct problems *p)
{
    bool json = e->metric->format && !strcmp (e->metric->format, "json");
    char **list = e->metric->patterns;
    size_t n = 0;

    if (!e->metric->format)
        return;
    if (!json && strcmp (e->metric->format, "text")) {
        problem_at (p, origin_of_key (cf, "metrics.format"),
                    "'metrics.format' must be \"text\" (name=value) or "
                    "\"json\" (a JSON object in each line)");
        return;
    }
    while (list && list[n])
        n++;
    list = xreallocarray (list, n + 2, sizeof (*list));
    list[n] = xstrdup (json ? PATTERN_JSON : PATTERN_TEXT);
    list[n + 1] = NULL;
    e->metric->patterns = list;
}

static void check_patterns (const struct experiment *e, config_t *cf, struct problems *p)
{
    struct slurmdl_error err = { "" };
    const char *file = e->metric->file;

    if (file && (*file == '/' || !*file || strstr (file, "..")))
        problem_at (p, origin_of_key (cf, "metrics.file"),
                    "'metrics.file' must be a path in the attempt's folder, "
                    "which the entrypoint has as {attempt_dir}, or in its working folder");
    if (file && !e->metric->patterns)
        problem_at (p, origin_of_key (cf, "metrics.file"),
                    "'metrics.file' needs 'metrics.format' or 'metrics.pattern'");
    for (char **text = e->metric->patterns; text && *text; text++) {
        struct pattern *pattern = pattern_create (*text, &err);
        if (!pattern)
            problem_at (p, origin_of_key (cf, "metrics.pattern"), "'metrics.pattern' \"%s\": %s",
                        *text, err.text);
        pattern_destroy (pattern);
    }
}

static void check_lease (const struct experiment *e, config_t *cf, struct problems *p)
{
    if (e->worker->lease < 2 * e->worker->heartbeat)
        problem_at (p, origin_of_key (cf, "worker"),
                    "'worker.lease' must be at least twice 'worker.heartbeat'");
}

/* Also check sbatch_args, which override the other keys of "resources". */
static void check_memory_key (struct experiment *e, config_t *cf, struct problems *p)
{
    static const char *const options[] = { "--mem", NULL };
    const char *key = "resources.max_memory";
    int64_t bytes = e->resources->memory ? slurm_bytes (e->resources->memory) : 0;

    e->resources->memory_bytes = bytes > 0 ? bytes : 0;
    if (!e->resources->max_memory)
        return;
    e->resources->memory_most = slurm_bytes (e->resources->max_memory);
    if (e->resources->memory_most <= 0)
        problem_at (p, origin_of_key (cf, key), "'%s' must be an amount of memory, such as \"64G\"",
                    key);
    else if (bytes < 0)
        problem_at (p, origin_of_key (cf, "resources.memory"),
                    "'resources.memory' must be an amount of memory, such as \"16G\", with '%s'",
                    key);
    else if (e->resources->memory_most < bytes)
        problem_at (p, origin_of_key (cf, key), "'%s' (%s) is less than 'resources.memory' (%s)",
                    key, e->resources->max_memory, e->resources->memory);
    else if (experiment_has_option (e, options))
        problem_at (p, origin_of_key (cf, key),
                    "'%s' needs 'resources.memory' instead of --mem in 'resources.sbatch_args'",
                    key);
}

/* All repeats of a trial must use the same point, and a custom searcher does not learn that dl
 * changed a point.
 */
static void check_on_oom (const struct experiment *e, struct problems *p)
{
    bool custom = e->search->searcher && !strcmp (e->search->searcher, "custom");

    for (size_t i = 0; i < e->space->nhparams; i++)
        if (e->space->hparams[i].halves && (e->search->config.repeats > 1 || custom))
            problem_at (p, e->space->hparams[i].origin,
                        "hyperparameter '%s': 'on_oom' cannot be used with %s",
                        e->space->hparams[i].path,
                        custom ? "the searcher custom" : "'searcher.repeats'");
}

static void note_given (struct experiment *e, const config_t *cf)
{
    e->resources->given.nodes = config_lookup (cf, "resources.nodes_per_trial");
    e->resources->given.node_gpus = config_lookup (cf, "resources.gpus_per_node");
    e->resources->given.ranks = config_lookup (cf, "resources.ranks_per_node");
    e->search->length_is_given = config_lookup (cf, "searcher.max_length");
}

struct plugin_check {
    config_t *cf;
    struct problems *p;
};

static void check_plugin_option (enum plugin_option_id id, const char *key, const char *value,
                                 void *arg)
{
    const struct plugin_check *c = arg;
    char why[256] = "";

    if (*value && plugin_option_check (id, value, why, sizeof (why)) < 0)
        problem_at (c->p, origin_of_key (c->cf, key), "'%s' is '%s': %s", key, value, why);
    else if (!*value)
        problem_at (c->p, origin_of_key (c->cf, key), "'%s' is empty: leave it out", key);
}

static void read_working_folder (struct experiment *e, config_t *cf, struct problems *p)
{
    static const char *const names[] = {
        [WORK_ATTEMPT] = "attempt",
        [WORK_TRIAL] = "trial",
        [WORK_SHARED] = "shared",
    };

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (!strcmp (e->code->working_folder, names[i])) {
            e->code->work = (enum working_folder)i;
            return;
        }
    problem_at (p, origin_of_key (cf, "working_folder"),
                "'working_folder' is \"%s\", but must be attempt, trial or shared",
                e->code->working_folder);
}

static void check_resources (const struct experiment *e, config_t *cf, struct problems *p)
{
    if (e->resources->lanes > 1 && experiment_has_ranks (e))
        problem_at (p, origin_of_key (cf, "resources.trials_per_task"),
                    "'resources.trials_per_task' is for trials of one process: leave it out, or "
                    "'resources.nodes_per_trial' and 'resources.ranks_per_node'");
    if (e->resources->lanes > 1 && e->resources->memory
        && !strspn (e->resources->memory, "0123456789"))
        problem_at (p, origin_of_key (cf, "resources.memory"),
                    "'resources.memory' must begin with a number");
    if (e->resources->time && e->resources->time[strspn (e->resources->time, "0123456789:-")]
        && strcasecmp (e->resources->time, "unlimited")
        && strcasecmp (e->resources->time, "infinite"))
        problem_at (p, origin_of_key (cf, "resources.time"),
                    "'resources.time' is '%s', but must be like \"4:00:00\", \"1-12:00:00\" (a day "
                    "and a half) or \"30\" (minutes)",
                    e->resources->time);
    if (e->resources->memory && e->resources->memory[strcspn (e->resources->memory, " ")])
        problem_at (p, origin_of_key (cf, "resources.memory"),
                    "'resources.memory' is '%s', but must be an amount of memory, such as \"16G\"",
                    e->resources->memory);
    experiment_each_plugin_option (e, check_plugin_option, &(struct plugin_check){ cf, p });
}

/* Check the keys for spare nodes, and for continuing on fewer nodes. */
static void check_node_settings (const struct experiment *e, config_t *cf, struct problems *p)
{
    if (e->resources->spares > 0 && !experiment_has_ranks (e))
        problem_at (p, origin_of_key (cf, "resources.spares"),
                    "'resources.spares' is for a trial of several ranks: give "
                    "'resources.nodes_per_trial' or 'ranks_per_node'");
    else if (e->resources->spares > 0 && e->job->nroles > 0 && !e->resources->given.nodes)
        problem_at (p, origin_of_key (cf, "resources.spares"),
                    "'resources.spares' needs 'resources.nodes_per_trial' in a job with roles");
    if (e->resources->min_nodes > e->resources->nodes)
        problem_at (p, origin_of_key (cf, "resources.min_nodes"),
                    "'resources.min_nodes' (%lld) is more than 'resources.nodes_per_trial' (%lld)",
                    (long long)e->resources->min_nodes, (long long)e->resources->nodes);
    else if (e->resources->min_nodes > 0 && e->job->nroles > 0)
        problem_at (p, origin_of_key (cf, "resources.min_nodes"),
                    "'resources.min_nodes' and 'job.roles' cannot be used together: all members "
                    "are needed");
}

static void check_code (const struct experiment *e, config_t *cf, struct problems *p)
{
    if (e->code->local && (experiment_has_ranks (e) || e->resources->gpus))
        problem_at (p, origin_of_key (cf, "code.local"),
                    "'code.local' is for trials of one process: other nodes do not see the folder");
}

/* Everyone who may read the experiment can read its file, so the file must not contain the URL. */
static void check_webhook (const char *where, config_t *cf, struct problems *p)
{
    if (where && (!*where || strstr (where, "://")))
        problem_at (p, origin_of_key (cf, "notify.webhook"),
                    "'notify.webhook' must be a file with the URL, or "
                    "\"$NAME\", a variable with it: others may read the URL here");
}

static void check_mail (const char *address, config_t *cf, struct problems *p)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@._+-";

    if (address && (!*address || *address == '-' || address[strspn (address, good)]))
        problem_at (p, origin_of_key (cf, "notify.mail"),
                    "'notify.mail' must be one address: letters, digits, "
                    "'@', '.', '_', '+' and '-', not '-' first");
}

static void check_notify (const struct experiment *e, config_t *cf, struct problems *p)
{
    struct slurmdl_error err = { "" };

    check_webhook (e->notify->webhook, cf, p);
    check_mail (e->notify->mail, cf, p);
    for (char **on = e->notify->on; on && *on; on++)
        if (strcmp (*on, "end") && strcmp (*on, "failure"))
            problem_at (p, origin_of_key (cf, "notify.on"),
                        "'notify.on' must be \"end\", \"failure\" or a list of them");
    for (char **text = e->notify->patterns; text && *text; text++)
        if (log_policy_check (*text, &err) < 0)
            problem_at (p, origin_of_key (cf, "notify.pattern"), "'notify.pattern' \"%s\": %s",
                        *text, err.text);
}

static void default_workers (struct experiment *e)
{
    long most = experiment_trials (e);
    long limit = e->search->config.max_concurrent ? e->search->config.max_concurrent : 16;

    if (most < 1)
        most = 1;
    if (limit > 16)
        limit = 16;
    if (e->resources->workers == 0)
        e->resources->workers = most < limit ? most : limit;
}

/* Run the checks that need several keys, and complete the struct. */
static void experiment_check (struct experiment *e, config_t *cf, struct problems *p)
{
    job_settings_read (e, cf, p);
    check_required (e, cf, p);
    check_name (e, cf, p);
    check_entrypoint (e, cf, p);
    read_format (e, cf, p);
    check_patterns (e, cf, p);
    check_lease (e, cf, p);
    policies_read (e, cf, p);
    experiment_split_sbatch_args (e);
    note_given (e, cf);
    experiment_share_gpus (e);
    check_resources (e, cf, p);
    check_node_settings (e, cf, p);
    check_memory_key (e, cf, p);
    check_code (e, cf, p);
    read_working_folder (e, cf, p);
    check_on_oom (e, p);
    check_notify (e, cf, p);
    software_settings_check (e, config_root_setting (cf), p);
    search_check (e, cf, p);
    job_settings_check (e, cf, p);
    if (p->count == 0)
        default_workers (e);
}

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

/* Names of keys in other programs. */
static const char *const other_groups[][2] = {
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
    { "time_metric", "lengths are counted in the steps that the training script logs" },
    { "stop_once", "searcher.name is \"adaptive_stopping\" or \"adaptive_asha\"" },
    { "bracket_rungs", "use 'searcher.mode' and 'searcher.max_rungs'" },
    { NULL, NULL },
};

static const char *suggestion (const char *path, const char *last)
{
    const char *words[WORDS_MAX] = { 0 };
    const char *found;
    size_t group = strlen (path) - strlen (last), n = 0;

    if ((found = other_word (last, other_groups)))
        return found;
    for (const struct key *k = experiment_keys; k->path; k++) {
        const char *dot = strrchr (k->path, '.');
        if (dot && !strcmp (dot + 1, last))
            return k->path;
        /* suggest only keys of the same group, whose common prefix must not count as similarity */
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
    /* the unknown key may be a misspelling of a missing one */
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
        problem_at (
            p, origin_of (s),
            "'%s': a variable's name has letters, digits and '_', and does not start with a digit",
            path);
    else
        strings_addf (&e->variables, "%s=%s", name, text);
}

static void read_environment_group (struct experiment *e, const config_setting_t *s,
                                    const char *path, struct problems *p)
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
            read_environment_group (e, v, name, p);
        else if ((meant = nearest_word (config_setting_name (v), words)))
            problem_at (p, origin_of (v),
                        "unknown key '%s'; did you mean 'environment.%s'? (a variable of that name "
                        "belongs in environment.variables)",
                        name, meant);
        else
            read_variable (e, v, name, p);
    }
}

void experiment_read_environment (struct experiment *e, const config_setting_t *s,
                                  struct problems *p)
{
    read_environment_group (e, s, "environment", p);
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
                                : "a group { ... }; three zeros keep none");
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

    all->search.config.repeats = 1; /* trials are divided by it */
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

    /* a pipe has no folder */
    if (stat (path, &st) == 0 && !S_ISREG (st.st_mode))
        return realpath (".", NULL);
    if (!realpath (path, full))
        return NULL;
    slash = strrchr (full, '/');
    slash[slash == full] = '\0';
    return xstrdup (full);
}

void file_folder_problem (struct problems *p, int e)
{
    problem_at (p, NO_ORIGIN, "cannot determine the path of its folder: %s", strerror (e));
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
static void check_gpu_number (const struct experiment *e, const config_t *cf, struct problems *p)
{
    char key[64];

    snprintf (key, sizeof (key), "resources.%s", experiment_gpus_key (e));
    experiment_check_gpus (e, origin_of_key (cf, key), p);
}

static struct experiment *read_experiment_text (const char *path, const char *text, size_t size,
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
    /* an experiment's own copy must be a single libconfig file */
    if ((edit && edit_apply (edit, &cf, p)) || parts > 0)
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
        check_gpu_number (e, &cf, p);
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

    return read_experiment_text (path, text, text ? strlen (text) : 0, edit, p);
}

struct experiment *experiment_read_text (const char *path, const char *text, size_t size,
                                         struct problems *p)
{
    return read_experiment_text (path, text, size, NULL, p);
}
