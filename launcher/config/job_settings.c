/* SPDX-License-Identifier: Apache-2.0 */
/* The group "job" of an experiment file: roles and policies. */
#include "launcher/config/job_settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/keys.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/setting.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "runtime/rank/roles.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

const struct exit_range exit_ranges[] = { { 1, 127, false }, { 128, 255, true }, { 0, 0, false } };

/* ---- words ---- */

static const char *const restart_words[] = { "on_failure", "never", "always", "exit_code", NULL };
static const char *const success_words[] = { "", "chief", "all_workers", "any", NULL };
static const char *const clean_words[] = { "running", "none", NULL };

static bool is_job_word (const char *name, const char *const *names)
{
    while (*names && strcmp (*names, name))
        names++;
    return *names;
}

bool role_is_chief (const char *name)
{
    static const char *const chiefs[] = { "chief", "master", "launcher", NULL };

    return is_job_word (name, chiefs);
}

bool role_serves (const char *name)
{
    static const char *const servers[] = { "ps", "server", "scheduler", "evaluator", NULL };

    return is_job_word (name, servers);
}

/* Write "; there are a, b, c".  The caller frees it. */
static char *list_words (const char *const *words)
{
    const char *before = "; there are ";
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    for (; *words; words++)
        if (**words) {
            fprintf (f, "%s%s", before, *words);
            before = ", ";
        }
    xclose_memstream (f);
    return text;
}

/* Find a word in a list.  Returns its index, or 'otherwise' if it is not given or wrong. */
static int word_of (const char *what, const char *word, const char *const *words, int otherwise,
                    struct origin at, struct problems *p)
{
    const char *meant;
    char *list;

    if (!word)
        return otherwise;
    for (int i = 0; words[i]; i++)
        if (!strcmp (words[i], word))
            return i;
    meant = nearest_word (word, words);
    list = list_words (words);
    problem_at (p, at, "'%s' is \"%s\"%s%s%s", what, word, DID_YOU_MEAN (meant, "'", "'", list));
    free (list);
    return otherwise;
}

/* ---- exit codes ---- */

/* Parse "1-127: fail" or "143: restart". */
static bool read_range (const char *text, struct exit_range *r)
{
    char word[16];
    int n = 0;

    if (sscanf (text, " %d - %d : %15[a-z] %n", &r->first, &r->last, word, &n) != 3) {
        if (sscanf (text, " %d : %15[a-z] %n", &r->first, word, &n) != 2)
            return false;
        r->last = r->first;
    }
    r->again = !strcmp (word, "restart");
    return !text[n] && (r->again || !strcmp (word, "fail")) && r->first >= 1 && r->last >= r->first
           && r->last <= 255;
}

static struct exit_range *read_ranges (const char *what, char *const *texts,
                                       enum restart_policy restart, struct origin at,
                                       struct problems *p)
{
    struct exit_range *list;
    size_t n = 0;

    if (!texts)
        return NULL;
    if (restart != RESTART_EXIT_CODE)
        problem_at (p, at, "'%s' is used only with restart_policy = \"exit_code\"", what);
    while (texts[n])
        n++;
    list = xcalloc (n + 1, sizeof (*list));
    for (size_t i = 0; i < n; i++) {
        if (!read_range (texts[i], &list[i])) {
            problem_at (p, at,
                        "'%s': \"%s\" must be like \"1-127: fail\" or \"143: restart\", with "
                        "statuses from 1 to 255",
                        what, texts[i]);
            list[i] = (struct exit_range){ 0, 0, false };
        }
        for (size_t k = 0; k < i; k++)
            if (list[k].first <= list[i].first && list[i].last <= list[k].last)
                problem_at (p, at, "'%s': \"%s\" has no effect after \"%s\", which comes first",
                            what, texts[i], texts[k]);
    }
    return list;
}

/* ---- roles ---- */

static void read_role (struct job_role *r, const config_setting_t *group, struct problems *p)
{
    const config_setting_t *command = config_setting_get_member (group, "command");
    const char *words[16] = { 0 };
    size_t n = 0;

    r->origin = origin_of (command ?: group);
    for (const struct key *k = role_keys; k->path; k++) {
        key_default (r, k);
        words[n++] = k->path;
    }
    for (int i = 0; i < config_setting_length (group); i++) {
        const config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        const struct key *k = key_find (role_keys, config_setting_name (s));
        const char *meant = nearest_word (config_setting_name (s), words);
        char *list = list_words (words);
        if (k)
            key_set (r, k, s, p);
        else
            problem_at (p, origin_of (s), "'job.roles': unknown key '%s'%s%s%s",
                        config_setting_name (s), DID_YOU_MEAN (meant, "'", "'", list));
        free (list);
    }
    if (r->command && !r->command[strspn (r->command, " \t\n")])
        problem_at (
            p, r->origin,
            "'job.roles': the 'command' of \"%s\" is empty: leave it out to run 'entrypoint'",
            r->name ?: "");
    if (!r->name || !*r->name || r->name[strspn (r->name, NAME_CHARACTERS)])
        problem_at (p, origin_of (group),
                    "'job.roles': a role must have a 'name' of small letters, digits and '_'");
}

static void read_roles (struct job_settings *j, config_t *cf, struct problems *p)
{
    const config_setting_t *list = config_lookup (cf, "job.roles");
    int n = list ? config_setting_length (list) : 0;

    if (!list)
        return;
    if (!setting_is_list_of_groups (list)) {
        problem_at (p, origin_of (list),
                    "'job.roles' must be a list of roles: ( { name = \"worker\"; count = 2; }, "
                    "... )");
        return;
    }
    j->roles = xcalloc ((size_t)n, sizeof (*j->roles));
    j->nroles = (size_t)n;
    for (int i = 0; i < n; i++) {
        const config_setting_t *group = config_setting_get_elem (list, (unsigned)i);
        struct job_role *r = &j->roles[i];
        read_role (r, group, p);
        r->restart =
            (enum restart_policy)word_of ("restart_policy", r->restart_policy, restart_words,
                                          (int)j->restart, origin_of (group), p);
        r->ranges = read_ranges ("exit_codes", r->exit_codes, r->restart, origin_of (group), p);
        for (int k = 0; k < i && r->name; k++)
            if (j->roles[k].name && !strcmp (j->roles[k].name, r->name))
                problem_at (p, origin_of (group), "'job.roles': two roles have the name \"%s\"",
                            r->name);
    }
}

int64_t job_members (const struct job_settings *j)
{
    int64_t n = 0;

    for (size_t i = 0; i < j->nroles; i++)
        n += j->roles[i].count;
    return n;
}

/* ---- who restarts, and with whom ---- */

bool role_begins_again (enum restart_policy restart, const struct exit_range *ranges, int status)
{
    if (restart != RESTART_EXIT_CODE)
        return restart != RESTART_NEVER;
    for (const struct exit_range *r = ranges ? ranges : exit_ranges; r->last; r++)
        if (status >= r->first && status <= r->last)
            return r->again;
    return false;
}

/* All statuses are those of a shell. */
static bool status_restarts (const struct job_settings *j, const struct job_role *r, int status)
{
    return status == 0 ? r->restart == RESTART_ALWAYS
                       : role_begins_again (r->restart, r->ranges ?: j->ranges, status);
}

static char *alone_text (const struct job_settings *j, const struct job_role *r, int64_t first)
{
    const char *before = "";
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    fprintf (f, "%lld-%lld:", (long long)first, (long long)(first + r->count - 1));
    for (int status = 0, end; status < 256; status = end + 1) {
        for (end = status; end < 256 && status_restarts (j, r, end); end++)
            ;
        if (end > status) {
            fprintf (f, "%s%d-%d", before, status, end - 1);
            before = ",";
        }
    }
    xclose_memstream (f);
    if (*before)
        return text;
    free (text);
    return NULL;
}

char *job_alone (const struct job_settings *j)
{
    int64_t first = 0;

    for (size_t i = 0; i < j->nroles; first += j->roles[i++].count)
        if (!strcmp (j->roles[i].name, "evaluator"))
            return alone_text (j, &j->roles[i], first);
    return NULL;
}

/* ---- resources ---- */

int64_t job_min_nodes (const struct experiment *e)
{
    int64_t least = e->job->min_available;

    return least > 0 ? (least + e->resources->ranks - 1) / e->resources->ranks
                     : e->resources->nodes;
}

/* Bytes, rounded up to whole M. */
static int64_t memory_of_core (const struct job_role *r, int64_t cpus)
{
    int64_t bytes = r->memory ? slurm_bytes (r->memory) : 0;
    int64_t mega = (bytes + (cpus << 20) - 1) / (cpus << 20);

    return bytes > 0 ? mega << 20 : 0;
}

struct job_component *job_components (const struct experiment *e, size_t *n)
{
    const struct job_settings *j = e->job;
    struct job_component *list = j->nroles ? xcalloc (j->nroles, sizeof (*list)) : NULL;

    *n = 0;
    for (size_t i = 0; i < j->nroles; i++) {
        const struct job_role *r = &j->roles[i];
        struct job_component *last = *n ? &list[*n - 1] : NULL;
        struct job_component own = { .members = r->count,
                                     .cpus = r->cpus ?: e->resources->cpus,
                                     .gpus = r->gpus };
        own.cpu_memory = memory_of_core (r, own.cpus);
        if (last && last->cpus == own.cpus && last->gpus == own.gpus
            && last->cpu_memory == own.cpu_memory)
            last->members += own.members;
        else
            list[(*n)++] = own;
    }
    return list;
}

int64_t job_gpus (const struct job_settings *j)
{
    int64_t n = 0;

    for (size_t i = 0; i < j->nroles; i++)
        n += j->roles[i].count * j->roles[i].gpus;
    return n;
}

int64_t job_most_gpus (const struct job_settings *j)
{
    int64_t most = 0;

    for (size_t i = 0; i < j->nroles; i++)
        if (j->roles[i].gpus > most)
            most = j->roles[i].gpus;
    return most;
}

/* Write "chief:1,ps:2".  Returns NULL unless the plugin knows all names. */
static char *plugin_roles (const struct job_settings *j)
{
    struct rank_roles roles;
    char *text = NULL;
    size_t size;
    FILE *f;

    if (j->nroles == 0)
        return NULL;
    f = xopen_memstream (&text, &size);
    for (size_t i = 0; i < j->nroles; i++)
        fprintf (f, "%s%s:%lld", i ? "," : "", j->roles[i].name ?: "",
                 (long long)j->roles[i].count);
    xclose_memstream (f);
    if (roles_parse (text, &roles, NULL, 0) == 0)
        return text;
    free (text);
    return NULL;
}

/* ---- the group ---- */

static void read_deadline (struct job_settings *j, config_t *cf, struct problems *p)
{
    const char *text = j->deadline_text;

    if (!text)
        return;
    j->deadline = slurm_seconds (text);
    if (text[strspn (text, "0123456789:-")] || j->deadline <= 0)
        problem_at (
            p, origin_of_key (cf, "job.active_deadline"),
            "'job.active_deadline' is \"%s\", but must be like \"12:00:00\" or \"30\" (minutes)",
            text);
}

/* Set keys that a job may omit, because it has one trial and perhaps no metric. */
static void set_defaults (struct experiment *e, config_t *cf, struct problems *p)
{
    const struct job_role *lacks = NULL;

    for (size_t i = 0; i < e->job->nroles && !lacks; i++)
        lacks = e->job->roles[i].command ? NULL : &e->job->roles[i];
    if (e->job->nroles > 0 && !e->entrypoint && !e->argv && !config_lookup (cf, "entrypoint")) {
        /* all that reads the entrypoint sees the command of the first role */
        e->entrypoint = xstrdup (e->job->roles[0].command ?: "true");
        if (lacks)
            problem_at (p, lacks->origin,
                        "'job.roles': \"%s\" has no 'command', and there is no 'entrypoint'",
                        lacks->name ?: "");
    }
    if (!e->search->searcher || strcmp (e->search->searcher, "single")) {
        /* report one mistake once: it does not matter which keys another searcher would lack */
        if (config_lookup (cf, "searcher.name"))
            problem_at (p, origin_of_key (cf, "searcher.name"),
                        "a job has one trial: set 'searcher.name' to \"single\", or remove the "
                        "group 'job'");
        free (e->search->searcher);
        e->search->searcher = xstrdup ("single");
    }
    if (!e->metric->names && !config_lookup (cf, "searcher.metric")) {
        strings_add (&e->metric->names, "loss");
        e->metric->is_assumed = true;
    }
    if (e->job->backoff >= 0)
        e->failures->max_restarts = e->job->backoff;
}

void job_settings_read (struct experiment *e, config_t *cf, struct problems *p)
{
    struct job_settings *j = e->job;

    if (!(j->is_given = config_lookup (cf, "job")))
        return;
    j->restart = (enum restart_policy)word_of ("job.restart_policy", j->restart_policy,
                                               restart_words, RESTART_ON_FAILURE,
                                               origin_of_key (cf, "job.restart_policy"), p);
    j->success =
        (enum success_policy)word_of ("job.success_policy", j->success_policy, success_words,
                                      SUCCESS_DEFAULT, origin_of_key (cf, "job.success_policy"), p);
    j->waits =
        word_of ("job.clean_up", j->clean_up, clean_words, 0, origin_of_key (cf, "job.clean_up"), p)
        == 1;
    j->ranges = read_ranges ("job.exit_codes", j->exit_codes, j->restart,
                             origin_of_key (cf, "job.exit_codes"), p);
    read_deadline (j, cf, p);
    read_roles (j, cf, p);
    j->plugin_roles = e->plugin->framework ? plugin_roles (j) : NULL;
    set_defaults (e, cf, p);
}

void job_settings_free (struct job_settings *j)
{
    for (size_t i = 0; i < j->nroles; i++) {
        for (const struct key *k = role_keys; k->path; k++)
            key_free (&j->roles[i], k);
        free (j->roles[i].ranges);
    }
    free (j->roles);
    free (j->plugin_roles);
    free (j->ranges);
}

/* ---- contradictions ---- */

bool job_may_restart (const struct job_settings *j)
{
    bool can = j->nroles == 0 && j->restart != RESTART_NEVER;

    for (size_t i = 0; i < j->nroles; i++)
        can |= j->roles[i].restart != RESTART_NEVER;
    return can;
}

/* Whether the members that decide can end the job successfully, as in launcher/job/verdict.c.  One
 * that is always restarted never does.
 */
static bool can_succeed (const struct job_settings *j, bool chief)
{
    size_t ends = 0, workers = 0; /* 'ends': of those that decide */

    if (j->nroles == 0)
        return j->restart != RESTART_ALWAYS;
    for (size_t i = 0; i < j->nroles; i++) {
        const char *name = j->roles[i].name;
        bool decides = chief
                           ? role_is_chief (name)
                           : !role_serves (name) && (j->success != SUCCESS_DEFAULT || workers == 0);
        workers += !role_serves (name);
        ends += decides && j->roles[i].restart != RESTART_ALWAYS;
    }
    return !chief && j->success == SUCCESS_ALL_WORKERS ? ends > 0 && ends == workers : ends > 0;
}

static int chiefs (const struct job_settings *j, int64_t *members)
{
    int n = 0;

    *members = 0;
    for (size_t i = 0; i < j->nroles; i++)
        if (role_is_chief (j->roles[i].name)) {
            n++;
            *members += j->roles[i].count;
        }
    return n;
}

static void check_success (const struct job_settings *j, config_t *cf, struct problems *p)
{
    struct origin at = origin_of_key (cf, j->success_policy ? "job.success_policy" : "job");
    int64_t members;
    int n = chiefs (j, &members);

    if (n > 1 || members > 1)
        problem_at (p, origin_of_key (cf, "job.roles"),
                    "'job.roles': only one role can be the chief (chief, master or launcher), with "
                    "one member");
    else if (j->success == SUCCESS_CHIEF && n == 0)
        problem_at (p, at,
                    "'job.success_policy' is \"chief\", but no role is chief, master or launcher");
    else if (j->deadline <= 0 && !can_succeed (j, n == 1 && j->success != SUCCESS_ANY))
        problem_at (p, at,
                    "the job would never end: no member that counts can exit ('restart_policy' "
                    "is \"always\", or all roles serve)");
}

static void check_min_available (const struct experiment *e, config_t *cf, struct problems *p)
{
    int64_t members =
        e->job->nroles ? job_members (e->job) : e->resources->nodes * e->resources->ranks;
    int64_t least = e->job->min_available;

    if (least > members)
        problem_at (p, origin_of_key (cf, "job.min_available"),
                    "'job.min_available' is %lld, but the job has %lld member%s", (long long)least,
                    (long long)members, members == 1 ? "" : "s");
    else if (least > 0 && least < members && e->job->nroles)
        problem_at (p, origin_of_key (cf, "job.min_available"),
                    "'job.min_available' is %lld, but all %lld members of roles start together: "
                    "leave it out",
                    (long long)least, (long long)members);
}

/* Check each role's own resources against those that the group "resources" sets for all. */
static void check_role_resources (const struct experiment *e, config_t *cf, struct problems *p)
{
    const struct job_settings *j = e->job;
    const char *both = NULL;
    size_t n;

    free (job_components (e, &n));
    for (size_t i = 0; i < j->nroles; i++) {
        const struct job_role *r = &j->roles[i];
        if (r->memory && slurm_bytes (r->memory) <= 0)
            problem_at (p, origin_of_key (cf, "job.roles"),
                        "'job.roles': the 'memory' of \"%s\" is \"%s\", but must be like \"16G\"",
                        r->name, r->memory);
        else if (r->memory && e->resources->memory)
            both = "resources.memory";
    }
    if (job_most_gpus (j) > 0
        && (e->resources->gpus > 0 || e->resources->slots > 0 || e->resources->node_gpus > 0))
        both = e->resources->gpus > 0    ? "resources.gpus_per_trial"
               : e->resources->slots > 0 ? "resources.slots_per_trial"
                                         : "resources.gpus_per_node";
    else if (n > 1 && e->resources->given.nodes)
        both = "resources.nodes_per_trial";
    else if (n > 0 && e->resources->given.nodes && e->resources->nodes > job_members (j))
        problem_at (p, origin_of_key (cf, "resources.nodes_per_trial"),
                    "'resources.nodes_per_trial' is %lld, but the job has only %lld member%s",
                    (long long)e->resources->nodes, (long long)job_members (j),
                    job_members (j) == 1 ? "" : "s");
    if (both)
        problem_at (p, origin_of_key (cf, both),
                    "the roles define the resources of their members: leave out '%s'", both);
}

void job_settings_check (const struct experiment *e, config_t *cf, struct problems *p)
{
    const struct job_settings *j = e->job;

    if (!j->is_given)
        return;
    for (size_t i = 0; i < j->nroles; i++)
        if (!j->roles[i].name)
            return;
    check_success (j, cf, p);
    if (j->nroles && (e->resources->given.ranks || e->resources->lanes > 1))
        problem_at (p, origin_of_key (cf, "job.roles"),
                    "'job.roles' sets the number of processes: leave out "
                    "'resources.ranks_per_node' and 'trials_per_task'");
    check_role_resources (e, cf, p);
    check_min_available (e, cf, p);
    if (j->backoff > 0 && !job_may_restart (j))
        problem_at (p, origin_of_key (cf, "job.backoff_limit"),
                    "'job.backoff_limit' is %lld, but nothing is restarted ('restart_policy' is "
                    "\"never\")",
                    (long long)j->backoff);
    if (j->backoff >= 0 && config_lookup (cf, "max_restarts"))
        problem_at (p, origin_of_key (cf, "max_restarts"),
                    "'max_restarts' and 'job.backoff_limit' mean the same: leave one out");
}
