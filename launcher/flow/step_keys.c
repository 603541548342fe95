/* SPDX-License-Identifier: Apache-2.0 */
/* Read the keys of a step in a flow file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/key_values.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/reading.h"
#include "launcher/config/trial_gpus.h"
#include "launcher/config/validate.h"
#include "launcher/flow/load.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "runtime/base/utf8.h"

enum { WORDS_MAX = 96 };

#define AT(field) offsetof (struct flow_step, field)

/* clang-format off */
static const struct key step_keys[] = {
    { "after",      KEY_LIST,   AT (after),      0, 0,   NULL,    "steps that must have succeeded" },
    { "after_any",  KEY_LIST,   AT (after_any),  0, 0,   NULL,    "steps that must have ended, in any way" },
    { "after_each", KEY_LIST,   AT (after_each), 0, 0,   NULL,    "steps whose task of the same number must have succeeded" },
    { "when",       KEY_STRING, AT (when),       0, 0,   NULL,    "condition, else the step is skipped" },
    { "inputs",     KEY_LIST,   AT (inputs),     0, 0,   NULL,    "files from outside the flow" },
    { "values",     KEY_LIST,   AT (values),     0, 0,   NULL,    "names of the values that it reports" },
    { "code",       KEY_LIST,   AT (code),       0, 0,   NULL,    "patterns of the files that are its code; default: all frozen files" },
    { "sweep",      KEY_STRING, AT (sweep),      0, 0,   NULL,    "experiment file, instead of an entrypoint" },
    { "set",        KEY_LIST,   AT (set),        0, 0,   NULL,    "of a sweep: KEY=VALUE replaces a key of its file" },
    { "working_folder", KEY_STRING, AT (working_folder), 0, 0, NULL, "where it runs: a folder of each attempt, of each task, or one that all share: attempt, task or shared" },
    { "retries",    KEY_INT,    AT (retries),    0, 1e6, "0",     "times that a failed task is tried again" },
    { "cache",      KEY_BOOL,   AT (cache),      0, 0,   "true",  "whether an earlier result of the same code and inputs will do" },
    { "on_exit",    KEY_BOOL,   AT (on_exit),    0, 0,   "false", "it runs when all others have ended, in any way" },
    { 0 },
};
/* clang-format on */

/* Keys of the experiment file that a step has, too, but for these. */
static const char *const of_sweeps[] = { "resources.workers", "resources.trials_per_task",
                                         "resources.gpus_per_trial", "resources.max_memory", NULL };

static bool is_resource (const char *path)
{
    return !strncmp (path, "resources.", 10) && !strings_contain (of_sweeps, path);
}

/* The flow's word is that of each step that has none. */
void flow_read_working_folder (struct flow *f, const config_t *cf, struct problems *p)
{
    static const char *const names[] = {
        [WORK_ATTEMPT] = "attempt",
        [WORK_TRIAL] = "task",
        [WORK_SHARED] = "shared",
    };
    char path[2 * FLOW_NAME_MAX + 32];

    for (size_t i = 0; i < f->n; i++) {
        struct flow_step *s = &f->steps[i];
        const char *word = s->working_folder ?: f->base.working_folder;
        size_t k = 0;
        while (word && k <= WORK_SHARED && strcmp (word, names[k]))
            k++;
        s->work = word ? (enum working_folder)k : WORK_TRIAL;
        if (k <= WORK_SHARED)
            continue;
        snprintf (path, sizeof (path), "steps.%s.working_folder", s->name);
        problem_at (p, origin_of_key (cf, s->working_folder ? path : "working_folder"),
                    "'working_folder' is \"%s\", but must be attempt, task or "
                    "shared",
                    word);
        s->work = WORK_TRIAL;
        if (!s->working_folder)
            return;
    }
}

static const char *const step_groups[] = { "entrypoint",  "foreach",   "outputs", "resources",
                                           "environment", "container", NULL };

void flow_unknown_key (struct problems *p, const config_setting_t *s, const char *path,
                       const char *const *groups, const struct key *keys)
{
    const char *words[WORDS_MAX] = { 0 };
    const char *last = config_setting_name (s);
    const char *meant;
    size_t n = 0;

    for (; *groups; groups++)
        words[n++] = *groups;
    for (; keys && keys->path && n < WORDS_MAX - 1; keys++)
        words[n++] = keys->path;
    for (const struct key *k = experiment_keys; k->path && n < WORDS_MAX - 1; k++)
        if (is_resource (k->path) && strchr (path, '.') && strstr (path, "resources."))
            words[n++] = strrchr (k->path, '.') + 1;
    meant = nearest_word (last, words);
    problem_at (p, origin_of (s), "unknown key '%s'%s%s%s", path,
                DID_YOU_MEAN (meant, "'", "'", "; dl-flow(1) lists the keys"));
}

/* ---- groups of the experiment file ---- */

void flow_read_group (struct experiment *e, const config_setting_t *group, const char *prefix,
                      const char *shown, struct problems *p)
{
    char path[256];

    if (!config_setting_is_group (group)) {
        key_wrong_type (p, group, shown, "a group { ... }");
        return;
    }
    for (int i = 0; i < config_setting_length (group); i++) {
        config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        const struct key *k;
        snprintf (path, sizeof (path), "%s.%s", prefix, config_setting_name (s));
        k = key_find (experiment_keys, path);
        if (k && (is_resource (path) || strcmp (prefix, "resources")))
            key_set (e, k, s, p);
        else {
            snprintf (path, sizeof (path), "%s.%s", shown, config_setting_name (s));
            flow_unknown_key (p, s, path, (const char *const[]){ NULL }, NULL);
        }
    }
}

void flow_read_container (struct experiment *e, const config_setting_t *s, const char *shown,
                          struct problems *p)
{
    if (config_setting_is_group (s))
        flow_read_group (e, s, "container", shown, p);
    else
        key_set (e, key_find (experiment_keys, "container.image"), s, p);
}

void flow_set_defaults (struct experiment *e)
{
    for (const struct key *k = experiment_keys; k->path; k++)
        if (is_resource (k->path) || !strncmp (k->path, "code.", 5))
            key_default (e, k);
    e->lanes = 1;
}

void flow_free_settings (struct experiment *e)
{
    for (const struct key *k = experiment_keys; k->path; k++)
        key_free (e, k);
    strings_free (e->argv);
    strings_free (e->variables);
    free (e->file);
    free (e->dir);
}

/* ---- a step ---- */

/* It is part of paths, names of jobs and {references}. */
bool flow_is_name (const char *text)
{
    return word_fits (text) && strlen (text) <= FLOW_NAME_MAX && !strpbrk (text, ".+");
}

static void read_outputs (struct flow_step *st, const config_setting_t *s, struct problems *p)
{
    int n = config_setting_length (s);
    struct flow_output *o;

    if (!config_setting_is_group (s)) {
        key_wrong_type (p, s, "outputs", "a group { name = \"path\"; }");
        return;
    }
    st->outputs = calloc ((size_t)n + 1, sizeof (*o));
    for (int i = 0; st->outputs && i < n; i++) {
        const config_setting_t *v = config_setting_get_elem (s, (unsigned)i);
        const char *path = config_setting_get_string (v);
        if (!path || !*path) {
            key_wrong_type (p, v, config_setting_name (v), "a path");
            continue;
        }
        if (strstr (path, "..") || !is_utf8 (path))
            problem_at (p, origin_of (v), "output '%s': '%s' must be a path without '..'",
                        config_setting_name (v), path);
        o = &st->outputs[st->noutputs++];
        o->name = strdup (config_setting_name (v));
        o->path = strdup (path);
    }
}

static void read_foreach (struct flow_step *st, const config_setting_t *s, struct problems *p)
{
    size_t i;
    json_t *v;

    if (!setting_is_list (s) && !config_setting_get_string (s)) {
        key_wrong_type (p, s, "foreach", "a list, a range \"1..8\" or {name}");
        return;
    }
    st->foreach = setting_json (s);
    json_array_foreach (st->foreach, i, v)
        if (json_is_object (v) || json_is_array (v))
            problem_at (p, origin_of (s), "'foreach' must be a list of numbers or strings");
}

static void read_key (struct flow_step *st, const config_setting_t *s, struct problems *p)
{
    const char *name = config_setting_name (s);
    const struct key *k = key_find (step_keys, name);
    char path[256];

    snprintf (path, sizeof (path), "steps.%s.%s", st->name, name);
    if (k)
        key_set (st, k, s, p);
    else if (!strcmp (name, "entrypoint"))
        key_set (&st->exp, key_find (experiment_keys, name), s, p);
    else if (!strcmp (name, "outputs"))
        read_outputs (st, s, p);
    else if (!strcmp (name, "foreach"))
        read_foreach (st, s, p);
    else if (!strcmp (name, "resources"))
        flow_read_group (&st->exp, s, "resources", path, p);
    else if (!strcmp (name, "environment"))
        experiment_read_environment (&st->exp, s, p);
    else if (!strcmp (name, "container"))
        flow_read_container (&st->exp, s, path, p);
    else
        flow_unknown_key (p, s, path, step_groups, step_keys);
}

void flow_read_step (struct flow_step *st, const config_setting_t *s,
                     const config_setting_t *resources, struct problems *p)
{
    st->name = strdup (config_setting_name (s));
    st->origin = origin_of (s);
    st->source = -1;
    flow_set_defaults (&st->exp);
    for (const struct key *k = step_keys; k->path; k++)
        key_default (st, k);
    if (resources)
        flow_read_group (&st->exp, resources, "resources", "resources", p);
    if (!flow_is_name (st->name)) {
        problem_at (p, st->origin,
                    "'%s' is no name of a step: 1 to 64 letters, digits, '_' "
                    "and '-', not '-' first",
                    st->name);
        return;
    }
    if (!config_setting_is_group (s)) {
        key_wrong_type (p, s, st->name, "a group { entrypoint = ...; }");
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++)
        read_key (st, config_setting_get_elem (s, (unsigned)i), p);
    st->exp.given.nodes = st->exp.nodes > 1;
    st->exp.given.node_gpus = st->exp.node_gpus > 0;
    experiment_split_sbatch_args (&st->exp);
    experiment_share_gpus (&st->exp);
}

void flow_step_free (struct flow_step *s)
{
    for (const struct key *k = step_keys; k->path; k++)
        key_free (s, k);
    flow_free_settings (&s->exp);
    for (size_t i = 0; i < s->noutputs; i++) {
        free (s->outputs[i].name);
        free (s->outputs[i].path);
    }
    free (s->outputs);
    free (s->source_value);
    free (s->links);
    free (s->name);
    json_decref (s->foreach);
    json_decref (s->items);
}
