/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an experiment file. */
#include "launcher/config/keys.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/config/checkpoint_policy.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/notify_settings.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/setting.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/worker_settings.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"

#define PART(name)      (*((struct experiment *)NULL)->name)
#define IN(part, field) offsetof (struct experiment, part), offsetof (typeof (PART (part)), field)
#define AT(field)       KEY_WHOLE, offsetof (struct experiment, field)
#define NONE            KEY_WHOLE, 0
#define BIG             9007199254740992.0 /* 2^53 */

/* clang-format off */
const struct key experiment_keys[] = {
    { "name",        KEY_STRING, AT (name),        0, 0, "!",  "name of the experiment: letters, digits, '.', '_' and '-'" },
    { "description", KEY_STRING, AT (description), 0, 0, NULL, "free text" },
    { "entrypoint",  KEY_TEXT,   AT (entrypoint),  0, 0, "!",  "command that trains one trial: a string for the shell, or a list of arguments; {name} is replaced with the hyperparameter" },
    { "max_restarts", KEY_INT,   IN (failures, max_restarts), 0, 1e6, "5", "number of times to retry a failing trial" },
    { "max_failed",  KEY_INT,    IN (failures, max_failed), 0, 1e7, NULL, "failed trials after which an experiment still counts as completed; default: half of its trials" },
    { "working_folder", KEY_STRING, IN (code, working_folder), 0, 0, "attempt", "working directory: attempt (one per attempt), trial (one per trial) or shared (one for all trials)" },
    { "log_policies", KEY_GROUPS, NONE,                 0, 0, NULL, "list of groups { name; pattern; action; }: what a line in the log of a failed attempt means" },

    { "container.image",   KEY_STRING, IN (software, image),   0, 0, NULL, "image to run the trials in: a file, a folder, or a registry reference; container = \"IMAGE\" is short for it" },
    { "container.runtime", KEY_STRING, IN (software, runtime), 0, 0, NULL, "pyxis, enroot, apptainer, singularity, charliecloud or podman; default: the first that is installed and supports the image" },
    { "container.binds",   KEY_LIST,   IN (software, binds),   0, 0, NULL, "additional folders to mount in the container: /SOURCE[:/DESTINATION[:OPTIONS]]" },
    { "container.options", KEY_LIST,   IN (software, options), 0, 0, NULL, "additional options for the runtime" },

    { "environment.modules", KEY_LIST,   IN (software, modules), 0, 0, NULL, "environment modules to load for the trials" },
    { "environment.conda",   KEY_STRING, IN (software, conda),   0, 0, NULL, "conda environment of the trials: its name or folder" },
    { "environment.venv",    KEY_STRING, IN (software, venv),    0, 0, NULL, "Python virtual environment of the trials: its folder" },

    { "code.freeze",  KEY_BOOL,   IN (code, freeze),  0, 0, "true", "if the entrypoint names a file of the folder, run the trials from a copy of the folder as it is now" },
    { "code.local",   KEY_BOOL,   IN (code, local),   0, 0, "false", "each worker unpacks the frozen code into its own folder in TMPDIR; files that trials write there are lost" },
    { "code.path",    KEY_STRING, IN (code, path),    0, 0, NULL, "folder to freeze; default: the git work tree of the experiment file, or else its folder" },
    { "code.include", KEY_LIST,   IN (code, include), 0, 0, NULL, "patterns of files to freeze even if they are large or ignored by git" },
    { "code.exclude", KEY_LIST,   IN (code, exclude), 0, 0, NULL, "patterns of files and folders not to freeze, as in .dlignore" },

    { "searcher.name",              KEY_STRING, IN (search, searcher),            0, 0,   "auto",     "search method; dl-experiment(5) lists them" },
    { "searcher.sampler",           KEY_STRING, IN (search, sampler),                  0, 0,   NULL,       "searcher that proposes the points, e.g. tpe; default: the searcher's own" },
    { "searcher.metric",            KEY_LIST,   IN (metric, names),                  0, 0,   "!",        "name of the metric to optimise, or a list of up to 8" },
    { "searcher.smaller_is_better", KEY_BOOLS,  IN (metric, smaller),                  0, 0,   "true",     "whether to minimise the metric; a list has one value per metric" },
    { "searcher.summary",           KEY_LIST,   IN (metric, summaries),                0, 0,   NULL,       "which logged value counts for a trial: last (the default), best, min or max; a list has one word per metric" },
    { "searcher.mean_of_last",      KEY_INT,    IN (metric, mean_of_last),             1, MEAN_MAX, NULL,  "use the mean of this many last values as the value of a trial" },
    { "searcher.goal",              KEY_FLOAT,  IN (metric, goal),                     -1e300, 1e300, NULL, "end the search when the metric reaches this value" },
    { "searcher.max_trials",        KEY_INT,    IN (search, config.max_trials),        1, 1e7, NULL,       "number of trials (all searchers but single, grid and pbt)" },
    { "searcher.max_length",        KEY_INT,    IN (search, config.max_length),        1, BIG, "1",        "length of a full training, in the unit of the training script, e.g. epochs" },
    { "searcher.divisor",           KEY_FLOAT,  IN (search, config.divisor),           1, 1e6, "4",        "asha and its variants: promote one in this many trials of a rung" },
    { "searcher.max_rungs",         KEY_INT,    IN (search, config.max_rungs),         1, 64,  "5",        "asha and its variants: maximum number of rungs" },
    { "searcher.mode",              KEY_STRING, IN (search, mode),                     0, 0,   "standard", "adaptive_asha, adaptive_stopping: aggressive, standard or conservative" },
    { "searcher.max_concurrent_trials", KEY_INT, IN (search, config.max_concurrent),   0, 1e7, "16",       "maximum number of concurrent trials; 0: number of workers" },
    { "searcher.constraint",        KEY_LIST,   IN (search, constraints),              0, 0,   NULL,       "expression that each point must satisfy, or a list of them" },
    { "searcher.try_first",         KEY_GROUPS, NONE,                             0, 0,   NULL,       "list of points to try first, each a group { name = value; }" },
    { "searcher.warm_start",        KEY_STRING, IN (search, warm_start),               0, 0,   NULL,       "folder of an earlier experiment, or a file of results, to learn from" },
    { "searcher.repeats",           KEY_INT,    IN (search, config.repeats),           1, 64,  "1",        "trials per point; their mean counts" },
    { "searcher.max_gpu_hours",     KEY_FLOAT,  IN (search, max_gpu_hours),         1e-6, 1e9, NULL,       "start no more segments once the finished ones have used this many GPU-hours (without GPUs: trial-hours)" },
    { "searcher.max_hours",         KEY_FLOAT,  IN (search, max_hours),             1e-6, 1e6, NULL,       "start no more segments this many hours after the experiment was created" },
    { "searcher.cost_aware",        KEY_BOOL,   IN (search, config.cost_aware),        0, 0,   "false",    "gp, auto: prefer points that take less time" },
    { "searcher.population",        KEY_INT,    IN (search, config.population),        2, 1e5, NULL,       "cmaes, nsga2, pbt: size of a generation" },
    { "searcher.min_length",        KEY_INT,    IN (search, config.min_length),        1, BIG, NULL,       "median: stop no trial before this length; pbt: length of a generation" },
    { "searcher.command",           KEY_STRING, IN (search, command),                  0, 0,   NULL,       "custom: command that chooses the points" },

    { "resources.workers",         KEY_INT,    IN (resources, workers),     1, 1e6, NULL, "number of trials to train at once; default: that of the searcher, at most 16" },
    { "resources.slots_per_trial", KEY_INT,    IN (resources, slots),       0, 65536, "0", "GPUs of a trial on all of its nodes" },
    { "resources.gpus_per_trial",  KEY_INT,    IN (resources, gpus),        0, 65536, "0", "the same, with one rank per GPU; dl run picks the nodes, ranks and partition that would start first" },
    { "resources.gpus_per_node",   KEY_INT,    IN (resources, node_gpus),   0, 64,  "0",  "GPUs of a trial on each of its nodes (--gpus-per-node)" },
    { "resources.cpus_per_trial",  KEY_INT,    IN (resources, cpus),        1, 1e4, "1",  "cores of a trial, or of each of its ranks (--cpus-per-task)" },
    { "resources.trials_per_task", KEY_INT,    IN (resources, lanes),       1, 256, "1",  "number of trials side by side in one array task" },
    { "resources.nodes_per_trial", KEY_INT,    IN (resources, nodes),       1, 4096, "1", "nodes of a trial (--nodes); its ranks start on each of them" },
    { "resources.ranks_per_node",  KEY_INT,    IN (resources, ranks),       1, 1024, "1", "ranks of a trial on each of its nodes (--ntasks-per-node)" },
    { "resources.spares",          KEY_INT,    IN (resources, spares),      0, 64,  "0",  "additional nodes of a job that replace lost or bad nodes" },
    { "resources.min_nodes",       KEY_INT,    IN (resources, min_nodes),   0, 4096, "0", "continue a trial on at least this many nodes when others are lost; 0: all" },
    { "resources.memory",          KEY_STRING, IN (resources, memory),      0, 0,   NULL, "memory of a trial (--mem), e.g. \"16G\"" },
    { "resources.max_memory",      KEY_STRING, IN (resources, max_memory),  0, 0,   NULL, "retry a trial that runs out of memory with more, up to this, e.g. \"64G\"" },
    { "resources.partition",       KEY_STRING, IN (resources, partition),   0, 0,   NULL, "partition (--partition)" },
    { "resources.account",         KEY_STRING, IN (resources, account),     0, 0,   NULL, "account (--account)" },
    { "resources.qos",             KEY_STRING, IN (resources, qos),         0, 0,   NULL, "quality of service (--qos)" },
    { "resources.time",            KEY_STRING, IN (resources, time),        0, 0,   NULL, "time limit of an array task (--time), e.g. \"4:00:00\"" },
    { "resources.framework",       KEY_STRING, IN (plugin, framework),   0, 0,   NULL, "set the rank environment for this framework (--dl), e.g. \"torch\"" },
    { "resources.check",           KEY_STRING, IN (plugin, check),       0, 0,   NULL, "check nodes and GPUs before a trial starts (--dl-check): \"quick\" or \"full\"" },
    { "resources.bind",            KEY_STRING, IN (plugin, bind),        0, 0,   NULL, "bind each rank to cores near its GPU (--dl-bind), e.g. \"closest\"" },
    { "resources.nccl",            KEY_STRING, IN (plugin, nccl),        0, 0,   NULL, "the site's network variables (--dl-nccl): \"auto\", \"none\" or a profile" },
    { "resources.monitor",         KEY_STRING, IN (plugin, monitor),     0, 0,   NULL, "sample the use of CPUs and GPUs (--dl-monitor): seconds between samples" },
    { "resources.debug",           KEY_STRING, IN (plugin, debug),       0, 0,   NULL, "look for hangs (--dl-debug), e.g. \"hang:600,kill\"" },
    { "resources.sbatch_args",     KEY_LIST,   IN (resources, sbatch_args), 0, 0,   NULL, "additional options for sbatch" },

    { "job.roles",              KEY_GROUPS, NONE,                            0, 0,   NULL, "list of groups { name; count; command; cpus; gpus; memory; restart_policy; exit_codes; }: the roles of a job's members" },
    { "job.restart_policy",     KEY_STRING, IN (job, restart_policy),      0, 0,   NULL, "which members to restart: on_failure (the default), never, always, or exit_code (see exit_codes)" },
    { "job.exit_codes",         KEY_LIST,   IN (job, exit_codes),          0, 0,   NULL, "for restart_policy = \"exit_code\": what exit statuses mean; default: (\"1-127: fail\", \"128-255: restart\")" },
    { "job.backoff_limit",      KEY_INT,    IN (job, backoff),             0, 1e6, NULL, "number of times to restart a failing job that makes no progress; default: max_restarts" },
    { "job.active_deadline",    KEY_STRING, IN (job, deadline_text),       0, 0,   NULL, "fail the job if it is active for longer than this, e.g. \"12:00:00\"" },
    { "job.success_policy",     KEY_STRING, IN (job, success_policy),      0, 0,   NULL, "who must succeed: chief, all_workers or any; default: the chief, or the first worker if there is no chief" },
    { "job.clean_up",           KEY_STRING, IN (job, clean_up),            0, 0,   NULL, "members to end when the job has ended: running (all that still run, the default) or none (workers may finish)" },
    { "job.min_available",      KEY_INT,    IN (job, min_available),       1, 1e6, NULL, "number of members with which the job may start if not all of its nodes are free; default: all" },
    { "job.ttl_after_finished", KEY_INT,    IN (job, ttl),                 0, 1e9, NULL, "hide the job from dl ls, as dl archive does, this many seconds after its end" },
    { "job.suspend",            KEY_BOOL,   IN (job, is_suspended),        0, 0,   "false", "create the job suspended; dl resume starts it" },

    { "metrics.pattern", KEY_LIST, IN (metric, patterns), 0, 0, NULL, "extended regular expressions that find metrics in the output; {name} matches a number" },
    { "metrics.format",  KEY_STRING, IN (metric, format), 0, 0, NULL, "how the output shows metrics: text (name=value) or json (lines that are JSON objects)" },
    { "metrics.file",    KEY_STRING, IN (metric, file), 0, 0, NULL, "search this file in the attempt's folder or its working directory instead of the output" },

    { "checkpoint_policy.save_experiment_best", KEY_INT, IN (checkpoints, experiment_best), 0, 1e6, "0", "number of checkpoints to keep: those with the best metric in the experiment" },
    { "checkpoint_policy.save_trial_best",      KEY_INT, IN (checkpoints, trial_best),      0, 1e6, "1", "number of checkpoints to keep per trial: those with the best metric" },
    { "checkpoint_policy.save_trial_latest",    KEY_INT, IN (checkpoints, trial_latest),    0, 1e6, "1", "number of checkpoints to keep per trial: the latest" },
    { "checkpoint_policy.files",                KEY_LIST, IN (checkpoints, files),    0, 0, NULL, "patterns of the trials' checkpoint files, e.g. \"last.pt\"; dl removes files that a later attempt has superseded" },

    { "reproducibility.experiment_seed", KEY_INT, IN (search, seed), 0, 2147483647, NULL, "seed of the search and, together with its number, of each trial; default: random, and recorded in the log" },

    { "notify.command", KEY_STRING, IN (notify, command),  0, 0,  NULL, "shell command to run; it gets JSON on standard input and a text in DL_NOTIFY_TEXT" },
    { "notify.mail",    KEY_STRING, IN (notify, mail),     0, 0,  NULL, "address to send mail to" },
    { "notify.webhook", KEY_STRING, IN (notify, webhook),  0, 0,  NULL, "file (mode 0600) with a URL to send JSON to, or \"$NAME\", an environment variable with the URL" },
    { "notify.on",      KEY_LIST,   IN (notify, on),       0, 0,  NULL, "events to report: end, failure; default: both" },
    { "notify.pattern", KEY_LIST,   IN (notify, patterns), 0, 0,  NULL, "extended regular expressions: report matching lines of the trials' logs" },
    { "notify.timeout", KEY_INT,    IN (notify, timeout),  1, 60, "10", "timeout in seconds for each command, mail and webhook" },

    { "worker.heartbeat", KEY_INT, IN (worker, heartbeat), 1, 3600,  "10",  "seconds between heartbeats of a worker" },
    { "worker.lease",     KEY_INT, IN (worker, lease),     2, 86400, "300", "seconds without a heartbeat after which another worker takes over the trial" },
    { "worker.grace",     KEY_INT, IN (worker, grace),     1, 3600,  "30",  "seconds a training script gets to end after a stop request" },
    { "worker.hang",      KEY_INT, IN (worker, hang),     -1, 1e6,   "-1",  "restart a multi-rank trial after this many seconds without progress in any rank; 0: never, -1: learn from the run" },
    { 0 },
};
#undef AT
#define AT(field) KEY_WHOLE, offsetof (struct job_role, field)

const struct key role_keys[] = {
    { "name",           KEY_STRING, AT (name),           0, 0,     "!",  "name of the role: letters, digits and '_'" },
    { "count",          KEY_INT,    AT (count),          1, 65536, "1",  "number of members" },
    { "command",        KEY_STRING, AT (command),        0, 0,     NULL, "shell command of each member; default: the entrypoint" },
    { "cpus",           KEY_INT,    AT (cpus),           0, 1e4,   "0",  "cores per member; default: resources.cpus_per_trial" },
    { "gpus",           KEY_INT,    AT (gpus),           0, 64,    "0",  "GPUs per member" },
    { "memory",         KEY_STRING, AT (memory),         0, 0,     NULL, "memory per member (--mem-per-cpu), e.g. \"16G\"" },
    { "restart_policy", KEY_STRING, AT (restart_policy), 0, 0,     NULL, "default: that of the job" },
    { "exit_codes",     KEY_LIST,   AT (exit_codes),     0, 0,     NULL, "default: those of the job" },
    { 0 },
};
/* clang-format on */

/* ---- values of keys ---- */

void *key_at (const void *object, const struct key *k)
{
    const char *part = object;

    if (k->part != KEY_WHOLE)
        part = *(char *const *)(part + k->part);
    return (char *)part + k->offset;
}

static const char *type_name (const config_setting_t *s)
{
    switch (config_setting_type (s)) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        return "an integer";
    case CONFIG_TYPE_FLOAT:
        return "a floating-point number";
    case CONFIG_TYPE_STRING:
        return "a string";
    case CONFIG_TYPE_BOOL:
        return "a boolean";
    case CONFIG_TYPE_GROUP:
        return "a group";
    default:
        return "a list";
    }
}

int key_wrong_type (struct problems *p, const config_setting_t *s, const char *path,
                    const char *wanted)
{
    problem_about (p, path);
    problem_at (p, origin_of (s), "'%s' is %s, but must be %s", path, type_name (s), wanted);
    return -1;
}

/* Accept Determined's { batches = 100 } as 100: the unit is whatever the trainer counts. */
static const config_setting_t *plain_length (const struct key *k, const config_setting_t *s)
{
    static const char *const units[] = { "batches", "epochs", "records" };

    if (strcmp (k->path, "searcher.max_length") || !config_setting_is_group (s)
        || config_setting_length (s) != 1)
        return s;
    for (size_t i = 0; i < sizeof (units) / sizeof (*units); i++)
        if (!strcmp (config_setting_name (config_setting_get_elem (s, 0)), units[i]))
            return config_setting_get_elem (s, 0);
    return s;
}

static int set_number (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    double v;

    s = plain_length (k, s);
    if (setting_number (s, &v) < 0
        || (k->type == KEY_INT && config_setting_type (s) == CONFIG_TYPE_FLOAT))
        return key_wrong_type (p, s, k->path, k->type == KEY_INT ? "an integer" : "a number");
    if (!(v >= k->min && v <= k->max)) {
        problem_about (p, k->path);
        problem_at (p, origin_of (s),
                    k->max < 0x1p53 - 1 ? "'%s' is %.15g, but must be from %.15g to %.15g"
                                        : "'%s' is %.15g, but must be at least %.15g",
                    k->path, v, k->min, k->max);
        return -1;
    }
    if (k->type == KEY_INT)
        *(int64_t *)key_at (e, k) = (int64_t)v;
    else
        *(double *)key_at (e, k) = v;
    return 0;
}

static char **string_list (const char *path, const config_setting_t *s, struct problems *p)
{
    int n = setting_is_list (s) ? config_setting_length (s) : 1;
    char **list = xcalloc ((size_t)n + 1, sizeof (*list));

    for (int i = 0; i < n; i++) {
        const config_setting_t *item =
            setting_is_list (s) ? config_setting_get_elem (s, (unsigned)i) : s;
        const char *text = config_setting_get_string (item);
        if (!text) {
            key_wrong_type (p, item, path,
                            setting_is_list (s) ? "a list of strings"
                                                : "a string or a list of strings");
            strings_free (list);
            return NULL;
        }
        list[i] = xstrdup (text);
    }
    return list;
}

static void set_list (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    char ***list = k->type == KEY_TEXT ? &((struct experiment *)e)->argv : key_at (e, k);

    strings_free (*list);
    *list = string_list (k->path, s, p);
}

static void set_string (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    char **text = key_at (e, k);

    if (!config_setting_get_string (s)) {
        key_wrong_type (p, s, k->path,
                        k->type == KEY_TEXT ? "a string or a list of strings" : "a string");
        return;
    }
    free (*text);
    *text = xstrdup (config_setting_get_string (s));
}

static void set_bools (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    int n = setting_is_list (s) ? config_setting_length (s) : 1;
    struct bools *list = key_at (e, k);

    list->n = 0;
    for (int i = 0; i < n; i++) {
        const config_setting_t *item =
            setting_is_list (s) ? config_setting_get_elem (s, (unsigned)i) : s;
        if (config_setting_type (item) != CONFIG_TYPE_BOOL) {
            key_wrong_type (p, item, k->path, "true or false, or a list of these");
            return;
        }
        if (list->n < OBJECTIVES_MAX)
            list->value[list->n] = config_setting_get_bool (item);
        list->n++;
    }
}

void key_set (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    switch (k->type) {
    case KEY_INT:
    case KEY_FLOAT:
        set_number (e, k, s, p);
        return;
    case KEY_BOOL:
        if (config_setting_type (s) != CONFIG_TYPE_BOOL)
            key_wrong_type (p, s, k->path, "true or false");
        else
            *(bool *)key_at (e, k) = config_setting_get_bool (s);
        return;
    case KEY_BOOLS:
        set_bools (e, k, s, p);
        return;
    case KEY_GROUPS:
        return;
    case KEY_LIST:
        set_list (e, k, s, p);
        return;
    case KEY_TEXT:
        if (setting_is_list (s)) {
            set_list (e, k, s, p);
            return;
        }
        /* fall through */
    case KEY_STRING:
        set_string (e, k, s, p);
    }
}

void key_default (void *e, const struct key *k)
{
    if (!k->byname || *k->byname == '!')
        return;
    switch (k->type) {
    case KEY_INT:
        *(int64_t *)key_at (e, k) = strtoll (k->byname, NULL, 10);
        break;
    case KEY_FLOAT:
        *(double *)key_at (e, k) = strtod (k->byname, NULL);
        break;
    case KEY_BOOL:
        *(bool *)key_at (e, k) = !strcmp (k->byname, "true");
        break;
    case KEY_BOOLS:
        *(struct bools *)key_at (e, k) = (struct bools){ 1, { !strcmp (k->byname, "true") } };
        break;
    case KEY_STRING:
    case KEY_TEXT:
        *(char **)key_at (e, k) = xstrdup (k->byname);
        break;
    case KEY_LIST:
    case KEY_GROUPS:
        break;
    }
}

const struct key *key_find (const struct key *table, const char *path)
{
    for (const struct key *k = table; k->path; k++)
        if (!strcmp (k->path, path))
            return k;
    return NULL;
}

void key_free (void *e, const struct key *k)
{
    if (k->type == KEY_STRING || k->type == KEY_TEXT)
        free (*(char **)key_at (e, k));
    else if (k->type == KEY_LIST)
        strings_free (*(char ***)key_at (e, k));
}
