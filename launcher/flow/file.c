/* SPDX-License-Identifier: Apache-2.0 */
/* Read a flow file. */
#include "launcher/flow/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/code_settings.h"
#include "launcher/config/edit.h"
#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/keys.h"
#include "launcher/config/resources.h"
#include "launcher/config/setting.h"
#include "launcher/flow/flow.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "runtime/base/utf8.h"

enum { WORDS_MAX = 96 };

#define AT(field) KEY_WHOLE, offsetof (struct flow_step, field)

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
    { "hang",       KEY_INT,    AT (hang),      -1, 1e6, "-1",    "with several ranks: seconds without progress in any of them after which the attempt fails; 0: never, -1: learn from the run" },
    { "cache",      KEY_BOOL,   AT (cache),      0, 0,   "true",  "whether an earlier result of the same code and inputs will do" },
    { "on_exit",    KEY_BOOL,   AT (on_exit),    0, 0,   "false", "it runs when all others have ended, in any way" },
    { 0 },
};
/* clang-format on */

/* A step accepts the resources of an experiment file, except these. */
static const char *const of_sweeps[] = { "resources.workers", "resources.trials_per_task",
                                         "resources.gpus_per_trial", "resources.max_memory", NULL };

static bool is_step_resource (const char *path)
{
    return !strncmp (path, "resources.", 10) && !strings_contain (of_sweeps, path);
}

/* A step without 'working_folder' uses that of the flow. */
static void flow_read_working_folder (struct flow *f, const config_t *cf, struct problems *p)
{
    static const char *const names[] = {
        [WORK_ATTEMPT] = "attempt",
        [WORK_TRIAL] = "task",
        [WORK_SHARED] = "shared",
    };
    char path[2 * FLOW_NAME_MAX + 32];

    for (size_t i = 0; i < f->n; i++) {
        struct flow_step *s = &f->steps[i];
        const char *word = s->working_folder ?: f->base->code->working_folder;
        size_t k = 0;
        while (word && k <= WORK_SHARED && strcmp (word, names[k]))
            k++;
        s->work = word ? (enum working_folder)k : WORK_TRIAL;
        if (k <= WORK_SHARED)
            continue;
        snprintf (path, sizeof (path), "steps.%s.working_folder", s->name);
        problem_at (p, origin_of_key (cf, s->working_folder ? path : "working_folder"),
                    "'working_folder' is \"%s\", but must be attempt, task or shared", word);
        s->work = WORK_TRIAL;
        if (!s->working_folder)
            return;
    }
}

static const char *const step_groups[] = { "entrypoint",  "foreach",   "outputs", "resources",
                                           "environment", "container", NULL };

static void flow_unknown_key (struct problems *p, const config_setting_t *s, const char *path,
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
        if (is_step_resource (k->path) && strchr (path, '.') && strstr (path, "resources."))
            words[n++] = strrchr (k->path, '.') + 1;
    meant = nearest_word (last, words);
    problem_at (p, origin_of (s), "unknown key '%s'%s%s%s", path,
                DID_YOU_MEAN (meant, "'", "'", "; dl-flow(1) lists the keys"));
}

/* ---- groups of the experiment file ---- */

static void flow_read_group (struct experiment *e, const config_setting_t *group,
                             const char *prefix, const char *shown, struct problems *p)
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
        if (k && (is_step_resource (path) || strcmp (prefix, "resources")))
            key_set (e, k, s, p);
        else {
            snprintf (path, sizeof (path), "%s.%s", shown, config_setting_name (s));
            flow_unknown_key (p, s, path, (const char *const[]){ NULL }, NULL);
        }
    }
}

static void flow_read_container (struct experiment *e, const config_setting_t *s, const char *shown,
                                 struct problems *p)
{
    if (config_setting_is_group (s))
        flow_read_group (e, s, "container", shown, p);
    else
        key_set (e, key_find (experiment_keys, "container.image"), s, p);
}

static struct experiment *create_flow_settings (void)
{
    struct experiment *e = experiment_create ();

    for (const struct key *k = experiment_keys; k->path; k++)
        if (is_step_resource (k->path) || !strncmp (k->path, "code.", 5)
            || !strcmp (k->path, "worker.grace"))
            key_default (e, k);
    e->resources->lanes = 1;
    return e;
}

/* ---- a step ---- */

/* The name becomes part of paths, job names and {references}. */
static bool flow_is_name (const char *text)
{
    return word_fits (text) && strlen (text) <= FLOW_NAME_MAX && !strpbrk (text, ".+");
}

static void read_step_outputs (struct flow_step *st, const config_setting_t *s, struct problems *p)
{
    int n = config_setting_length (s);
    struct flow_output *o;

    if (!config_setting_is_group (s)) {
        key_wrong_type (p, s, "outputs", "a group { name = \"path\"; }");
        return;
    }
    st->outputs = xcalloc ((size_t)n + 1, sizeof (*o));
    for (int i = 0; i < n; i++) {
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
        o->name = xstrdup (config_setting_name (v));
        o->path = xstrdup (path);
    }
}

static void read_step_foreach (struct flow_step *st, const config_setting_t *s, struct problems *p)
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

static void read_step_key (struct flow_step *st, const config_setting_t *s, struct problems *p)
{
    const char *name = config_setting_name (s);
    const struct key *k = key_find (step_keys, name);
    char path[256];

    snprintf (path, sizeof (path), "steps.%s.%s", st->name, name);
    if (k)
        key_set (st, k, s, p);
    else if (!strcmp (name, "entrypoint"))
        key_set (st->exp, key_find (experiment_keys, name), s, p);
    else if (!strcmp (name, "outputs"))
        read_step_outputs (st, s, p);
    else if (!strcmp (name, "foreach"))
        read_step_foreach (st, s, p);
    else if (!strcmp (name, "resources"))
        flow_read_group (st->exp, s, "resources", path, p);
    else if (!strcmp (name, "environment"))
        experiment_read_environment (st->exp, s, p);
    else if (!strcmp (name, "container"))
        flow_read_container (st->exp, s, path, p);
    else
        flow_unknown_key (p, s, path, step_groups, step_keys);
}

static void flow_read_step (struct flow_step *st, const config_setting_t *s,
                            const config_setting_t *resources, struct problems *p)
{
    st->name = xstrdup (config_setting_name (s));
    st->origin = origin_of (s);
    st->source = -1;
    st->exp = create_flow_settings ();
    for (const struct key *k = step_keys; k->path; k++)
        key_default (st, k);
    if (resources)
        flow_read_group (st->exp, resources, "resources", "resources", p);
    if (!flow_is_name (st->name)) {
        problem_at (p, st->origin,
                    "'%s' is not a step name: 1 to 64 letters, digits, '_' and '-', not '-' first",
                    st->name);
        return;
    }
    if (!config_setting_is_group (s)) {
        key_wrong_type (p, s, st->name, "a group { entrypoint = ...; }");
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++)
        read_step_key (st, config_setting_get_elem (s, (unsigned)i), p);
    st->exp->resources->given.nodes = st->exp->resources->nodes > 1;
    st->exp->resources->given.node_gpus = st->exp->resources->node_gpus > 0;
    experiment_split_sbatch_args (st->exp);
    experiment_share_gpus (st->exp);
}

static void flow_step_free (struct flow_step *s)
{
    for (const struct key *k = step_keys; k->path; k++)
        key_free (s, k);
    experiment_destroy (s->exp);
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

/* ---- parameters: defaults in the file, and given values ---- */

static void flow_read_parameters (struct flow *f, const config_setting_t *s, struct problems *p)
{
    if (!config_setting_is_group (s)) {
        key_wrong_type (p, s, "parameters", "a group { name = value; }");
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *v = config_setting_get_elem (s, (unsigned)i);
        if (config_setting_is_group (v))
            key_wrong_type (p, v, config_setting_name (v), "a value, or a list of values");
        else if (!flow_is_name (config_setting_name (v))
                 || flow_step_find (f, config_setting_name (v)))
            problem_at (
                p, origin_of (v),
                "'%s' is not a parameter name: letters, digits, '_' and '-', and not a step's name",
                config_setting_name (v));
        else
            json_object_set_new (f->params, config_setting_name (v), setting_json (v));
    }
}

/* Parse a value as the type of the parameter's default: as a string, or else as JSON. */
static json_t *parameter_value_like (const json_t *old, const char *text)
{
    json_t *v;

    if (json_is_string (old))
        return json_string (text);
    v = json_loads (text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (v
        && (json_typeof (v) == json_typeof (old) || (json_is_number (v) && json_is_number (old))
            || (json_is_boolean (v) && json_is_boolean (old))))
        return v;
    json_decref (v);
    return NULL;
}

static const char *parameter_type_text (const json_t *v)
{
    return json_is_array (v)     ? "a list, as [1, 2]"
           : json_is_boolean (v) ? "true or false"
                                 : "a number";
}

static void flow_set_parameter (struct flow *f, const char *text, struct problems *p)
{
    size_t n = strcspn (text, "=");
    char *name = xstrndup (text, n);
    const json_t *old = json_object_get (f->params, name);
    const char *words[WORDS_MAX] = { 0 };
    const char *key, *meant;
    json_t *v = NULL;
    size_t i = 0;

    json_object_foreach (f->params, key, v)
        if (i < WORDS_MAX - 1)
            words[i++] = key;
    meant = nearest_word (name, words);
    if (!text[n] || n == 0)
        problem (p, "'%s' is not NAME=VALUE with the name of a parameter", text);
    else if (!old)
        problem (p, "%s has no parameter '%s'%s%s%s", f->file, name,
                 DID_YOU_MEAN (meant, "'", "'", ""));
    else if (!is_utf8 (text + n + 1) || !(v = parameter_value_like (old, text + n + 1)))
        problem (p, "'%s': the value must be %s", text, parameter_type_text (old));
    else
        json_object_set_new (f->params, name, v);
    free (name);
}

enum { FILE_SIZE_MAX = 8 << 20 };

static const char *const root_groups[] = { "name",        "description", "parameters",
                                           "steps",       "code",        "resources",
                                           "environment", "container",   "working_folder",
                                           NULL };

static void read_flow_steps (struct flow *f, const config_t *cf, const config_setting_t *s,
                             struct problems *p)
{
    const config_setting_t *resources = config_lookup (cf, "resources");
    int n = config_setting_length (s);

    if (!config_setting_is_group (s) || n == 0) {
        key_wrong_type (p, s, "steps", "a group of steps NAME { ... }");
        return;
    }
    if (n > FLOW_STEPS_MAX) {
        problem_at (p, origin_of (s),
                    "%d steps: at most %d; 'foreach' runs one step for each element of a list", n,
                    FLOW_STEPS_MAX);
        return;
    }
    /* read them once without a step, so that their mistakes are reported only once */
    if (resources)
        flow_read_group (f->base, resources, "resources", "resources", p);
    if (p->count > 0)
        return;
    f->steps = xcalloc ((size_t)n, sizeof (*f->steps));
    for (f->n = 0; f->n < (size_t)n; f->n++)
        flow_read_step (&f->steps[f->n], config_setting_get_elem (s, (unsigned)f->n), resources, p);
}

static void read_flow_root (struct flow *f, const config_t *cf, struct problems *p)
{
    const config_setting_t *root = config_root_setting (cf);
    const config_setting_t *steps = config_lookup (cf, "steps");

    bool misspelt = false;

    if (steps)
        read_flow_steps (f, cf, steps, p);
    for (int i = 0; i < config_setting_length (root); i++) {
        config_setting_t *s = config_setting_get_elem (root, (unsigned)i);
        const char *name = config_setting_name (s);
        if (!strcmp (name, "name") || !strcmp (name, "description")
            || !strcmp (name, "working_folder"))
            key_set (f->base, key_find (experiment_keys, name), s, p);
        else if (!strcmp (name, "code"))
            flow_read_group (f->base, s, "code", "code", p);
        else if (!strcmp (name, "environment"))
            experiment_read_environment (f->base, s, p);
        else if (!strcmp (name, "container"))
            flow_read_container (f->base, s, name, p);
        else if (!strcmp (name, "parameters"))
            flow_read_parameters (f, s, p);
        else if (strcmp (name, "steps") && strcmp (name, "resources")) {
            flow_unknown_key (p, s, name, root_groups, NULL);
            misspelt = true;
        }
    }
    flow_read_working_folder (f, cf, p);
    if (!steps && !misspelt)
        problem_at (p, NO_ORIGIN, "'steps' is missing: steps { NAME { ... } }");
    if (!f->base->name && !misspelt)
        problem_at (p, NO_ORIGIN, "'name' is missing: the name of the flow");
    else if (f->base->name && !flow_is_name (f->base->name))
        problem_at (p, origin_of_key (cf, "name"),
                    "'name' is '%s': 1 to 64 letters, digits, '_' and '-', not '-' first",
                    f->base->name);
}

struct flow *flow_read (const char *path, const char *dir, char *const *given, const json_t *values,
                        struct problems *p)
{
    struct flow *f = xcalloc (1, sizeof (*f));
    int parts = 0;
    config_t cf;

    config_init (&cf);
    p->file = path;
    if (experiment_parse (&cf, path, dir ? NULL : &parts, p) < 0) {
        config_destroy (&cf);
        free (f);
        return NULL;
    }
    f->file = xstrdup (path);
    f->params = json_object ();
    f->base = create_flow_settings ();
    f->base->dir = dir ? xstrdup (dir) : file_folder (path);
    if (!f->base->dir)
        file_folder_problem (p, errno);
    if (parts == 0)
        f->text = file_read_named (path, FILE_SIZE_MAX, NULL, NULL);
    if (!f->text) /* it includes other files, or is a pipe */
        f->text = edit_text (&cf);
    f->is_frozen = dir != NULL;
    setting_check_texts (config_root_setting (&cf), p);
    if (p->count == 0)
        read_flow_root (f, &cf, p);
    if (p->count == 0)
        flow_check_software (f, &cf, p);
    for (; p->count == 0 && given && *given; given++)
        flow_set_parameter (f, *given, p);
    json_object_update (f->params, (json_t *)values);
    if (p->count == 0)
        flow_check (f, &cf, p);
    config_destroy (&cf);
    if (p->count == 0 && f->text && f->base->dir)
        return f;
    flow_free (f);
    errno = EINVAL;
    return NULL;
}

void flow_free (struct flow *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        flow_step_free (&f->steps[i]);
    experiment_destroy (f->base);
    json_decref (f->params);
    free (f->steps);
    free (f->order);
    free (f->file);
    free (f->text);
    free (f);
}

struct flow *flow_file_read (const char *path, char *const *given, const struct flow_options *opt)
{
    struct problems p;
    struct flow *f;
    int e;

    problems_open (&p);
    f = flow_read (path, NULL, given, NULL, &p);
    e = errno;
    if (f && opt)
        flow_find_software (f, opt->local, !opt->dry_run, &p);
    if (f && p.count > 0) {
        flow_free (f);
        f = NULL;
        e = EINVAL;
    }
    problems_close (&p);
    for (char *line = p.text, *end; !f && *line; line = end + 1) {
        end = line + strcspn (line, "\n");
        complain ("%.*s", (int)(end - line), line);
        if (!*end)
            break;
    }
    free (p.text);
    errno = e;
    return f;
}
