/* SPDX-License-Identifier: Apache-2.0 */
/* The search space of an experiment: the group "hyperparameters". */
#include "launcher/config/space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/setting.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "searcher/searcher.h"

/* ---- hyperparameters that are halved ---- */

enum { PATH_SIZE = 128, WHERE_SIZE = 192 };

static bool has_only_numbers (const json_t *values)
{
    for (size_t i = 0; i < json_array_size (values); i++)
        if (!json_is_number (json_array_get (values, i)))
            return false;
    return true;
}

static const char *why_not_halved (const struct experiment *e, const struct hparam *h,
                                   const config_setting_t *s)
{
    const char *text = config_setting_get_string (s);

    if (!text || strcmp (text, "halve"))
        return "must be \"halve\"";
    if (h->values && !has_only_numbers (h->values))
        return "needs numbers in 'vals'";
    return e->space->params[h->dim].type != PARAM_CATEGORICAL && !(e->space->params[h->dim].max > 0)
                   && e->space->params[h->dim].type != PARAM_LOG
               ? "needs values above 0"
               : NULL;
}

/* Read on_oom of each hyperparameter in 'group'. */
static void on_oom_read (struct experiment *e, config_setting_t *group, struct problems *p)
{
    char path[WHERE_SIZE];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        struct hparam *h = &e->space->hparams[i];
        const config_setting_t *s;
        const char *why;
        snprintf (path, sizeof (path), "%s.on_oom", h->path);
        if (h->dim < 0 || !(s = config_setting_lookup (group, path)))
            continue;
        if ((why = why_not_halved (e, h, s)))
            problem_at (p, origin_of (s), "hyperparameter '%s': 'on_oom' %s", h->path, why);
        h->halves = !why;
    }
}

/* Find the largest choice that is above 0 and at most half of this one. */
static double halved_choice (const struct hparam *h, double x)
{
    double limit = json_number_value (json_array_get (h->values, (size_t)x)) / 2;
    double best = 0;
    double found = NAN;

    for (size_t i = 0; i < json_array_size (h->values); i++) {
        double value = json_number_value (json_array_get (h->values, i));
        if (value <= limit && value > best) {
            best = value;
            found = (double)i;
        }
    }
    return found;
}

const struct hparam *on_oom_halve (const struct experiment *e, double *x)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        double half;
        if (!h->halves || isnan (x[h->dim]))
            continue;
        half = h->values ? halved_choice (h, x[h->dim])
                         : searcher_half (&e->space->params[h->dim], x[h->dim]);
        if (isfinite (half)) {
            x[h->dim] = half;
            return h;
        }
    }
    return NULL;
}

/* ---- when a hyperparameter is active, and its default ---- */

/* Find the member KEY of the hyperparameter 'h', and write its name to 'where'. */
static config_setting_t *hparam_member (config_setting_t *group, const struct hparam *h,
                                        const char *key, char *where)
{
    char path[WHERE_SIZE];

    snprintf (where, WHERE_SIZE, "hyperparameter '%.*s': '%s'", PATH_SIZE, h->path, key);
    snprintf (path, sizeof (path), "%s.%s", h->path, key);
    return h->dim >= 0 ? config_setting_lookup (group, path) : NULL;
}

/* Descend from { optimizer = { name = "sgd" } } to "sgd".  Returns NULL after adding a problem. */
static const config_setting_t *find_awaited (const struct experiment *e, const config_setting_t *s,
                                             const char *where, const struct hparam **other,
                                             struct problems *p)
{
    char path[PATH_SIZE] = "";
    size_t n = 0;

    while (config_setting_is_group (s) && config_setting_length (s) == 1) {
        s = config_setting_get_elem (s, 0);
        n += (size_t)snprintf (path + n, sizeof (path) - n, "%s%s", n ? "." : "",
                               config_setting_name (s));
        if (n >= sizeof (path))
            break;
        if ((*other = hparam_find (e, path)))
            return s;
        if (!config_setting_is_group (s)) {
            hparam_unknown (e, s, where, path, p);
            return NULL;
        }
    }
    problem_at (p, origin_of (s),
                "%s must be { name = value; }: one other hyperparameter, "
                "and the value or values for which this one is active",
                where);
    return NULL;
}

/* One value, or a list of them; a choice may be a list itself. */
static bool is_one_value (const struct experiment *e, const struct hparam *other,
                          const config_setting_t *s)
{
    json_t *v = setting_json (s);
    double x;
    bool one = (!config_setting_is_list (s) && !config_setting_is_array (s))
               || json_value (e, other, v, &x) == 0;

    json_decref (v);
    return one;
}

static void read_hparam_when (struct experiment *e, struct hparam *h, const config_setting_t *s,
                              const char *where, struct problems *p)
{
    const struct hparam *other = NULL;
    struct param *d = &e->space->params[h->dim];
    bool one;
    int n;

    if (!(s = find_awaited (e, s, where, &other, p)))
        return;
    if (other->dim < 0) {
        problem_at (p, origin_of (s), "%s: '%s' is a constant; name one that is searched", where,
                    other->path);
        return;
    }
    one = is_one_value (e, other, s);
    n = one ? 1 : config_setting_length (s);
    h->when_values = xcalloc ((size_t)n + 1, sizeof (double));
    for (int i = 0; i < n; i++)
        setting_value (e, other, one ? s : config_setting_get_elem (s, (unsigned)i), where,
                       h->when_values + i, p);
    d->when = other->path;
    d->when_values = h->when_values;
    d->when_count = n;
}

/* Read the keys "when" and "default" of all, once the space is known. */
static void when_read (struct experiment *e, config_setting_t *group, struct problems *p)
{
    char where[WHERE_SIZE];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        struct hparam *h = &e->space->hparams[i];
        const config_setting_t *s = hparam_member (group, h, "when", where);
        if (s)
            read_hparam_when (e, h, s, where, p);
    }
}

static void presets_read (struct experiment *e, config_setting_t *group, struct problems *p)
{
    char where[WHERE_SIZE];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        struct hparam *h = &e->space->hparams[i];
        const config_setting_t *s = hparam_member (group, h, "default", where);
        if (s && setting_value (e, h, s, where, &h->preset, p) < 0)
            h->preset = NAN;
    }
}

/* ---- the types of hyperparameters ---- */

enum { KIND_CONST = -1 };

/* The keys of a type of hyperparameter.  The first 'must' keys are required. */
struct param_kind {
    const char *name;
    int type; /* enum param_type, or KIND_CONST */
    const char *keys[11];
    int must;
    bool values; /* a logarithmic range is given by its ends, not by their exponents */
};

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

/* Find a type by name.  If several rows have the name, choose the one whose first or second key is
 * present.
 */
static const struct param_kind *param_kind_find (const char *name, const config_setting_t *s)
{
    const struct param_kind *found = NULL;

    for (const struct param_kind *k = kinds; k->name; k++)
        if (!strcmp (k->name, name)
            && (!found || config_setting_get_member (s, k->keys[0])
                || config_setting_get_member (s, k->keys[1])))
            found = k;
    return found;
}

/* Add the problem 'text' about the hyperparameter 'path' at 's'.  Returns -1. */
static int param_problem (const config_setting_t *s, struct problems *p, const char *path,
                          const char *text)
{
    problem_at (p, origin_of (s), "hyperparameter '%s': %s", path, text);
    return -1;
}

/* Index of a key, or the number of keys if there is no such key. */
static int kind_key_index (const struct param_kind *kind, const char *name)
{
    int k = 0;

    while (kind->keys[k] && strcmp (kind->keys[k], name))
        k++;
    return k;
}

/* Names of types, and of their first or second key, in other programs. */
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

/* Find the most similar key; for "max" that is "maxval". */
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

/* Add a problem for each unknown key, and for each required key that is missing.  Returns -1 if
 * there was any, else 0.
 */
static int param_kind_check (const struct param_kind *kind, const char *path,
                             const config_setting_t *s, struct problems *p)
{
    char text[TEXT_SIZE];
    int before = p->count;
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        const char *name = config_setting_name (c);
        const char *meant;
        if (kind->keys[kind_key_index (kind, name)] || !strcmp (name, "type"))
            continue;
        meant = key_meant (kind, name);
        snprintf (text, sizeof (text), "unknown key '%s'%s%s%s", name,
                  DID_YOU_MEAN (meant, "'", "'", ""));
        param_problem (c, p, path, text);
    }
    /* an unknown key may be a misspelling of a missing one, so do not report that, too */
    for (int k = 0; k < kind->must && p->count == before; k++)
        if (!config_setting_get_member (s, kind->keys[k])) {
            snprintf (text, sizeof (text), "type \"%s\" needs '%s'", kind->name, kind->keys[k]);
            param_problem (s, p, path, text);
        }
    return p->count == before ? 0 : -1;
}

/* Add the problem that 'type' does not exist, and suggest one. */
static void param_kind_unknown (const config_setting_t *type, const char *path, struct problems *p)
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

static struct hparam *add_hparam (struct experiment *e, const char *path, const config_setting_t *s)
{
    struct hparam *h;

    XGROW (e->space->hparams, e->space->nhparams);
    h = &e->space->hparams[e->space->nhparams++];
    *h = (struct hparam){
        .path = xstrdup (path), .dim = -1, .preset = NAN, .origin = origin_of (s)
    };
    return h;
}

/* Keys that hold a number; the last ones must be above 0. */
static const struct {
    const char *key;
    size_t offset;
    bool positive;
} numbers[] = {
    { "min", offsetof (struct param, min), false },
    { "max", offsetof (struct param, max), false },
    { "minval", offsetof (struct param, min), false },
    { "maxval", offsetof (struct param, max), false },
    { "base", offsetof (struct param, base), false },
    { "mean", offsetof (struct param, mean), false },
    { "step", offsetof (struct param, step), true },
    { "deviation", offsetof (struct param, deviation), true },
};

static int set_param_bound (struct param *d, const char *path, const config_setting_t *s,
                            struct problems *p)
{
    const char *name = config_setting_name (s);
    char text[PATH_SIZE];
    double v;

    if (setting_number (s, &v) < 0) {
        snprintf (text, sizeof (text), "'%s' must be a number", name);
        return param_problem (s, p, path, text);
    }
    for (size_t i = 0; i < sizeof (numbers) / sizeof (*numbers); i++)
        if (!strcmp (name, numbers[i].key)) {
            *(double *)((char *)d + numbers[i].offset) = v;
            snprintf (text, sizeof (text), "'%s' must be above 0", name);
            return v > 0 || !numbers[i].positive ? 0 : param_problem (s, p, path, text);
        }
    if (v != floor (v) || v < 1 || v > 1e7)
        return param_problem (s, p, path, "'count' must be an integer >= 1");
    d->count = (long)v;
    return 0;
}

/* A mean without a deviation would be ignored.  A deviation without a mean is around the middle. */
static int set_param_prior (struct param *d, bool values, const char *path,
                            const config_setting_t *s, struct problems *p)
{
    bool mean = config_setting_get_member (s, "mean");

    if (mean && d->deviation == 0)
        return param_problem (s, p, path, "'mean' needs 'deviation'");
    if (!mean && d->deviation > 0)
        d->mean = values ? sqrt (d->min * d->max) : d->min + (d->max - d->min) / 2;
    return 0;
}

/* Compute the exponents of a range that was given by its ends. */
static int take_logarithms (struct param *d, const char *path, const config_setting_t *s,
                            struct problems *p)
{
    if (!(d->min > 0) || !(d->max > 0))
        return param_problem (s, p, path, "'min' and 'max' of a loguniform must be above 0");
    if (d->deviation > 0 && !(d->mean > 0))
        return param_problem (s, p, path, "'mean' must be above 0");
    d->min = log10 (d->min);
    d->max = log10 (d->max);
    if (d->deviation > 0)
        d->mean = log10 (d->mean);
    return 0;
}

static void add_dimension (struct experiment *e, struct hparam *h, const struct param *d)
{
    XGROW (e->space->params, e->space->nparams);
    h->dim = (int)e->space->nparams;
    e->space->params[e->space->nparams++] = *d;
}

/* Find a string that two choices share.  Returns NULL if there is none. */
static const char *shared_text (char **labels, size_t n)
{
    char **sorted = xcalloc (n + 1, sizeof (*sorted));
    const char *text = NULL;

    for (size_t i = 0; i < n; i++)
        sorted[i] = labels[i];
    qsort (sorted, n, sizeof (*sorted), strings_compare);
    for (size_t i = 1; !text && i < n; i++)
        if (!strcmp (sorted[i - 1], sorted[i]))
            text = sorted[i];
    free (sorted);
    return text;
}

static void label_choices (struct hparam *h)
{
    size_t n = json_array_size (h->values);

    h->labels = xcalloc (n + 1, sizeof (*h->labels));
    for (size_t i = 0; i < n; i++)
        h->labels[i] = json_text (json_array_get (h->values, i));
}

static void read_choices (struct experiment *e, struct hparam *h, const config_setting_t *s,
                          struct problems *p)
{
    const config_setting_t *vals = config_setting_get_member (s, "vals");
    struct param d = { .type = PARAM_CATEGORICAL };
    char text[PATH_SIZE * 2];
    const char *twice;

    if (config_setting_is_scalar (vals) || config_setting_is_group (vals)) {
        param_problem (vals, p, h->path, "'vals' must be a list");
        return;
    }
    h->values = setting_json (vals);
    d.choices = config_setting_length (vals);
    label_choices (h);
    d.labels = (const char *const *)h->labels;
    if ((twice = shared_text (h->labels, (size_t)d.choices))) {
        snprintf (text, sizeof (text), "'vals' has the text \"%.100s\" twice; take one out", twice);
        param_problem (vals, p, h->path, text);
    }
    add_dimension (e, h, &d);
}

static void read_typed_hparam (struct experiment *e, const char *path, const config_setting_t *s,
                               const struct param_kind *kind, struct problems *p)
{
    struct param d = { .type = (enum param_type)kind->type,
                       .base = kind->type == PARAM_LOG ? 10 : 0 };
    struct hparam *h = add_hparam (e, path, s);

    if (param_kind_check (kind, path, s, p) < 0)
        return;
    if (kind->type == KIND_CONST) {
        h->values = kind->must ? setting_json (config_setting_get_member (s, "val")) : json_null ();
        return;
    }
    if (kind->type == PARAM_CATEGORICAL) {
        read_choices (e, h, s, p);
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        const char *name = config_setting_name (c);
        if (strcmp (name, "type") && strcmp (name, "default") && strcmp (name, "when")
            && strcmp (name, "on_oom") && set_param_bound (&d, path, c, p) < 0)
            return;
    }
    if (set_param_prior (&d, kind->values, path, s, p) < 0
        || (kind->values && take_logarithms (&d, path, s, p) < 0))
        return;
    h->exponents = kind->type == PARAM_LOG && !kind->values;
    add_dimension (e, h, &d);
}

static void read_hparams (struct experiment *e, const config_setting_t *group, const char *prefix,
                          struct problems *p);

/* Whether a group without 'type' is meant to be a parameter, because its names would make no sense
 * as constants.
 */
static bool lacks_type (const config_setting_t *s)
{
    static const char *const names[] = { "minval", "maxval", "vals" };
    const config_setting_t *m;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if ((m = config_setting_get_member (s, names[i])) && !config_setting_is_group (m))
            return true;
    return false;
}

static void read_hparam (struct experiment *e, const config_setting_t *s, const char *path,
                         struct problems *p)
{
    const config_setting_t *type =
        config_setting_is_group (s) ? config_setting_get_member (s, "type") : NULL;
    char prefix[PATH_SIZE + 1];
    const char *name;
    const struct param_kind *kind;

    if (type) {
        name = config_setting_get_string (type);
        if (name && (kind = param_kind_find (name, s)))
            read_typed_hparam (e, path, s, kind, p);
        else {
            param_kind_unknown (type, path, p);
            add_hparam (e, path, s);
        }
        return;
    }
    if (config_setting_is_group (s) && lacks_type (s)) {
        param_problem (s, p, path,
                       "'type' is missing (\"float\", \"int\", \"log\", "
                       "\"loguniform\" or \"categorical\")");
        add_hparam (e, path, s);
        return;
    }
    if (config_setting_is_group (s) && config_setting_length (s) > 0) {
        snprintf (prefix, sizeof (prefix), "%s.", path);
        read_hparams (e, s, prefix, p);
        return;
    }
    add_hparam (e, path, s)->values = setting_json (s);
}

static void read_hparams (struct experiment *e, const config_setting_t *group, const char *prefix,
                          struct problems *p)
{
    char path[PATH_SIZE];

    for (int i = 0; i < config_setting_length (group); i++) {
        const config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        int n = snprintf (path, sizeof (path), "%s%s", prefix, config_setting_name (s));
        if (n >= (int)sizeof (path))
            param_problem (s, p, path, "the name is too long");
        else
            read_hparam (e, s, path, p);
    }
}

static int compare_hparam_paths (const void *a, const void *b)
{
    const struct hparam *x = a;
    const struct hparam *y = b;

    return strcmp (x->path, y->path);
}

/* Sort the dimensions by name, so that the order in the file does not matter. */
static void sort_dimensions (struct experiment *e)
{
    struct param *sorted = xcalloc (e->space->nparams + 1, sizeof (*sorted));
    int n = 0;

    if (e->space->nhparams > 0)
        qsort (e->space->hparams, e->space->nhparams, sizeof (*e->space->hparams),
               compare_hparam_paths);
    for (size_t i = 0; i < e->space->nhparams; i++) {
        struct hparam *h = &e->space->hparams[i];
        if (h->dim < 0)
            continue;
        sorted[n] = e->space->params[h->dim];
        sorted[n].name = h->path;
        h->dim = n++;
    }
    free (e->space->params);
    e->space->params = sorted;
}

static void check_variable_names (const struct experiment *e, struct problems *p)
{
    char a[PATH_SIZE + 8];
    char b[PATH_SIZE + 8];

    for (size_t i = 0; i < e->space->nhparams; i++)
        for (size_t j = 0; j < i; j++) {
            hparams_variable (a, sizeof (a), e->space->hparams[i].path);
            hparams_variable (b, sizeof (b), e->space->hparams[j].path);
            if (!strcmp (a, b))
                problem_at (p, e->space->hparams[i].origin,
                            "hyperparameters '%s' and '%s' would both be %s; rename one",
                            e->space->hparams[j].path, e->space->hparams[i].path, a);
        }
}

/* Whether exponents look like values: 0.001 to 0.1 would mean 1.002 to 1.26. */
static bool is_doubtful_range (const struct param *d)
{
    return d->min > 0 && d->max >= 10 * d->min && (d->min < 0.1 || d->max > 64);
}

int space_check_exponents (const struct experiment *e, struct problems *p)
{
    int before = p->count;

    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        const struct param *d = h->exponents ? &e->space->params[h->dim] : NULL;
        if (d && is_doubtful_range (d))
            problem_at (p, h->origin,
                        "hyperparameter '%s': 'minval' and 'maxval' of \"log\" "
                        "are exponents: its values would be from %.4g to "
                        "%.4g; for values from %.4g to %.4g write type = \"loguniform\"",
                        h->path, pow (d->base, d->min), pow (d->base, d->max), d->min, d->max);
    }
    return p->count > before ? -1 : 0;
}

void space_free (struct experiment *e)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        free (e->space->hparams[i].path);
        json_decref (e->space->hparams[i].values);
        strings_free (e->space->hparams[i].labels);
        free (e->space->hparams[i].when_values);
    }
    free (e->space->hparams);
    free (e->space->params);
}

void space_read (struct experiment *e, config_setting_t *group, struct problems *p)
{
    int before = p->count;

    if (!config_setting_is_group (group)) {
        problem_at (p, origin_of (group), "'hyperparameters' must be a group { ... }");
        return;
    }
    read_hparams (e, group, "", p);
    sort_dimensions (e);
    check_variable_names (e, p);
    /* checking an incomplete space would only add misleading problems */
    if (p->count > before)
        return;
    when_read (e, group, p);
    presets_read (e, group, p);
    on_oom_read (e, group, p);
}

/* ---- the space as JSON ---- */

static json_t *when_json (const struct experiment *e, const struct param *d)
{
    const struct hparam *other = hparam_find (e, d->when);
    json_t *values = json_array ();

    for (long i = 0; i < d->when_count; i++)
        json_array_append_new (
            values, e->space->params[other->dim].type == PARAM_CATEGORICAL
                        ? json_incref (json_array_get (other->values, (size_t)d->when_values[i]))
                        : json_real (d->when_values[i]));
    return json_pack ("{s:o}", d->when, values);
}

static json_t *bound_json (const struct param *d, double v)
{
    return d->type == PARAM_INT   ? json_integer ((json_int_t)v)
           : d->type == PARAM_LOG ? json_real (pow (d->base, v))
                                  : json_real (v);
}

static json_t *param_json (const struct experiment *e, const struct hparam *h)
{
    static const char *const types[] = { "float", "int", "float", "categorical" };
    const struct param *d = &e->space->params[h->dim];
    json_t *o = json_pack ("{s:s, s:s}", "name", h->path, "type", types[d->type]);

    if (d->type == PARAM_CATEGORICAL)
        json_object_set (o, "choices", h->values);
    else {
        json_object_set_new (o, "low", bound_json (d, d->min));
        json_object_set_new (o, "high", bound_json (d, d->max));
    }
    if (d->type == PARAM_LOG || d->base > 1)
        json_object_set_new (o, "log", json_true ());
    if (d->step > 0)
        json_object_set_new (o, "step", json_real (d->step));
    if (d->deviation > 0) {
        json_object_set_new (o, "mean",
                             json_real (d->type == PARAM_LOG ? pow (d->base, d->mean) : d->mean));
        json_object_set_new (
            o, "deviation",
            json_real (d->type == PARAM_LOG ? d->deviation * log10 (d->base) : d->deviation));
    }
    if (d->when)
        json_object_set_new (o, "when", when_json (e, d));
    return o;
}

json_t *space_json (const struct experiment *e)
{
    json_t *space = json_array ();

    for (size_t i = 0; i < e->space->nhparams; i++)
        if (e->space->hparams[i].dim >= 0)
            json_array_append_new (space, param_json (e, &e->space->hparams[i]));
    return space;
}
