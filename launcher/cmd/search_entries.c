/* SPDX-License-Identifier: Apache-2.0 */
/* Read the parameters of a search, and its points, from JSON. */
#include "launcher/cmd/search_entries.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/json_fields.h"
#include "launcher/config/values.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"

enum { COUNT_MOST = 10000000, WHO_SIZE = 80 };

int header_bad (struct slurmdl_error *err, const char *who, const char *what)
{
    errno = EINVAL;
    return errorf (err, "%.60s%s%s", who, *who ? ": " : "", what);
}

/* ---- parameters ---- */

struct search_entry {
    const char *name, *type;
    bool log;
    json_t *choices, *when;
    double low, high, step, mean, deviation;
    int64_t count;
};

#define AT(field) offsetof (struct search_entry, field)

/* clang-format off */
static const struct field number_fields[] = {
    { "name",      FIELD_TEXT,    AT (name),      true,  0, 0 },
    { "type",      FIELD_TEXT,    AT (type),      true,  0, 0 },
    { "low",       FIELD_NUMBER,  AT (low),       true,  0, 0 },
    { "high",      FIELD_NUMBER,  AT (high),      true,  0, 0 },
    { "log",       FIELD_BOOL,    AT (log),       false, 0, 0 },
    { "step",      FIELD_NUMBER,  AT (step),      false, 0, INFINITY },
    { "count",     FIELD_INTEGER, AT (count),     false, 0, COUNT_MOST },
    { "mean",      FIELD_NUMBER,  AT (mean),      false, 0, 0 },
    { "deviation", FIELD_NUMBER,  AT (deviation), false, 0, INFINITY },
    { "when",      FIELD_OBJECT,  AT (when),      false, 0, 0 },
    { 0 },
};

static const struct field choice_fields[] = {
    { "name",    FIELD_TEXT,   AT (name),    true,  0, 0 },
    { "type",    FIELD_TEXT,   AT (type),    true,  0, 0 },
    { "choices", FIELD_LIST,   AT (choices), true,  0, 0 },
    { "when",    FIELD_OBJECT, AT (when),    false, 0, 0 },
    { 0 },
};

/* clang-format on */

/* A constraint knows choices by their texts. */
static const char *twice (char *const *labels, size_t n)
{
    char **sorted = calloc (n + 1, sizeof (*sorted));
    const char *found = NULL;

    if (sorted && n > 0)
        memcpy (sorted, labels, n * sizeof (*sorted));
    if (sorted)
        qsort (sorted, n, sizeof (*sorted), strings_compare);
    for (size_t i = 1; sorted && i < n && !found; i++)
        if (!strcmp (sorted[i - 1], sorted[i]))
            found = sorted[i];
    free (sorted);
    return found;
}

static int read_choices (struct search_header *h, struct param *p, const struct search_entry *e,
                         struct slurmdl_error *err)
{
    size_t n = json_array_size (e->choices);
    char **labels = calloc (n + 1, sizeof (*labels));
    const char *repeated;

    h->labels[h->n] = labels;
    if (!labels)
        return errorf (err, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (!(labels[i] = json_text (json_array_get (e->choices, i))))
            return errorf (err, "out of memory");
    errno = EINVAL;
    if ((repeated = twice (labels, n)))
        return errorf (err, "%.60s: 'choices' has %.60s twice", e->name, repeated);
    p->type = PARAM_CATEGORICAL;
    p->choices = (long)n;
    p->labels = (const char *const *)labels;
    h->choices[h->n] = e->choices;
    return 0;
}

/* A logarithm is to the base of 10. */
static void to_log (struct param *p)
{
    p->type = PARAM_LOG;
    p->min = log10 (p->min);
    p->max = log10 (p->max);
    p->mean = log10 (p->mean);
}

static int read_number (struct search_header *h, struct param *p, const struct search_entry *e,
                        struct slurmdl_error *err)
{
    h->low[h->n] = e->low;
    h->high[h->n] = e->high;
    if (e->low > e->high)
        return header_bad (err, e->name, "'low' is above 'high'");
    if (e->log && !(e->low > 0))
        return header_bad (err, e->name, "'log' needs a 'low' above 0");
    if (!isnan (e->mean) && !(e->deviation > 0))
        return header_bad (err, e->name, "'mean' needs a 'deviation' above 0");
    p->type = !strcmp (e->type, "int") ? PARAM_INT : PARAM_FLOAT;
    p->min = e->low;
    p->max = e->high;
    p->base = e->log ? 10 : 0;
    p->step = e->step;
    p->count = (long)e->count;
    p->mean = e->mean;
    p->deviation = e->deviation;
    if (e->log && p->type == PARAM_FLOAT)
        to_log (p);
    if (isnan (e->mean))
        p->mean = p->min + (p->max - p->min) / 2;
    return 0;
}

static const struct {
    const char *name;
    const struct field *fields;
    int (*read) (struct search_header *h, struct param *p, const struct search_entry *e,
                 struct slurmdl_error *err);
} types[] = { { "float", number_fields, read_number },
              { "int", number_fields, read_number },
              { "categorical", choice_fields, read_choices } };

enum { TYPES = sizeof (types) / sizeof (*types) };

static int read_param (struct search_header *h, const json_t *o, struct slurmdl_error *err)
{
    const char *name = json_string_value (json_object_get (o, "name"));
    const char *type = json_string_value (json_object_get (o, "type"));
    struct search_entry e = { .mean = NAN };
    int i = 0;

    if (!json_is_object (o) || !name)
        return header_bad (err, "", "'space' is a list of objects, each with a 'name'");
    while (i < TYPES && (!type || strcmp (types[i].name, type)))
        i++;
    if (i == TYPES)
        return header_bad (err, name, "'type' must be float, int or categorical");
    if (fields_read (types[i].fields, o, name, &e, err) < 0)
        return -1;
    h->params[h->n].name = name;
    if (types[i].read (h, &h->params[h->n], &e, err) < 0)
        return -1;
    h->n++;
    return 0;
}

/* The value of a parameter as a double of a point; NaN: it has none such. */
static double value_of (const struct search_header *h, size_t i, const json_t *value)
{
    size_t n = json_array_size (h->choices[i]);

    if (!h->choices[i])
        return json_is_number (value) ? json_number_value (value) : NAN;
    for (size_t k = 0; k < n; k++)
        if (json_equal (json_array_get (h->choices[i], k), value))
            return (double)k;
    return NAN;
}

static int index_of (const struct search_header *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp (h->params[i].name, name))
            return (int)i;
    return -1;
}

/* "when": {"optimizer": "sgd"} or {"layers": [2, 3]} */
static int read_when (struct search_header *h, size_t i, const json_t *when,
                      struct slurmdl_error *err)
{
    struct param *p = &h->params[i];
    void *first = json_object_iter ((json_t *)when);
    json_t *values = json_object_iter_value (first);
    size_t n = json_is_array (values) ? json_array_size (values) : 1;
    int parent;

    if (json_object_size (when) != 1)
        return header_bad (err, p->name, "'when' names one other parameter");
    if ((parent = index_of (h, json_object_iter_key (first))) < 0)
        return header_bad (err, p->name, "when: no such parameter");
    if (!(h->when[i] = calloc (n + 1, sizeof (double))))
        return errorf (err, "out of memory");
    for (size_t k = 0; k < n; k++)
        h->when[i][k] = value_of (h, (size_t)parent,
                                  json_is_array (values) ? json_array_get (values, k) : values);
    p->when = h->params[parent].name;
    p->when_values = h->when[i];
    p->when_count = (long)n;
    return 0;
}

int header_space (struct search_header *h, const json_t *space, struct slurmdl_error *err)
{
    size_t n = json_array_size (space);

    h->params = calloc (n + 1, sizeof (*h->params));
    h->choices = calloc (n + 1, sizeof (json_t *));
    h->low = calloc (n + 1, sizeof (double));
    h->high = calloc (n + 1, sizeof (double));
    h->labels = calloc (n + 1, sizeof (*h->labels));
    h->when = calloc (n + 1, sizeof (*h->when));
    if (!h->params || !h->choices || !h->low || !h->high || !h->labels || !h->when)
        return errorf (err, "out of memory");
    if (n == 0)
        return header_bad (err, "", "'space' is empty");
    for (size_t i = 0; i < n; i++)
        if (read_param (h, json_array_get (space, i), err) < 0)
            return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *when = json_object_get (json_array_get (space, i), "when");
        if (when && read_when (h, i, when, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- points ---- */

int header_point (const struct search_header *h, const json_t *params, const char *who, double *x,
                  struct slurmdl_error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object (params))
        return header_bad (err, who, "a point is an object: {\"name\": value, ...}");
    for (size_t i = 0; i < h->n; i++)
        x[i] = NAN;
    json_object_foreach ((json_t *)params, name, value) {
        int i = index_of (h, name);
        errno = EINVAL;
        if (i < 0)
            return errorf (err, "%s: no parameter '%.60s'", who, name);
        if (json_is_null (value) && !h->choices[i])
            continue;
        x[i] = value_of (h, (size_t)i, value);
        if (isnan (x[i]) && !json_is_null (value))
            return errorf (err, "%s: '%.60s' has no such value", who, name);
    }
    return 0;
}

/* Are they in the space, whatever the constraint says?  If the space itself is
 * wrong that is not said here.
 */
static bool points_fit (const struct param *params, size_t n, const double *x, size_t count)
{
    const struct search_config config = {
        .name = "random", .max_trials = 1, .max_length = 1, .points = x, .npoints = (long)count
    };
    int at;

    return !searcher_check (&config, params, n, &at) || at >= 0;
}

/* Say why a point does not fit. */
static int explain (const struct search_header *h, const char *who, const double *x,
                    struct slurmdl_error *err)
{
    for (size_t i = 0; i < h->n; i++) {
        struct param alone = h->params[i];
        alone.when = NULL;
        errno = EINVAL;
        if (!isnan (x[i]) && !points_fit (&alone, 1, &x[i], 1))
            return errorf (err, "%s: '%.60s' cannot be %.9g", who, alone.name, x[i]);
    }
    return header_bad (err, who,
                       "a point has a value for each active parameter, and for no "
                       "other one");
}

int header_fit (const struct search_header *h, const char *what, const double *x, size_t count,
                struct slurmdl_error *err)
{
    char who[WHO_SIZE];

    if (count == 0 || points_fit (h->params, h->n, x, count))
        return 0;
    for (size_t i = 0; i < count; i++, x += h->n) {
        snprintf (who, sizeof (who), count > 1 ? "%s %zu" : "%s", what, i + 1);
        if (!points_fit (h->params, h->n, x, 1))
            return explain (h, who, x, err);
    }
    return 0;
}

/* ---- the other way ---- */

/* A float's bounds may be missed by the last bit of a power of ten. */
static double within (const struct search_header *h, size_t i, double v)
{
    return v < h->low[i] ? h->low[i] : v > h->high[i] ? h->high[i] : v;
}

json_t *header_params (const struct search_header *h, const double *x)
{
    json_t *params = json_object ();

    for (size_t i = 0; i < h->n; i++) {
        json_t *v;
        if (isnan (x[i]))
            continue;
        if (h->choices[i])
            v = json_incref (json_array_get (h->choices[i], (size_t)x[i]));
        else if (h->params[i].type == PARAM_INT)
            v = json_integer ((json_int_t)x[i]);
        else
            v = json_real (within (h, i, x[i]));
        json_object_set_new (params, h->params[i].name, v);
    }
    return params;
}
