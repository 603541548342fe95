/* SPDX-License-Identifier: Apache-2.0 */
/* Read an experiment file with libconfig into a struct experiment. */
#include "launcher/config/experiment.h"

#include <ctype.h>
#include <errno.h>
#include <libconfig.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/edit.h"
#include "launcher/config/keys.h"
#include "launcher/config/known_points.h"
#include "launcher/config/log_policy_config.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/reading.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/space.h"
#include "launcher/config/syntax.h"
#include "launcher/config/validate.h"
#include "launcher/config/yaml.h"
#include "launcher/sys/strings.h"
#include "runtime/base/utf8.h"
#include "runtime/base/word.h"

#define WORDS_MAX 96

static void *at (struct experiment *e, const struct key *k)
{
    return (char *)e + k->offset;
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

/* ---- values ---- */

static int wrong_type (struct problems *p,
                       const config_setting_t *s,
                       const char *path,
                       const char *wanted)
{
    problem_about (p, path);
    problem_at (p,
                origin_of (s),
                "'%s' is %s, but must be %s",
                path,
                type_name (s),
                wanted);
    return -1;
}

/* Determined's { batches = 100 }: the unit is what the trainer counts. */
static const config_setting_t *plain_length (const struct key *k,
                                             const config_setting_t *s)
{
    static const char *const units[] = { "batches", "epochs", "records" };

    if (strcmp (k->path, "searcher.max_length") || !config_setting_is_group (s)
        || config_setting_length (s) != 1)
        return s;
    for (size_t i = 0; i < sizeof (units) / sizeof (*units); i++)
        if (!strcmp (config_setting_name (config_setting_get_elem (s, 0)),
                     units[i]))
            return config_setting_get_elem (s, 0);
    return s;
}

static int set_number (struct experiment *e,
                       const struct key *k,
                       const config_setting_t *s,
                       struct problems *p)
{
    double v;

    s = plain_length (k, s);
    if (setting_number (s, &v) < 0
        || (k->type == KEY_INT && config_setting_type (s) == CONFIG_TYPE_FLOAT))
        return wrong_type (
            p, s, k->path, k->type == KEY_INT ? "an integer" : "a number");
    if (!(v >= k->min && v <= k->max)) {
        problem_about (p, k->path);
        problem_at (p,
                    origin_of (s),
                    "'%s' is %.15g, but must be from %.15g to %.15g",
                    k->path,
                    v,
                    k->min,
                    k->max);
        return -1;
    }
    if (k->type == KEY_INT)
        *(int64_t *)at (e, k) = (int64_t)v;
    else
        *(double *)at (e, k) = v;
    return 0;
}

static char **
string_list (const char *path, const config_setting_t *s, struct problems *p)
{
    int n = setting_is_list (s) ? config_setting_length (s) : 1;
    char **list = calloc ((size_t)n + 1, sizeof (*list));

    for (int i = 0; list && i < n; i++) {
        const config_setting_t *item =
            setting_is_list (s) ? config_setting_get_elem (s, (unsigned)i) : s;
        const char *text = config_setting_get_string (item);
        if (!text) {
            wrong_type (p,
                        item,
                        path,
                        setting_is_list (s) ? "a list of strings"
                                            : "a string or a list of strings");
            strings_free (list);
            return NULL;
        }
        list[i] = strdup (text);
    }
    return list;
}

static void set_list (struct experiment *e,
                      const struct key *k,
                      const config_setting_t *s,
                      struct problems *p)
{
    char ***list = k->type == KEY_TEXT ? &e->argv : at (e, k);

    strings_free (*list);
    *list = string_list (k->path, s, p);
}

static void set_string (struct experiment *e,
                        const struct key *k,
                        const config_setting_t *s,
                        struct problems *p)
{
    char **text = at (e, k);

    if (!config_setting_get_string (s)) {
        wrong_type (p,
                    s,
                    k->path,
                    k->type == KEY_TEXT ? "a string or a list of strings"
                                        : "a string");
        return;
    }
    free (*text);
    *text = strdup (config_setting_get_string (s));
}

static void set_bools (struct experiment *e,
                       const struct key *k,
                       const config_setting_t *s,
                       struct problems *p)
{
    int n = setting_is_list (s) ? config_setting_length (s) : 1;
    struct bools *list = at (e, k);

    list->n = 0;
    for (int i = 0; i < n; i++) {
        const config_setting_t *item =
            setting_is_list (s) ? config_setting_get_elem (s, (unsigned)i) : s;
        if (config_setting_type (item) != CONFIG_TYPE_BOOL) {
            wrong_type (p, item, k->path, "true or false, or a list of these");
            return;
        }
        if (list->n < OBJECTIVES_MAX)
            list->value[list->n] = config_setting_get_bool (item);
        list->n++;
    }
}

static void set_value (struct experiment *e,
                       const struct key *k,
                       const config_setting_t *s,
                       struct problems *p)
{
    switch (k->type) {
    case KEY_INT:
    case KEY_FLOAT:
        set_number (e, k, s, p);
        return;
    case KEY_BOOL:
        if (config_setting_type (s) != CONFIG_TYPE_BOOL)
            wrong_type (p, s, k->path, "true or false");
        else
            *(bool *)at (e, k) = config_setting_get_bool (s);
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

static void set_default (struct experiment *e, const struct key *k)
{
    if (!k->byname || *k->byname == '!')
        return;
    switch (k->type) {
    case KEY_INT:
        *(int64_t *)at (e, k) = strtoll (k->byname, NULL, 10);
        break;
    case KEY_FLOAT:
        *(double *)at (e, k) = strtod (k->byname, NULL);
        break;
    case KEY_BOOL:
        *(bool *)at (e, k) = !strcmp (k->byname, "true");
        break;
    case KEY_BOOLS:
        *(struct bools *)at (e, k) =
            (struct bools){ 1, { !strcmp (k->byname, "true") } };
        break;
    case KEY_STRING:
    case KEY_TEXT:
        *(char **)at (e, k) = strdup (k->byname);
        break;
    case KEY_LIST:
    case KEY_GROUPS:
        break;
    }
}

/* ---- the tree of keys ---- */

static const struct key *find_key (const char *path)
{
    for (const struct key *k = experiment_keys; k->path; k++)
        if (!strcmp (k->path, path))
            return k;
    return NULL;
}

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
    { "n_trials", "searcher.max_trials" },
    { "num_samples", "searcher.max_trials" },
    { "epochs", "searcher.max_length" },
    { "gpus", "resources.slots_per_trial" },
    { "cpus", "resources.cpus_per_trial" },
    { "parameters", "hyperparameters" },
    { "params", "hyperparameters" },
    { "program", "entrypoint" },
    { "script", "entrypoint" },
};

/* Determined's keys (0.38) that have no key of the same meaning here. */
static const char *const determined[][2] = {
    { "async_halving", "the searcher is a key: searcher.name = \"asha\"" },
    { "adaptive_asha_search", "searcher.name = \"adaptive_asha\"" },
    { "max_time", "the length of a full training is 'searcher.max_length'" },
    { "time_metric", "lengths are counted in the steps that a trainer logs" },
    { "stop_once", "searcher.name = \"stopping_asha\" or \"asha\" says it" },
    { "bracket_rungs", "'searcher.mode' and 'searcher.max_rungs' say it" },
};

static const char *hint_for (const char *last)
{
    for (size_t i = 0; i < sizeof (determined) / sizeof (*determined); i++)
        if (!strcmp (determined[i][0], last))
            return determined[i][1];
    return NULL;
}

static const char *suggestion (const char *path, const char *last)
{
    const char *words[WORDS_MAX] = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < sizeof (others) / sizeof (*others); i++)
        if (!strcmp (others[i][0], last))
            return others[i][1];
    for (const struct key *k = experiment_keys; k->path; k++) {
        const char *dot = strrchr (k->path, '.');
        if (dot && !strcmp (dot + 1, last))
            return k->path;
        if (n < WORDS_MAX - 3)
            words[n++] = k->path;
    }
    words[n++] = "hyperparameters";
    words[n++] = "environment";
    return nearest_word (path, words);
}

static void
unknown_key (const config_setting_t *s, const char *path, struct problems *p)
{
    const char *groups[] = { "searcher",
                             "resources",
                             "metrics",
                             "reproducibility",
                             "checkpoint_policy",
                             "worker",
                             "hyperparameters",
                             "environment",
                             "code",
                             "container",
                             "notify",
                             NULL };
    const char *hint = hint_for (config_setting_name (s));
    const char *meant = suggestion (path, config_setting_name (s));

    if (hint) {
        problem_at (p, origin_of (s), "unknown key '%s'; %s", path, hint);
        return;
    }
    if (!meant && !strchr (path, '.'))
        meant = nearest_word (path, groups);
    if (meant)
        problem_about (p, meant);
    problem_at (p,
                origin_of (s),
                "unknown key '%s'%s%s%s",
                path,
                meant ? "; did you mean '"
                      : "; dl-experiment(5) lists the keys",
                meant ? meant : "",
                meant ? "'?" : "");
}

static void read_variable (struct experiment *e,
                           const config_setting_t *s,
                           const char *path,
                           struct problems *p)
{
    const char *text = config_setting_get_string (s);
    const char *name = config_setting_name (s);
    bool strict = !strncmp (path, "environment.variables.", 22);
    char *variable = NULL;

    if (!text)
        wrong_type (p, s, path, "a string");
    else if (!variable_name_fits (name, strict))
        problem_at (p,
                    origin_of (s),
                    "'%s': a variable's name has letters, digits and '_', and "
                    "does not begin with a digit",
                    path);
    else if (asprintf (&variable, "%s=%s", name, text) > 0)
        strings_add (&e->variables, variable, strlen (variable));
    free (variable);
}

static void read_environment (struct experiment *e,
                              const config_setting_t *s,
                              const char *path,
                              struct problems *p)
{
    if (!config_setting_is_group (s)) {
        wrong_type (p, s, path, "a group");
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *v = config_setting_get_elem (s, (unsigned)i);
        const struct key *k;
        char name[256];
        snprintf (name, sizeof (name), "%s.%s", path, config_setting_name (v));
        if ((k = find_key (name)))
            set_value (e, k, v, p);
        else if (!strcmp (name, "environment.variables"))
            read_environment (e, v, name, p);
        else
            read_variable (e, v, name, p);
    }
}

static void read_group (struct experiment *e,
                        const config_setting_t *group,
                        const char *prefix,
                        struct problems *p)
{
    for (int i = 0; i < config_setting_length (group); i++) {
        config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        const struct key *k;
        char path[256];

        snprintf (path, sizeof (path), "%s%s", prefix, config_setting_name (s));
        if ((k = find_key (path)))
            set_value (e, k, s, p);
        else if (!strcmp (path, "hyperparameters"))
            space_read (e, s, p);
        else if (!strcmp (path, "environment"))
            read_environment (e, s, path, p);
        else if (!strcmp (path, "container") && !config_setting_is_group (s))
            set_value (e, find_key ("container.image"), s, p);
        else if (!is_group (path))
            unknown_key (s, path, p);
        else if (!config_setting_is_group (s))
            wrong_type (p,
                        s,
                        path,
                        strcmp (path, "checkpoint_policy")
                            ? "a group { ... }"
                            : "a group { ... }; with its three keys 0 none is "
                              "kept");
        else {
            strcat (path, ".");
            read_group (e, s, path, p);
        }
    }
}

/* ---- the whole file ---- */

/* All that goes into JSON must be UTF-8. */
static int check_texts (const struct experiment *e,
                        const config_setting_t *s,
                        struct problems *p)
{
    const char *text = s ? config_setting_get_string (s) : NULL;
    int before = p->count;

    if (text && !is_utf8 (text))
        problem_at (
            p, origin_of (s), "this text is not UTF-8: save the file as UTF-8");
    if (s && config_setting_is_aggregate (s))
        for (int i = 0; i < config_setting_length (s); i++)
            check_texts (e, config_setting_get_elem (s, (unsigned)i), p);
    return p->count > before ? -1 : 0;
}

static char *folder_of (const char *path)
{
    char full[PATH_MAX];
    char *slash;

    if (!realpath (path, full))
        return NULL;
    slash = strrchr (full, '/');
    slash[slash == full] = '\0';
    return strdup (full);
}

static bool is_yaml (const char *path)
{
    const char *dot = strrchr (path, '.');

    return dot && (!strcasecmp (dot, ".yaml") || !strcasecmp (dot, ".yml"));
}

/* '*parts' becomes how many files beside libconfig's own there were; NULL: it
 * is an experiment's own copy, where there may be none.
 */
static int
file_parse (config_t *cf, const char *path, int *parts, struct problems *p)
{
    if (!parts || !is_yaml (path))
        return syntax_read (cf, path, parts, p);
    *parts = 1;
    return yaml_read (cf, path, p);
}

/* 'text' is NULL: that of the file. */
static struct experiment *read_experiment (const char *path,
                                           const char *text,
                                           size_t size,
                                           const struct edit *edit,
                                           struct problems *p)
{
    struct experiment *e = calloc (1, sizeof (*e));
    int parts = 0;
    config_t cf;

    config_init (&cf);
    p->file = path;
    if (!e || !(e->file = strdup (path))
        || (text ? syntax_read_text (&cf, path, text, size, p)
                 : file_parse (&cf, path, edit ? &parts : NULL, p))
               < 0)
        goto fail;
    e->dir = edit && edit->dir ? strdup (edit->dir) : folder_of (path);
    /* an experiment's own copy is one file that libconfig reads */
    if ((edit && edit_apply (edit, &cf, p) == 1) || parts > 0)
        e->text = edit_text (&cf);
    else if (edit && edit->file)
        e->text = strdup (edit->file);
    e->seed = e->max_failed = -1;
    e->goal = NAN;
    for (const struct key *k = experiment_keys; k->path; k++)
        set_default (e, k);
    if (check_texts (e, config_lookup (&cf, "hyperparameters"), p) == 0
        && check_texts (e, config_lookup (&cf, "searcher"), p) == 0) {
        read_group (e, config_root_setting (&cf), "", p);
        experiment_check (e, &cf, p);
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

struct experiment *experiment_read (const char *path, struct problems *p)
{
    return experiment_read_edited (path, NULL, p);
}

struct experiment *experiment_read_edited (const char *path,
                                           const struct edit *edit,
                                           struct problems *p)
{
    const char *text = edit ? edit->file : NULL;

    return read_experiment (path, text, text ? strlen (text) : 0, edit, p);
}

struct experiment *experiment_read_text (const char *path,
                                         const char *text,
                                         size_t size,
                                         struct problems *p)
{
    return read_experiment (path, text, size, NULL, p);
}

void experiment_destroy (struct experiment *e)
{
    int saved = errno;

    if (!e)
        return;
    for (const struct key *k = experiment_keys; k->path; k++)
        if (k->type == KEY_STRING || k->type == KEY_TEXT)
            free (*(char **)at (e, k));
        else if (k->type == KEY_LIST)
            strings_free (*(char ***)at (e, k));
    strings_free (e->argv);
    strings_free (e->variables);
    strings_free (e->software.activated);
    space_free (e);
    free (e->constraint);
    free (e->points);
    policies_free (e);
    known_points_free (e);
    free (e->file);
    free (e->dir);
    free (e->file_dir);
    free (e->folder);
    free (e->text);
    free (e->source);
    free (e->source_file);
    free (e);
    errno = saved;
}
