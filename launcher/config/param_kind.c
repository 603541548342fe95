/* SPDX-License-Identifier: Apache-2.0 */
/* The types of hyperparameters that an experiment file may name. */
#include "launcher/config/param_kind.h"

#include <stdio.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/option_origin.h"
#include "runtime/base/word.h"

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
const struct param_kind *param_kind_find (const char *name,
                                          const config_setting_t *s)
{
    const struct param_kind *found = NULL;

    for (const struct param_kind *k = kinds; k->name; k++)
        if (!strcmp (k->name, name)
            && (!found || config_setting_get_member (s, k->keys[0])
                || config_setting_get_member (s, k->keys[1])))
            found = k;
    return found;
}

int param_problem (const config_setting_t *s,
                   struct problems *p,
                   const char *path,
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

/* The nearest key, or for "max" "maxval". */
static const char *key_meant (const struct param_kind *kind, const char *name)
{
    const char *meant = nearest_word (name, kind->keys);

    for (int k = 0; !meant && k < kind->must; k++)
        if (strlen (name) > 2 && !strncmp (kind->keys[k], name, strlen (name)))
            meant = kind->keys[k];
    return meant;
}

int param_kind_check (const struct param_kind *kind,
                      const char *path,
                      const config_setting_t *s,
                      struct problems *p)
{
    char text[TEXT_SIZE];
    int before = p->count;
    int given = 0; /* bits of keys that are there, but misspelt */

    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        const char *name = config_setting_name (c);
        const char *meant;
        if (kind->keys[key_index (kind, name)] || !strcmp (name, "type"))
            continue;
        if ((meant = key_meant (kind, name)))
            given |= 1 << key_index (kind, meant);
        snprintf (text,
                  sizeof (text),
                  "unknown key '%s'%s%s%s",
                  name,
                  meant ? "; did you mean '" : "",
                  meant ? meant : "",
                  meant ? "'?" : "");
        param_problem (c, p, path, text);
    }
    for (int k = 0; k < kind->must; k++)
        if (!(given & 1 << k)
            && !config_setting_get_member (s, kind->keys[k])) {
            snprintf (text,
                      sizeof (text),
                      "type \"%s\" needs '%s'",
                      kind->name,
                      kind->keys[k]);
            param_problem (s, p, path, text);
        }
    return p->count == before ? 0 : -1;
}

void param_kind_unknown (const config_setting_t *type,
                         const char *path,
                         struct problems *p)
{
    const char *names[sizeof (kinds) / sizeof (*kinds)] = { 0 };
    const char *name = config_setting_get_string (type);
    const char *meant = NULL;
    char text[TEXT_SIZE];

    for (size_t i = 0; kinds[i].name; i++)
        names[i] = kinds[i].name;
    if (name)
        meant = nearest_word (name, names);
    snprintf (text,
              sizeof (text),
              "type must be \"float\", \"int\", \"log\", \"loguniform\", "
              "\"categorical\", \"const\" or \"null\"%s%s%s",
              meant ? "; did you mean \"" : "",
              meant ? meant : "",
              meant ? "\"?" : "");
    param_problem (type, p, path, text);
}
