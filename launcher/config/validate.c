/* SPDX-License-Identifier: Apache-2.0 */
/* Check an experiment beyond the types of its keys. */
#include "launcher/config/validate.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/hparams.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/key_values.h"
#include "launcher/config/keys.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/metric_pattern.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/notify_settings.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/placeholder.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/queries.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/space.h"
#include "launcher/config/worker_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "runtime/rank/plugin_options.h"

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
    static const char good[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
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

/* A format is one more pattern. */
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
    if (!(list = realloc (list, (n + 2) * sizeof (*list))))
        return;
    list[n] = strdup (json ? PATTERN_JSON : PATTERN_TEXT);
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
                    "which the entrypoint has as {attempt_dir}, or in its "
                    "working folder");
    if (file && !e->metric->patterns)
        problem_at (p, origin_of_key (cf, "metrics.file"),
                    "'metrics.file' needs 'metrics.format' or "
                    "'metrics.pattern'");
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
                    "'worker.lease' must be at least twice "
                    "'worker.heartbeat'");
}

/* Options of sbatch, which come after those of 'resources'. */
static void check_memory (struct experiment *e, config_t *cf, struct problems *p)
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
                    "'resources.memory' must be an amount of memory, such as "
                    "\"16G\", with '%s'",
                    key);
    else if (e->resources->memory_most < bytes)
        problem_at (p, origin_of_key (cf, key), "'%s' (%s) is less than 'resources.memory' (%s)",
                    key, e->resources->max_memory, e->resources->memory);
    else if (experiment_has_option (e, options))
        problem_at (p, origin_of_key (cf, key),
                    "'%s' needs 'resources.memory' instead of --mem in "
                    "'resources.sbatch_args'",
                    key);
}

/* One of several repeats cannot be somewhere else, and a program that chooses
 * the points does not learn of another one.
 */
static void check_on_oom (const struct experiment *e, struct problems *p)
{
    bool custom = e->search->searcher && !strcmp (e->search->searcher, "custom");

    for (size_t i = 0; i < e->space->nhparams; i++)
        if (e->space->hparams[i].halves && (e->search->config.repeats > 1 || custom))
            problem_at (p, e->space->hparams[i].origin,
                        "hyperparameter '%s': 'on_oom' cannot be used with "
                        "%s",
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

/* The next word of a command line, with the quotes of a shell taken out; NULL:
 * none.  The caller frees it.
 */
static char *next_word (const char **text)
{
    const char *c = *text + strspn (*text, " \t\n");
    char *word = *c ? malloc (strlen (c) + 1) : NULL;
    char quote = '\0';
    size_t n = 0;

    for (; word && *c && (quote || !strchr (" \t\n", *c)); c++)
        if (quote ? *c == quote : *c == '"' || *c == '\'')
            quote = quote ? '\0' : *c;
        else
            word[n++] = *c;
    if (word)
        word[n] = '\0';
    *text = c;
    return word;
}

/* Whether a text is several options, or one with its value: "-w n4". */
static bool is_command_line (const char *text)
{
    const char *blank = strpbrk (text, " \t\n");

    if (!blank)
        return false;
    if (*text == '-' && !memchr (text, '=', (size_t)(blank - text)))
        return true;
    for (; blank; blank = strpbrk (blank + 1, " \t\n"))
        if (blank[1] == '-')
            return true;
    return false;
}

/* "-w n4 --exclusive" is how everybody writes them; "" is nothing. */
void experiment_split_sbatch_args (struct experiment *e)
{
    char **list = NULL;

    for (char **a = e->resources->sbatch_args; a && *a; a++) {
        const char *text = *a + strspn (*a, " \t\n");
        char *word;
        if (!is_command_line (text)) {
            if (*text)
                strings_add (&list, *a);
            continue;
        }
        for (; (word = next_word (&text)); free (word))
            strings_add (&list, word);
    }
    strings_free (e->resources->sbatch_args);
    e->resources->sbatch_args = list;
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
                "'working_folder' is \"%s\", but must be attempt, trial or "
                "shared",
                e->code->working_folder);
}

static void check_resources (const struct experiment *e, config_t *cf, struct problems *p)
{
    if (e->resources->lanes > 1 && experiment_has_ranks (e))
        problem_at (p, origin_of_key (cf, "resources.trials_per_task"),
                    "'resources.trials_per_task' is for trials of one "
                    "process: leave it out, or 'resources.nodes_per_trial' "
                    "and 'resources.ranks_per_node'");
    if (e->resources->lanes > 1 && e->resources->memory
        && !strspn (e->resources->memory, "0123456789"))
        problem_at (p, origin_of_key (cf, "resources.memory"),
                    "'resources.memory' must begin with a number");
    if (e->resources->time && e->resources->time[strspn (e->resources->time, "0123456789:-")]
        && strcasecmp (e->resources->time, "unlimited")
        && strcasecmp (e->resources->time, "infinite"))
        problem_at (p, origin_of_key (cf, "resources.time"),
                    "'resources.time' is '%s', but must be as \"4:00:00\", "
                    "\"1-12:00:00\" (a day and a half) or \"30\" (minutes)",
                    e->resources->time);
    if (e->resources->memory && e->resources->memory[strcspn (e->resources->memory, " ")])
        problem_at (p, origin_of_key (cf, "resources.memory"),
                    "'resources.memory' is '%s', but must be an amount of "
                    "memory, such as \"16G\"",
                    e->resources->memory);
    experiment_each_plugin_option (e, check_plugin_option, &(struct plugin_check){ cf, p });
}

/* Nodes beside those of a trial, and fewer than it has. */
static void check_nodes (const struct experiment *e, config_t *cf, struct problems *p)
{
    if (e->resources->spares > 0 && !experiment_has_ranks (e))
        problem_at (p, origin_of_key (cf, "resources.spares"),
                    "'resources.spares' is for a trial of several ranks: give "
                    "'resources.nodes_per_trial' or 'ranks_per_node'");
    else if (e->resources->spares > 0 && e->job->nroles > 0 && !e->resources->given.nodes)
        problem_at (p, origin_of_key (cf, "resources.spares"),
                    "'resources.spares' needs 'resources.nodes_per_trial' where a job has roles");
    if (e->resources->min_nodes > e->resources->nodes)
        problem_at (p, origin_of_key (cf, "resources.min_nodes"),
                    "'resources.min_nodes' (%lld) is more than 'resources.nodes_per_trial' (%lld)",
                    (long long)e->resources->min_nodes, (long long)e->resources->nodes);
    else if (e->resources->min_nodes > 0 && e->job->nroles > 0)
        problem_at (p, origin_of_key (cf, "resources.min_nodes"),
                    "'resources.min_nodes' and 'job.roles' do not go together: all members are "
                    "needed");
}

static void check_code (const struct experiment *e, config_t *cf, struct problems *p)
{
    if (e->code->local && (experiment_has_ranks (e) || e->resources->gpus))
        problem_at (p, origin_of_key (cf, "code.local"),
                    "'code.local' is for trials of one process: other nodes "
                    "do not see the folder");
}

/* The file is read by all who may look at the experiment. */
static void check_webhook (const char *where, config_t *cf, struct problems *p)
{
    if (where && (!*where || strstr (where, "://")))
        problem_at (p, origin_of_key (cf, "notify.webhook"),
                    "'notify.webhook' must be a file with the URL, or "
                    "\"$NAME\", a variable with it: others may read the URL "
                    "here");
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
                        "'notify.on' must be \"end\", \"failure\" or a list "
                        "of them");
    for (char **text = e->notify->patterns; text && *text; text++)
        if (policy_check (*text, &err) < 0)
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

void experiment_check (struct experiment *e, config_t *cf, struct problems *p)
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
    check_nodes (e, cf, p);
    check_memory (e, cf, p);
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
