/* SPDX-License-Identifier: Apache-2.0 */
/* Read the search space of an experiment file. */
#include "launcher/config/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/on_oom.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/param_kind.h"
#include "launcher/config/reading.h"
#include "launcher/config/values.h"
#include "launcher/config/when.h"
#include "launcher/sys/strings.h"
#include "runtime/base/array.h"

enum { PATH_SIZE = 128 };

static struct hparam *add_hparam (struct experiment *e, const char *path, const config_setting_t *s)
{
    struct hparam *h = array_grow (e->space->hparams, e->space->nhparams, sizeof (*h));

    if (!h)
        return NULL;
    e->space->hparams = h;
    h += e->space->nhparams;
    *h =
        (struct hparam){ .path = strdup (path), .dim = -1, .preset = NAN, .origin = origin_of (s) };
    if (!h->path)
        return NULL;
    e->space->nhparams++;
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

static int set_field (struct param *d, const char *path, const config_setting_t *s,
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

/* A mean alone would be ignored; a deviation alone is around the middle. */
static int set_prior (struct param *d, bool values, const char *path, const config_setting_t *s,
                      struct problems *p)
{
    bool mean = config_setting_get_member (s, "mean");

    if (mean && d->deviation == 0)
        return param_problem (s, p, path, "'mean' needs 'deviation'");
    if (!mean && d->deviation > 0)
        d->mean = values ? sqrt (d->min * d->max) : d->min + (d->max - d->min) / 2;
    return 0;
}

/* The exponents of a range that was given by its ends. */
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

static int add_dimension (struct experiment *e, struct hparam *h, const struct param *d)
{
    struct param *list = array_grow (e->space->params, e->space->nparams, sizeof (*list));

    if (!list)
        return -1;
    e->space->params = list;
    h->dim = (int)e->space->nparams;
    list[e->space->nparams++] = *d;
    return 0;
}

/* A text that two choices share, NULL: none. */
static const char *shared_text (char **labels, size_t n)
{
    char **sorted = calloc (n + 1, sizeof (*sorted));
    const char *text = NULL;

    for (size_t i = 0; sorted && i < n; i++)
        sorted[i] = labels[i];
    if (sorted)
        qsort (sorted, n, sizeof (*sorted), strings_compare);
    for (size_t i = 1; sorted && !text && i < n; i++)
        if (!strcmp (sorted[i - 1], sorted[i]))
            text = sorted[i];
    free (sorted);
    return text;
}

static int label_choices (struct hparam *h)
{
    size_t n = json_array_size (h->values);

    if (!(h->labels = calloc (n + 1, sizeof (*h->labels))))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!(h->labels[i] = json_text (json_array_get (h->values, i))))
            return -1;
    return 0;
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
    if (label_choices (h) < 0)
        return;
    d.labels = (const char *const *)h->labels;
    if ((twice = shared_text (h->labels, (size_t)d.choices))) {
        snprintf (text, sizeof (text), "'vals' has the text \"%.100s\" twice; take one out", twice);
        param_problem (vals, p, h->path, text);
    }
    add_dimension (e, h, &d);
}

static void read_typed (struct experiment *e, const char *path, const config_setting_t *s,
                        const struct param_kind *kind, struct problems *p)
{
    struct param d = { .type = (enum param_type)kind->type,
                       .base = kind->type == PARAM_LOG ? 10 : 0 };
    struct hparam *h;

    if (!(h = add_hparam (e, path, s)) || param_kind_check (kind, path, s, p) < 0)
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
            && strcmp (name, "on_oom") && set_field (&d, path, c, p) < 0)
            return;
    }
    if (set_prior (&d, kind->values, path, s, p) < 0
        || (kind->values && take_logarithms (&d, path, s, p) < 0))
        return;
    h->exponents = kind->type == PARAM_LOG && !kind->values;
    add_dimension (e, h, &d);
}

static void read_members (struct experiment *e, const config_setting_t *group, const char *prefix,
                          struct problems *p);

/* Whether a group without 'type' is meant to be a parameter: as constants these
 * names would make no sense.
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

static void read_one (struct experiment *e, const config_setting_t *s, const char *path,
                      struct problems *p)
{
    const config_setting_t *type =
        config_setting_is_group (s) ? config_setting_get_member (s, "type") : NULL;
    char prefix[PATH_SIZE + 1];
    const char *name;
    const struct param_kind *kind;
    struct hparam *h;

    if (type) {
        name = config_setting_get_string (type);
        if (name && (kind = param_kind_find (name, s)))
            read_typed (e, path, s, kind, p);
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
        read_members (e, s, prefix, p);
        return;
    }
    if ((h = add_hparam (e, path, s)))
        h->values = setting_json (s);
}

static void read_members (struct experiment *e, const config_setting_t *group, const char *prefix,
                          struct problems *p)
{
    char path[PATH_SIZE];

    for (int i = 0; i < config_setting_length (group); i++) {
        const config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        int n = snprintf (path, sizeof (path), "%s%s", prefix, config_setting_name (s));
        if (n >= (int)sizeof (path))
            param_problem (s, p, path, "the name is too long");
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
    struct param *sorted = calloc (e->space->nparams + 1, sizeof (*sorted));
    int n = 0;

    if (!sorted)
        return -1;
    if (e->space->nhparams > 0)
        qsort (e->space->hparams, e->space->nhparams, sizeof (*e->space->hparams), by_path);
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
    return 0;
}

static void check_variables (const struct experiment *e, struct problems *p)
{
    char a[PATH_SIZE + 8];
    char b[PATH_SIZE + 8];

    for (size_t i = 0; i < e->space->nhparams; i++)
        for (size_t j = 0; j < i; j++) {
            hparams_variable (a, sizeof (a), e->space->hparams[i].path);
            hparams_variable (b, sizeof (b), e->space->hparams[j].path);
            if (!strcmp (a, b))
                problem_at (p, e->space->hparams[i].origin,
                            "hyperparameters '%s' and '%s' would both be "
                            "%s; rename one",
                            e->space->hparams[j].path, e->space->hparams[i].path, a);
        }
}

/* Exponents that look like values: 0.001 to 0.1 would be 1.002 to 1.26. */
static bool is_doubtful (const struct param *d)
{
    return d->min > 0 && d->max >= 10 * d->min && (d->min < 0.1 || d->max > 64);
}

int space_check_exponents (const struct experiment *e, struct problems *p)
{
    int before = p->count;

    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        const struct param *d = h->exponents ? &e->space->params[h->dim] : NULL;
        if (d && is_doubtful (d))
            problem_at (p, h->origin,
                        "hyperparameter '%s': 'minval' and 'maxval' of \"log\" "
                        "are exponents: its values would be from %.4g to "
                        "%.4g; for values from %.4g to %.4g write type = "
                        "\"loguniform\"",
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
    read_members (e, group, "", p);
    if (sort_dimensions (e) < 0)
        problem_at (p, NO_ORIGIN, "out of memory");
    check_variables (e, p);
    /* a space that is not whole would only give further, wrong lines */
    if (p->count > before)
        return;
    when_read (e, group, p);
    presets_read (e, group, p);
    on_oom_read (e, group, p);
}
