/* SPDX-License-Identifier: Apache-2.0 */
/* Read the search space of an experiment file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/private.h"

enum { PATH_SIZE = 128 };

/* What a typed hyperparameter may hold; 'must' keys are first in 'keys'. */
struct kind {
    const char *name;
    int type; /* enum param_type, or KIND_CONST */
    const char *keys[6];
    int must;
};

enum { KIND_CONST = -1 };

/* clang-format off */
static const struct kind kinds[] = {
    { "float",       PARAM_FLOAT,       { "minval", "maxval", "count" },         2 },
    { "double",      PARAM_FLOAT,       { "minval", "maxval", "count" },         2 },
    { "int",         PARAM_INT,         { "minval", "maxval", "base", "count" }, 2 },
    { "log",         PARAM_LOG,         { "minval", "maxval", "base", "count" }, 2 },
    { "categorical", PARAM_CATEGORICAL, { "vals" },                              1 },
    { "const",       KIND_CONST,        { "val" },                               1 },
    { 0 },
};
/* clang-format on */

static const struct kind *find_kind (const char *name)
{
    for (const struct kind *k = kinds; k->name; k++)
        if (!strcmp (k->name, name))
            return k;
    return NULL;
}

static json_t *setting_json (const config_setting_t *s)
{
    json_t *v;

    switch (config_setting_type (s)) {
    case CONFIG_TYPE_INT:
        return json_integer (config_setting_get_int (s));
    case CONFIG_TYPE_INT64:
        return json_integer (config_setting_get_int64 (s));
    case CONFIG_TYPE_FLOAT:
        return json_real (config_setting_get_float (s));
    case CONFIG_TYPE_BOOL:
        return json_boolean (config_setting_get_bool (s));
    case CONFIG_TYPE_STRING:
        return json_string (config_setting_get_string (s));
    case CONFIG_TYPE_GROUP:
        v = json_object ();
        break;
    default:
        v = json_array ();
        break;
    }
    for (int i = 0; v && i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        if (config_setting_is_group (s))
            json_object_set_new (v, config_setting_name (c), setting_json (c));
        else
            json_array_append_new (v, setting_json (c));
    }
    return v;
}

static struct hparam *
add_hparam (struct experiment *e, const char *path, const config_setting_t *s)
{
    struct hparam *h = realloc (e->hparams, (e->nhparams + 1) * sizeof (*h));

    if (!h)
        return NULL;
    e->hparams = h;
    h += e->nhparams;
    *h = (struct hparam){ .path = strdup (path),
                          .dim = -1,
                          .line = config_setting_source_line (s) };
    if (!h->path)
        return NULL;
    e->nhparams++;
    return h;
}

static int problem_at (const struct experiment *e,
                       const config_setting_t *s,
                       struct problems *p,
                       const char *path,
                       const char *text)
{
    problem (p,
             "%s:%d: hyperparameter '%s': %s",
             e->file,
             config_setting_source_line (s),
             path,
             text);
    return -1;
}

static int set_field (struct experiment *e,
                      struct param *d,
                      const char *path,
                      const config_setting_t *s,
                      struct problems *p)
{
    const char *name = config_setting_name (s);
    char text[PATH_SIZE];
    double v;

    if (setting_number (s, &v) < 0) {
        snprintf (text, sizeof (text), "'%s' must be a number", name);
        return problem_at (e, s, p, path, text);
    }
    if (!strcmp (name, "minval"))
        d->min = v;
    else if (!strcmp (name, "maxval"))
        d->max = v;
    else if (!strcmp (name, "base"))
        d->base = v;
    else if (v == floor (v) && v >= 1 && v <= 1e7)
        d->count = (long)v;
    else
        return problem_at (e, s, p, path, "'count' must be an integer >= 1");
    return 0;
}

static int
add_dimension (struct experiment *e, struct hparam *h, const struct param *d)
{
    struct param *list = realloc (e->params, (e->nparams + 1) * sizeof (*list));

    if (!list)
        return -1;
    e->params = list;
    h->dim = (int)e->nparams;
    list[e->nparams++] = *d;
    return 0;
}

static int check_fields (const struct experiment *e,
                         const struct kind *kind,
                         const char *path,
                         const config_setting_t *s,
                         struct problems *p)
{
    char text[PATH_SIZE * 2];
    int before = p->count;

    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        const char *name = config_setting_name (c);
        const char *meant;
        size_t k = 0;
        while (kind->keys[k] && strcmp (kind->keys[k], name))
            k++;
        if (kind->keys[k] || !strcmp (name, "type"))
            continue;
        meant = nearest_word (name, kind->keys);
        snprintf (text,
                  sizeof (text),
                  "unknown key '%s'%s%s%s",
                  name,
                  meant ? "; did you mean '" : "",
                  meant ? meant : "",
                  meant ? "'?" : "");
        problem_at (e, c, p, path, text);
    }
    for (int k = 0; k < kind->must; k++)
        if (!config_setting_get_member (s, kind->keys[k])) {
            snprintf (text,
                      sizeof (text),
                      "type \"%s\" needs '%s'",
                      kind->name,
                      kind->keys[k]);
            problem_at (e, s, p, path, text);
        }
    return p->count == before ? 0 : -1;
}

static void read_choices (struct experiment *e,
                          struct hparam *h,
                          const config_setting_t *s,
                          struct problems *p)
{
    const config_setting_t *vals = config_setting_get_member (s, "vals");
    struct param d = { .type = PARAM_CATEGORICAL };

    if (config_setting_is_scalar (vals) || config_setting_is_group (vals)) {
        problem_at (e, vals, p, h->path, "'vals' must be a list");
        return;
    }
    h->values = setting_json (vals);
    d.choices = config_setting_length (vals);
    add_dimension (e, h, &d);
}

static void read_typed (struct experiment *e,
                        const char *path,
                        const config_setting_t *s,
                        const struct kind *kind,
                        struct problems *p)
{
    struct param d = { .type = (enum param_type)kind->type,
                       .base = kind->type == PARAM_LOG ? 10 : 0 };
    struct hparam *h;

    if (check_fields (e, kind, path, s, p) < 0
        || !(h = add_hparam (e, path, s)))
        return;
    if (kind->type == KIND_CONST) {
        h->values = setting_json (config_setting_get_member (s, "val"));
        return;
    }
    if (kind->type == PARAM_CATEGORICAL) {
        read_choices (e, h, s, p);
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        if (strcmp (config_setting_name (c), "type")
            && set_field (e, &d, path, c, p) < 0)
            return;
    }
    add_dimension (e, h, &d);
}

static void unknown_type (const struct experiment *e,
                          const config_setting_t *type,
                          const char *path,
                          struct problems *p)
{
    const char *names[sizeof (kinds) / sizeof (*kinds)] = { 0 };
    const char *name = config_setting_get_string (type);
    const char *meant = NULL;
    char text[PATH_SIZE * 2];

    for (size_t i = 0; kinds[i].name; i++)
        names[i] = kinds[i].name;
    if (name)
        meant = nearest_word (name, names);
    snprintf (text,
              sizeof (text),
              "type must be \"float\", \"int\", \"log\", \"categorical\" or "
              "\"const\"%s%s%s",
              meant ? "; did you mean \"" : "",
              meant ? meant : "",
              meant ? "\"?" : "");
    problem_at (e, type, p, path, text);
}

static void read_members (struct experiment *e,
                          const config_setting_t *group,
                          const char *prefix,
                          struct problems *p);

static void read_one (struct experiment *e,
                      const config_setting_t *s,
                      const char *path,
                      struct problems *p)
{
    const config_setting_t *type = config_setting_is_group (s)
                                       ? config_setting_get_member (s, "type")
                                       : NULL;
    char prefix[PATH_SIZE + 1];
    const char *name;
    const struct kind *kind;
    struct hparam *h;

    if (type) {
        name = config_setting_get_string (type);
        if (name && (kind = find_kind (name)))
            read_typed (e, path, s, kind, p);
        else
            unknown_type (e, type, path, p);
        return;
    }
    if (config_setting_is_group (s) && config_setting_length (s) > 0) {
        snprintf (prefix, sizeof (prefix), "%s.", path);
        read_members (e, s, prefix, p);
        return;
    }
    if ((h = add_hparam (e, path, s)))
        h->values = setting_json (s);
}

static void read_members (struct experiment *e,
                          const config_setting_t *group,
                          const char *prefix,
                          struct problems *p)
{
    char path[PATH_SIZE];

    for (int i = 0; i < config_setting_length (group); i++) {
        const config_setting_t *s =
            config_setting_get_elem (group, (unsigned)i);
        int n = snprintf (
            path, sizeof (path), "%s%s", prefix, config_setting_name (s));
        if (n >= (int)sizeof (path))
            problem_at (e, s, p, path, "the name is too long");
        else
            read_one (e, s, path, p);
    }
}

static int by_path (const void *a, const void *b)
{
    const struct hparam *x = a;
    const struct hparam *y = b;

    return strcmp (x->path, y->path);
}

/* The order of the file must not matter: dimensions follow the names. */
static int sort_dimensions (struct experiment *e)
{
    struct param *sorted = calloc (e->nparams + 1, sizeof (*sorted));
    int n = 0;

    if (!sorted)
        return -1;
    qsort (e->hparams, e->nhparams, sizeof (*e->hparams), by_path);
    for (size_t i = 0; i < e->nhparams; i++) {
        struct hparam *h = &e->hparams[i];
        if (h->dim < 0)
            continue;
        sorted[n] = e->params[h->dim];
        sorted[n].name = h->path;
        h->dim = n++;
    }
    free (e->params);
    e->params = sorted;
    return 0;
}

static void check_variables (const struct experiment *e, struct problems *p)
{
    char a[PATH_SIZE + 8];
    char b[PATH_SIZE + 8];

    for (size_t i = 0; i < e->nhparams; i++)
        for (size_t j = 0; j < i; j++) {
            hparams_variable (a, sizeof (a), e->hparams[i].path);
            hparams_variable (b, sizeof (b), e->hparams[j].path);
            if (!strcmp (a, b))
                problem (p,
                         "%s:%d: hyperparameters '%s' and '%s' would both be "
                         "%s; rename one",
                         e->file,
                         e->hparams[i].line,
                         e->hparams[j].path,
                         e->hparams[i].path,
                         a);
        }
}

void space_read (struct experiment *e,
                 const config_setting_t *group,
                 struct problems *p)
{
    if (!config_setting_is_group (group)) {
        setting_problem (p,
                         e,
                         config_setting_source_line (group),
                         "'hyperparameters' must be a group { ... }");
        return;
    }
    read_members (e, group, "", p);
    if (sort_dimensions (e) < 0)
        setting_problem (p, e, 0, "out of memory");
    check_variables (e, p);
}
