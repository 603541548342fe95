/* SPDX-License-Identifier: Apache-2.0 */
/* The types of hyperparameters that an experiment file may name. */
#include "launcher/config/param_kind.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "launcher/config/experiment.h"
#include "launcher/config/option_origin.h"
#include "runtime/base/nearest_word.h"
#include "searcher/searcher.h"

enum { TEXT_SIZE = 256 };

/* clang-format off */
static const struct param_kind kinds[] = {
    { "float",       PARAM_FLOAT,       { "minval", "maxval", "count", "step", "mean", "deviation", "default", "when", "on_oom" }, 2 },
    { "double",      PARAM_FLOAT,       { "minval", "maxval", "count", "step", "mean", "deviation", "default", "when", "on_oom" }, 2 },
    { "int",         PARAM_INT,         { "minval", "maxval", "base", "count", "step", "mean", "deviation", "default", "when", "on_oom" }, 2 },
    { "log",         PARAM_LOG,         { "minval", "maxval", "base", "count", "mean", "deviation", "default", "when", "on_oom" }, 2 },
    { "loguniform",  PARAM_LOG,         { "min", "max", "count", "mean", "deviation", "default", "when", "on_oom" }, 2, true },
    { "loguniform",  PARAM_LOG,         { "minval", "maxval", "count", "mean", "deviation", "default", "when", "on_oom" }, 2, true },
    { "categorical", PARAM_CATEGORICAL, { "vals", "default", "when", "on_oom" }, 1 },
    { "const",       KIND_CONST,        { "val" }, 1 },
    { "null",        KIND_CONST,        { NULL }, 0 },
    { 0 },
};
/* clang-format on */

/* Of several rows of a name the one whose first or second key is there. */
const struct param_kind *param_kind_find (const char *name, const config_setting_t *s)
{
    const struct param_kind *found = NULL;

    for (const struct param_kind *k = kinds; k->name; k++)
        if (!strcmp (k->name, name)
            && (!found || config_setting_get_member (s, k->keys[0])
                || config_setting_get_member (s, k->keys[1])))
            found = k;
    return found;
}

int param_problem (const config_setting_t *s, struct problems *p, const char *path,
                   const char *text)
{
    problem_at (p, origin_of (s), "hyperparameter '%s': %s", path, text);
    return -1;
}

/* Its index in the keys, or that of their end. */
static int key_index (const struct param_kind *kind, const char *name)
{
    int k = 0;

    while (kind->keys[k] && strcmp (kind->keys[k], name))
        k++;
    return k;
}

/* What other programs call a type, and the first or the second key of one. */
static const char *const other_types[][2] = {
    { "uniform", "float" },      { "integer", "int" },
    { "choice", "categorical" }, { "discrete", "categorical" },
    { "bool", "categorical" },   { "log_uniform_values", "loguniform" },
};
static const char *const other_keys[][2] = {
    { "low", "high" },
    { "lower", "upper" },
    { "choices", "" },
    { "options", "" },
};

static const char *type_meant (const char *name)
{
    const char *names[sizeof (kinds) / sizeof (*kinds)] = { 0 };

    for (size_t i = 0; i < sizeof (other_types) / sizeof (*other_types); i++)
        if (!strcasecmp (other_types[i][0], name))
            return other_types[i][1];
    for (size_t i = 0; kinds[i].name; i++)
        names[i] = kinds[i].name;
    return nearest_word (name, names);
}

/* The nearest key, or for "max" "maxval". */
static const char *key_meant (const struct param_kind *kind, const char *name)
{
    const char *meant = nearest_word (name, kind->keys);

    for (size_t i = 0; i < sizeof (other_keys) / sizeof (*other_keys); i++)
        for (int k = 0; k < kind->must && k < 2; k++)
            if (!strcmp (other_keys[i][k], name))
                return kind->keys[k];
    for (int k = 0; !meant && k < kind->must; k++)
        if (strlen (name) > 2 && !strncmp (kind->keys[k], name, strlen (name)))
            meant = kind->keys[k];
    return meant;
}

int param_kind_check (const struct param_kind *kind, const char *path, const config_setting_t *s,
                      struct problems *p)
{
    char text[TEXT_SIZE];
    int before = p->count;
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        const char *name = config_setting_name (c);
        const char *meant;
        if (kind->keys[key_index (kind, name)] || !strcmp (name, "type"))
            continue;
        meant = key_meant (kind, name);
        snprintf (text, sizeof (text), "unknown key '%s'%s%s%s", name,
                  DID_YOU_MEAN (meant, "'", "'", ""));
        param_problem (c, p, path, text);
    }
    /* an unknown key may be meant to be a missing one */
    for (int k = 0; k < kind->must && p->count == before; k++)
        if (!config_setting_get_member (s, kind->keys[k])) {
            snprintf (text, sizeof (text), "type \"%s\" needs '%s'", kind->name, kind->keys[k]);
            param_problem (s, p, path, text);
        }
    return p->count == before ? 0 : -1;
}

void param_kind_unknown (const config_setting_t *type, const char *path, struct problems *p)
{
    const char *name = config_setting_get_string (type);
    const char *meant = name ? type_meant (name) : NULL;
    char text[TEXT_SIZE];

    snprintf (text, sizeof (text),
              "type must be \"float\", \"int\", \"log\", \"loguniform\", "
              "\"categorical\", \"const\" or \"null\"%s%s%s",
              DID_YOU_MEAN (meant, "\"", "\"", ""));
    param_problem (type, p, path, text);
}
