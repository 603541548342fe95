/* SPDX-License-Identifier: Apache-2.0 */
/* dl search-server: run a search for programs that send requests as lines of JSON. */
#include "launcher/cmd/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/hparams.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_word.h"
#include "searcher/searcher.h"

/* ---- read a JSON object into a struct, by a table of fields ---- */

enum field_type {
    FIELD_NUMBER,  /* double */
    FIELD_INTEGER, /* int64_t; accepts 3.0 */
    FIELD_BOOL,    /* bool */
    FIELD_TEXT,    /* const char *, valid as long as the object */
    FIELD_LIST,    /* this and the rest: json_t *, a borrowed reference */
    FIELD_OBJECT,
    FIELD_ANY,
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    bool needed;
    double min, max; /* range of a number; both 0: no limits */
};

enum { FIELDS_MAX = 64 };

/* A double cannot represent every integer beyond this. */
static const double exact_integer_max = 0x1p53;

/* "a list", "a number", ... */
static const char *json_what (const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };

    return v ? names[json_typeof (v)] : "nothing";
}

static const struct field *find_field (const struct field *fields, const char *name)
{
    for (const struct field *f = fields; f->name; f++)
        if (!strcmp (f->name, name))
            return f;
    return NULL;
}

static int unknown_field (const struct field *fields, const char *name, const char *who,
                          struct slurmdl_error *err)
{
    const char *words[FIELDS_MAX] = { 0 };
    const char *meant;
    int n = 0;

    for (const struct field *f = fields; f->name && n < FIELDS_MAX - 1; f++)
        words[n++] = f->name;
    meant = nearest_word (name, words);
    errno = EINVAL;
    return errorf (err, "%sunknown key '%.60s'%s%s%s", who, name,
                   DID_YOU_MEAN (meant, "'", "'", ""));
}

static bool json_is_whole (const json_t *v)
{
    double x = json_number_value (v);

    return json_is_integer (v)
           || (json_is_real (v) && floor (x) == x && fabs (x) <= exact_integer_max);
}

static bool field_has_type (const struct field *f, const json_t *v)
{
    switch (f->type) {
    case FIELD_NUMBER:
        return json_is_number (v);
    case FIELD_INTEGER:
        return json_is_whole (v);
    case FIELD_BOOL:
        return json_is_boolean (v);
    case FIELD_TEXT:
        return json_is_string (v);
    case FIELD_LIST:
        return json_is_array (v);
    case FIELD_OBJECT:
        return json_is_object (v);
    case FIELD_ANY:
        break;
    }
    return true;
}

static int wrong_field_type (const struct field *f, const json_t *v, const char *who,
                             struct slurmdl_error *err)
{
    static const char *const wanted[] = {
        [FIELD_NUMBER] = "a number", [FIELD_INTEGER] = "an integer", [FIELD_BOOL] = "true or false",
        [FIELD_TEXT] = "a string",   [FIELD_LIST] = "a list",        [FIELD_OBJECT] = "an object",
    };
    char number[32];

    snprintf (number, sizeof (number), "%.9g", json_number_value (v));
    errno = EINVAL;
    return errorf (err, "%s'%s' is %s, but must be %s", who, f->name,
                   json_is_number (v) ? number : json_what (v), wanted[f->type]);
}

static int check_field_range (const struct field *f, const json_t *v, const char *who,
                              struct slurmdl_error *err)
{
    double x = json_number_value (v);

    if (f->type > FIELD_INTEGER || (f->min == 0 && f->max == 0) || (x >= f->min && x <= f->max))
        return 0;
    errno = EINVAL;
    if (isinf (f->max))
        return errorf (err, "%s'%s' is %.9g, but must be %.9g or more", who, f->name, x, f->min);
    return errorf (err, "%s'%s' is %.9g, but must be from %.9g to %.9g", who, f->name, x, f->min,
                   f->max);
}

static void set_field (const struct field *f, json_t *v, void *at)
{
    void *to = (char *)at + f->offset;

    switch (f->type) {
    case FIELD_NUMBER:
        *(double *)to = json_number_value (v);
        break;
    case FIELD_INTEGER:
        *(int64_t *)to =
            json_is_integer (v) ? json_integer_value (v) : (int64_t)json_real_value (v);
        break;
    case FIELD_BOOL:
        *(bool *)to = json_is_true (v);
        break;
    case FIELD_TEXT:
        *(const char **)to = json_string_value (v);
        break;
    case FIELD_LIST:
    case FIELD_OBJECT:
    case FIELD_ANY:
        *(json_t **)to = v;
        break;
    }
}

static int check_needed_fields (const struct field *fields, const json_t *o, const char *who,
                                struct slurmdl_error *err)
{
    for (const struct field *f = fields; f->name; f++)
        if (f->needed && !json_object_get (o, f->name)) {
            errno = EINVAL;
            return errorf (err, "%s'%s' is missing", who, f->name);
        }
    return 0;
}

/* Fill in the struct 'at'.  The table ends with a row without a name.  Members whose keys are
 * absent keep their values.
 *
 * Returns -1 with errno EINVAL if a key is unknown or missing, or if its value has the wrong type
 * or is out of range.  The message begins with 'who' unless that is NULL.
 */
static int fields_read (const struct field *fields, const json_t *o, const char *who, void *at,
                        struct slurmdl_error *err)
{
    char prefix[80] = "";
    const char *name;
    json_t *v;

    if (who)
        snprintf (prefix, sizeof (prefix), "%.60s: ", who);
    json_object_foreach ((json_t *)o, name, v) {
        const struct field *f = find_field (fields, name);
        if (!f)
            return unknown_field (fields, name, prefix, err);
        if (!field_has_type (f, v))
            return wrong_field_type (f, v, prefix, err);
        if (check_field_range (f, v, prefix, err) < 0)
            return -1;
        set_field (f, v, at);
    }
    return check_needed_fields (fields, o, prefix, err);
}

/* ---- the search space in the first line ---- */

struct search_header {
    struct search_config config;
    struct param *params;
    json_t **choices; /* of each parameter; NULL for a number */
    double *low, *high;
    size_t n;
    bool steps;   /* "max_step" was given */
    bool confirm; /* asking for a trial does not start it */
    json_t *json; /* owns the names and the choices */
    char ***labels;
    double **when;
    double *points, *known_x, *known_y;
    struct search_known *known;
};

enum { COUNT_MOST = 10000000, WHO_SIZE = 80 };

/* Fail with EINVAL and "WHO: WHAT", or WHAT if 'who' is empty. */
static int header_bad (struct slurmdl_error *err, const char *who, const char *what)
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

#define ENTRY_AT(field) offsetof (struct search_entry, field)

/* clang-format off */
static const struct field number_fields[] = {
    { "name",      FIELD_TEXT,    ENTRY_AT (name),      true,  0, 0 },
    { "type",      FIELD_TEXT,    ENTRY_AT (type),      true,  0, 0 },
    { "low",       FIELD_NUMBER,  ENTRY_AT (low),       true,  0, 0 },
    { "high",      FIELD_NUMBER,  ENTRY_AT (high),      true,  0, 0 },
    { "log",       FIELD_BOOL,    ENTRY_AT (log),       false, 0, 0 },
    { "step",      FIELD_NUMBER,  ENTRY_AT (step),      false, 0, INFINITY },
    { "count",     FIELD_INTEGER, ENTRY_AT (count),     false, 0, COUNT_MOST },
    { "mean",      FIELD_NUMBER,  ENTRY_AT (mean),      false, 0, 0 },
    { "deviation", FIELD_NUMBER,  ENTRY_AT (deviation), false, 0, INFINITY },
    { "when",      FIELD_OBJECT,  ENTRY_AT (when),      false, 0, 0 },
    { 0 },
};

static const struct field choice_fields[] = {
    { "name",    FIELD_TEXT,   ENTRY_AT (name),    true,  0, 0 },
    { "type",    FIELD_TEXT,   ENTRY_AT (type),    true,  0, 0 },
    { "choices", FIELD_LIST,   ENTRY_AT (choices), true,  0, 0 },
    { "when",    FIELD_OBJECT, ENTRY_AT (when),    false, 0, 0 },
    { 0 },
};

/* clang-format on */

/* Choices must have different texts, because a constraint refers to them by text. */
static const char *repeated_label (char *const *labels, size_t n)
{
    char **sorted = xcalloc (n + 1, sizeof (*sorted));
    const char *found = NULL;

    if (n > 0)
        memcpy (sorted, labels, n * sizeof (*sorted));
    qsort (sorted, n, sizeof (*sorted), strings_compare);
    for (size_t i = 1; i < n && !found; i++)
        if (!strcmp (sorted[i - 1], sorted[i]))
            found = sorted[i];
    free (sorted);
    return found;
}

static int read_entry_choices (struct search_header *h, struct param *p,
                               const struct search_entry *e, struct slurmdl_error *err)
{
    size_t n = json_array_size (e->choices);
    char **labels = xcalloc (n + 1, sizeof (*labels));
    const char *repeated;

    h->labels[h->n] = labels;
    for (size_t i = 0; i < n; i++)
        labels[i] = json_text (json_array_get (e->choices, i));
    errno = EINVAL;
    if ((repeated = repeated_label (labels, n)))
        return errorf (err, "%.60s: 'choices' has %.60s twice", e->name, repeated);
    p->type = PARAM_CATEGORICAL;
    p->choices = (long)n;
    p->labels = (const char *const *)labels;
    h->choices[h->n] = e->choices;
    return 0;
}

/* Convert to logarithms with base 10. */
static void to_log (struct param *p)
{
    p->type = PARAM_LOG;
    p->min = log10 (p->min);
    p->max = log10 (p->max);
    p->mean = log10 (p->mean);
}

static int read_entry_number (struct search_header *h, struct param *p,
                              const struct search_entry *e, struct slurmdl_error *err)
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
} parameter_types[] = { { "float", number_fields, read_entry_number },
                        { "int", number_fields, read_entry_number },
                        { "categorical", choice_fields, read_entry_choices } };

enum { TYPES = sizeof (parameter_types) / sizeof (*parameter_types) };

static int read_param (struct search_header *h, const json_t *o, struct slurmdl_error *err)
{
    const char *name = json_string_value (json_object_get (o, "name"));
    const char *type = json_string_value (json_object_get (o, "type"));
    struct search_entry e = { .mean = NAN };
    int i = 0;

    if (!json_is_object (o) || !name)
        return header_bad (err, "", "'space' must be a list of objects, each with a 'name'");
    while (i < TYPES && (!type || strcmp (parameter_types[i].name, type)))
        i++;
    if (i == TYPES)
        return header_bad (err, name, "'type' must be float, int or categorical");
    if (fields_read (parameter_types[i].fields, o, name, &e, err) < 0)
        return -1;
    h->params[h->n].name = name;
    if (parameter_types[i].read (h, &h->params[h->n], &e, err) < 0)
        return -1;
    h->n++;
    return 0;
}

/* Return a value as it is stored in a point, or NaN if the parameter cannot have this
 * value.
 */
static double choice_or_number (const struct search_header *h, size_t i, const json_t *value)
{
    size_t n = json_array_size (h->choices[i]);

    if (!h->choices[i])
        return json_is_number (value) ? json_number_value (value) : NAN;
    for (size_t k = 0; k < n; k++)
        if (json_equal (json_array_get (h->choices[i], k), value))
            return (double)k;
    return NAN;
}

static int param_index (const struct search_header *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp (h->params[i].name, name))
            return (int)i;
    return -1;
}

/* "when": {"optimizer": "sgd"} or {"layers": [2, 3]} */
static int read_entry_when (struct search_header *h, size_t i, const json_t *when,
                            struct slurmdl_error *err)
{
    struct param *p = &h->params[i];
    void *first = json_object_iter ((json_t *)when);
    json_t *values = json_object_iter_value (first);
    size_t n = json_is_array (values) ? json_array_size (values) : 1;
    int parent;

    if (json_object_size (when) != 1)
        return header_bad (err, p->name, "'when' must name one other parameter");
    if ((parent = param_index (h, json_object_iter_key (first))) < 0)
        return header_bad (err, p->name, "when: no such parameter");
    h->when[i] = xcalloc (n + 1, sizeof (double));
    for (size_t k = 0; k < n; k++)
        h->when[i][k] = choice_or_number (
            h, (size_t)parent, json_is_array (values) ? json_array_get (values, k) : values);
    p->when = h->params[parent].name;
    p->when_values = h->when[i];
    p->when_count = (long)n;
    return 0;
}

/* Read the space into an empty header. */
static int header_space (struct search_header *h, const json_t *space, struct slurmdl_error *err)
{
    size_t n = json_array_size (space);

    h->params = xcalloc (n + 1, sizeof (*h->params));
    h->choices = xcalloc (n + 1, sizeof (json_t *));
    h->low = xcalloc (n + 1, sizeof (double));
    h->high = xcalloc (n + 1, sizeof (double));
    h->labels = xcalloc (n + 1, sizeof (*h->labels));
    h->when = xcalloc (n + 1, sizeof (*h->when));
    if (n == 0)
        return header_bad (err, "", "'space' is empty");
    for (size_t i = 0; i < n; i++)
        if (read_param (h, json_array_get (space, i), err) < 0)
            return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *when = json_object_get (json_array_get (space, i), "when");
        if (when && read_entry_when (h, i, when, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- points ---- */

/* Read a point such as {"lr":0.1,"act":"relu"}.  A parameter that is absent or null is
 * not active.  Errors begin with 'who'.
 */
static int header_point (const struct search_header *h, const json_t *params, const char *who,
                         double *x, struct slurmdl_error *err)
{
    const char *name;
    json_t *value;

    if (!json_is_object (params))
        return header_bad (err, who, "a point must be an object: {\"name\": value, ...}");
    for (size_t i = 0; i < h->n; i++)
        x[i] = NAN;
    json_object_foreach ((json_t *)params, name, value) {
        int i = param_index (h, name);
        errno = EINVAL;
        if (i < 0)
            return errorf (err, "%s: no parameter '%.60s'", who, name);
        if (json_is_null (value) && !h->choices[i])
            continue;
        x[i] = choice_or_number (h, (size_t)i, value);
        if (isnan (x[i]) && !json_is_null (value))
            return errorf (err, "%s: '%.60s' has no such value", who, name);
    }
    return 0;
}

/* Whether the points are in the space, ignoring the constraint.  Does not report errors
 * in the space itself.
 */
static bool points_fit (const struct param *params, size_t n, const double *x, size_t count)
{
    const struct search_config config = {
        .name = "random", .max_trials = 1, .max_length = 1, .points = x, .npoints = (long)count
    };
    struct search_mistake at;

    return !searcher_check (&config, params, n, &at) || at.param >= 0;
}

/* Set 'err' to the reason why a point does not fit. */
static int explain_misfit (const struct search_header *h, const char *who, const double *x,
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
                       "a point has a value for each active parameter, and for no other one");
}

/* Check that 'count' points are in the space, ignoring the constraint.  Returns -1 with
 * 'err' for one that is not, and 0 if the space itself is invalid.
 */
static int header_fit (const struct search_header *h, const char *what, const double *x,
                       size_t count, struct slurmdl_error *err)
{
    char who[WHO_SIZE];

    if (count == 0 || points_fit (h->params, h->n, x, count))
        return 0;
    for (size_t i = 0; i < count; i++, x += h->n) {
        snprintf (who, sizeof (who), count > 1 ? "%s %zu" : "%s", what, i + 1);
        if (!points_fit (h->params, h->n, x, 1))
            return explain_misfit (h, who, x, err);
    }
    return 0;
}

/* ---- points as JSON ---- */

/* Clamp to the bounds, which a power of ten may exceed by rounding. */
static double clamp_to_bounds (const struct search_header *h, size_t i, double v)
{
    return v < h->low[i] ? h->low[i] : v > h->high[i] ? h->high[i] : v;
}

/* Return the active parameters at a point. */
static json_t *header_params (const struct search_header *h, const double *x)
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
            v = json_real (clamp_to_bounds (h, i, x[i]));
        json_object_set_new (params, h->params[i].name, v);
    }
    return params;
}

/* ---- the first line ---- */

enum { TRIALS_DEFAULT = 100000, TRIALS_MOST = 10000000 };

/* ---- the keys of the first line ---- */

struct keys {
    json_t *space, *direction, *points, *known, *ignored;
    const char *searcher, *sampler, *constraint, *mode;
    int64_t seed, max_trials, max_step, min_step, max_rungs, repeats, population;
    double budget, divisor, max_seconds;
    bool cost_aware, confirm;
};

#define KEY_AT(field) offsetof (struct keys, field)
#define BIG           0x1p53
#define SEED_MAX      0x1p63

/* clang-format off */
static const struct field header_fields[] = {
    { "space",       FIELD_LIST,    KEY_AT (space),       true,  0, 0 },
    { "searcher",    FIELD_TEXT,    KEY_AT (searcher),    false, 0, 0 },
    { "sampler",     FIELD_TEXT,    KEY_AT (sampler),     false, 0, 0 },
    { "direction",   FIELD_ANY,     KEY_AT (direction),   false, 0, 0 },
    { "seed",        FIELD_INTEGER, KEY_AT (seed),        false, 0, SEED_MAX },
    { "budget",      FIELD_NUMBER,  KEY_AT (budget),      false, 0, TRIALS_MOST },
    { "max_trials",  FIELD_INTEGER, KEY_AT (max_trials),  false, 0, TRIALS_MOST },
    { "max_step",    FIELD_INTEGER, KEY_AT (max_step),    false, 1, BIG },
    { "min_step",    FIELD_INTEGER, KEY_AT (min_step),    false, 0, BIG },
    { "divisor",     FIELD_NUMBER,  KEY_AT (divisor),     false, 0, 0 },
    { "max_rungs",   FIELD_INTEGER, KEY_AT (max_rungs),   false, 1, 64 },
    { "mode",        FIELD_TEXT,    KEY_AT (mode),        false, 0, 0 },
    { "constraint",  FIELD_TEXT,    KEY_AT (constraint),  false, 0, 0 },
    { "points",      FIELD_LIST,    KEY_AT (points),      false, 0, 0 },
    { "known",       FIELD_LIST,    KEY_AT (known),       false, 0, 0 },
    { "repeats",     FIELD_INTEGER, KEY_AT (repeats),     false, 0, 64 },
    { "max_seconds", FIELD_NUMBER,  KEY_AT (max_seconds), false, 0, INFINITY },
    { "cost_aware",  FIELD_BOOL,    KEY_AT (cost_aware),  false, 0, 0 },
    { "population",  FIELD_INTEGER, KEY_AT (population),  false, 0, 100000 },
    { "confirm",     FIELD_BOOL,    KEY_AT (confirm),     false, 0, 0 },
    { "metric",      FIELD_ANY,     KEY_AT (ignored),     false, 0, 0 },
    { "workers",     FIELD_ANY,     KEY_AT (ignored),     false, 0, 0 },
    { 0 },
};
/* clang-format on */

/* ---- values of trials ---- */

static long objectives (const struct search_header *h)
{
    return h->config.objectives > 1 ? h->config.objectives : 1;
}

static int bad_value (const struct search_header *h, const char *who, struct slurmdl_error *err)
{
    errno = EINVAL;
    if (objectives (h) == 1)
        return errorf (err, "%s: 'value' must be a number or null", who);
    return errorf (err, "%s: 'value' must be a list of %ld numbers, or null", who, objectives (h));
}

/* Read the value of a trial: a number, or a list with one number for each objective.
 * null becomes NaN.  Returns -1 with 'err' for anything else.
 */
static int header_values (const struct search_header *h, const json_t *json, const char *who,
                          double *values, struct slurmdl_error *err)
{
    long n = objectives (h);

    if (json_is_array (json) ? json_array_size (json) != (size_t)n : n > 1 && !json_is_null (json))
        return bad_value (h, who, err);
    for (long k = 0; k < n; k++) {
        const json_t *v = json_is_array (json) ? json_array_get (json, (size_t)k) : json;
        if (!json_is_number (v) && !json_is_null (v))
            return bad_value (h, who, err);
        values[k] = json_is_number (v) ? json_number_value (v) : NAN;
    }
    return 0;
}

/* ---- points ---- */

static int read_points (struct search_header *h, const json_t *list, struct slurmdl_error *err)
{
    size_t n = json_array_size (list);

    h->points = xcalloc (n * h->n + 1, sizeof (*h->points));
    for (size_t i = 0; i < n; i++)
        if (header_point (h, json_array_get (list, i), "points", h->points + i * h->n, err) < 0)
            return -1;
    h->config.points = h->points;
    h->config.npoints = (long)n;
    return header_fit (h, "point", h->points, n, err);
}

struct earlier {
    json_t *params, *value;
};

static const struct field known_fields[] = {
    { "params", FIELD_OBJECT, offsetof (struct earlier, params), true, 0, 0 },
    { "value", FIELD_ANY, offsetof (struct earlier, value), true, 0, 0 },
    { 0 },
};

static int read_earlier (const struct search_header *h, const json_t *o, double *x, double *y,
                         struct slurmdl_error *err)
{
    struct earlier e = { 0 };

    if (!json_is_object (o))
        return header_bad (err, "known", "a list of objects: {\"params\": ..., \"value\": ...}");
    if (fields_read (known_fields, o, "known", &e, err) < 0
        || header_point (h, e.params, "known", x, err) < 0)
        return -1;
    return header_values (h, e.value, "known", y, err);
}

static int read_known (struct search_header *h, const json_t *list, struct slurmdl_error *err)
{
    size_t n = json_array_size (list);

    h->known = xcalloc (n + 1, sizeof (*h->known));
    h->known_x = xcalloc (n * h->n + 1, sizeof (double));
    h->known_y = xcalloc (n * OBJECTIVES_MAX + 1, sizeof (double));
    for (size_t i = 0; i < n; i++) {
        double *x = h->known_x + i * h->n;
        double *y = h->known_y + i * OBJECTIVES_MAX;
        if (read_earlier (h, json_array_get (list, i), x, y, err) < 0)
            return -1;
        h->known[i] = (struct search_known){ x, y };
    }
    h->config.known = h->known;
    h->config.nknown = (long)n;
    return header_fit (h, "known", h->known_x, n, err);
}

/* ---- the search configuration ---- */

static int read_direction (const json_t *d, bool *larger)
{
    const char *text = json_string_value (d);

    *larger = text && !strcmp (text, "maximize");
    return *larger || (text && !strcmp (text, "minimize")) ? 0 : -1;
}

/* Read one direction, or a list with one for each objective. */
static int read_directions (struct search_header *h, const json_t *d, struct slurmdl_error *err)
{
    size_t n = json_is_array (d) ? json_array_size (d) : 1;
    bool larger;

    if (n < 1 || n > OBJECTIVES_MAX)
        return header_bad (err, "", "'direction' has 1 to 8 objectives");
    for (size_t k = 0; k < n; k++) {
        if (read_direction (json_is_array (d) ? json_array_get (d, k) : d, &larger) < 0)
            return header_bad (err, "", "'direction' must be \"minimize\" or \"maximize\"");
        h->config.larger[k] = larger;
    }
    h->config.smaller_is_better = !h->config.larger[0];
    h->config.objectives = (long)n;
    return 0;
}

static int read_search_mode (struct search_header *h, const char *text, struct slurmdl_error *err)
{
    static const char *const modes[] = {
        [SEARCH_AGGRESSIVE] = "aggressive",
        [SEARCH_STANDARD] = "standard",
        [SEARCH_CONSERVATIVE] = "conservative",
    };

    for (int i = SEARCH_AGGRESSIVE; i <= SEARCH_CONSERVATIVE; i++)
        if (!strcmp (modes[i], text)) {
            h->config.mode = (enum search_mode)i;
            return 0;
        }
    return header_bad (err, "", "'mode' must be aggressive, standard or conservative");
}

/* 'what' is "searcher" or "sampler". */
static int check_search_kind (const char *what, const char *name, struct slurmdl_error *err)
{
    const char *words[64] = { 0 };
    const char *meant;
    size_t n = 0;

    for (const struct searcher_kind *k = searcher_kinds; k->name && n < 63; k++) {
        if (k->needs & IS_CUSTOM)
            continue;
        if (!name || !strcmp (k->name, name))
            return 0;
        words[n++] = k->name;
    }
    meant = nearest_word (name, words);
    errno = EINVAL;
    return errorf (err, "unknown %s '%.60s'%s%s%s", what, name, DID_YOU_MEAN (meant, "'", "'", ""));
}

/* With steps, the search continues until its caller stops or max_trials is reached. */
static long header_trials (const struct keys *k)
{
    if (k->max_trials >= 0)
        return (long)k->max_trials;
    return k->budget >= 1 && k->max_step == 0 ? (long)k->budget : TRIALS_DEFAULT;
}

static int read_config (struct search_header *h, const struct keys *k, struct slurmdl_error *err)
{
    h->steps = k->max_step > 0;
    h->confirm = k->confirm;
    h->config = (struct search_config){
        .name = k->searcher,
        .seed = (uint64_t)k->seed,
        .max_trials = header_trials (k),
        .max_length = h->steps ? k->max_step : 1,
        .divisor = k->divisor,
        .max_rungs = (long)k->max_rungs,
        .sampler = k->sampler,
        .constraint = k->constraint,
        .repeats = (long)k->repeats,
        .max_seconds = k->max_seconds,
        .cost_aware = k->cost_aware,
        .min_length = k->min_step,
        .population = (long)k->population,
    };
    if (check_search_kind ("searcher", k->searcher, err) < 0
        || check_search_kind ("sampler", k->sampler, err) < 0
        || read_search_mode (h, k->mode, err) < 0)
        return -1;
    if (k->confirm && (h->steps || k->repeats > 1))
        return header_bad (err, "", "'confirm' needs full trainings that are not repeated");
    h->config.smaller_is_better = true;
    h->config.objectives = 1;
    return k->direction ? read_directions (h, k->direction, err) : 0;
}

/* Read the header and take ownership of 'json'.  'searcher' overrides the searcher in
 * it unless NULL.  Call header_free() in every case.
 *
 * Returns -1 with errno EINVAL.  Does not check what searcher_check() checks.
 */
static int header_read (struct search_header *h, json_t *json, const char *searcher,
                        struct slurmdl_error *err)
{
    struct keys k = {
        .searcher = "auto", .mode = "standard", .max_trials = -1, .divisor = 3, .max_rungs = 32
    };

    *h = (struct search_header){ .json = json };
    if (fields_read (header_fields, json, NULL, &k, err) < 0)
        return -1;
    if (searcher)
        k.searcher = searcher;
    if (header_space (h, k.space, err) < 0 || read_config (h, &k, err) < 0)
        return -1;
    return read_points (h, k.points, err) < 0 || read_known (h, k.known, err) < 0 ? -1 : 0;
}

static void header_free (struct search_header *h)
{
    for (size_t i = 0; h->labels && i < h->n + 1; i++) {
        for (char **l = h->labels[i]; l && *l; l++)
            free (*l);
        free (h->labels[i]);
    }
    for (size_t i = 0; h->when && i < h->n; i++)
        free (h->when[i]);
    free (h->labels);
    free (h->when);
    free (h->params);
    free (h->choices);
    free (h->low);
    free (h->high);
    free (h->points);
    free (h->known);
    free (h->known_x);
    free (h->known_y);
    json_decref (h->json);
}

/* ---- the server ---- */

/* The protocol is in dl-search-server(1).  Trial N is "id" N - 1. */
struct server {
    struct search_header header;
    struct searcher *searcher;
    int64_t *lengths; /* length of each trial's current segment */
    long capacity;    /* elements of lengths and params */
    long trials;      /* number of trials that have begun */
    double *x;
    json_t **params; /* of each trial */
    long best;       /* trial with the best value, or 0 */
    double value;    /* its value */
    bool quits;      /* the client asked to quit */
};

/* A request.  Each operation uses some of these fields. */
struct search_line {
    const char *op;
    int64_t id, step;
    double seconds;
    json_t *value, *params;
};

static int bad_request (struct slurmdl_error *err, const char *what)
{
    errno = EINVAL;
    return errorf (err, "%s", what);
}

/* ---- the first line ---- */

static int check_searcher (const struct server *s, struct slurmdl_error *err)
{
    const struct search_header *h = &s->header;
    struct search_mistake at;
    const char *why = searcher_check (&h->config, h->params, h->n, &at);

    errno = EINVAL;
    if (!why)
        return 0;
    if (at.column)
        return errorf (err, "constraint: column %d: %s", at.column, why);
    return errorf (err, "%.60s: %s", at.param >= 0 ? h->params[at.param].name : "searcher", why);
}

static int start_search (struct server *s, struct slurmdl_error *err)
{
    const struct search_header *h = &s->header;

    if (check_searcher (s, err) < 0)
        return -1;
    if (!(s->searcher = searcher_create (&h->config, h->params, h->n)))
        out_of_memory ();
    s->x = xcalloc (h->n + 1, sizeof (*s->x));
    return 0;
}

static void server_free (struct server *s)
{
    searcher_destroy (s->searcher);
    for (long i = 0; i < s->capacity; i++)
        json_decref (s->params[i]);
    header_free (&s->header);
    free (s->params);
    free (s->lengths);
    free (s->x);
}

/* Make room for the data of a trial. */
static void reserve_trial (struct server *s, long trial)
{
    for (; s->capacity <= trial; s->capacity++) {
        XGROW (s->lengths, (size_t)s->capacity);
        XGROW (s->params, (size_t)s->capacity);
        s->lengths[s->capacity] = 0;
        s->params[s->capacity] = NULL;
    }
}

/* ---- the operations ---- */

static void print_answer (json_t *o)
{
    json_put (o, stdout, JSON_COMPACT);
    putchar ('\n');
    fflush (stdout);
    json_decref (o);
}

/* Begin a segment.  If the trial is new, its point is in s->x. */
static int begin_trial (struct server *s, const struct search_op *op, struct slurmdl_error *err)
{
    reserve_trial (s, op->trial);
    if (searcher_begin (s->searcher, op, s->x) < 0)
        return bad_request (err, "the searcher would not start this trial");
    s->lengths[op->trial] = op->length;
    if (!op->fresh)
        return 0;
    s->params[op->trial] = header_params (&s->header, s->x);
    s->trials = op->trial;
    return 0;
}

static void describe_op (const struct server *s, const struct search_op *op, json_t *o)
{
    json_object_set_new (o, "id", json_integer (op->trial - 1));
    if (!op->fresh) {
        json_object_set_new (o, "resume", json_true ());
        return;
    }
    json_object_set_new (o, "params", header_params (&s->header, s->x));
    if (op->from) {
        json_object_set_new (o, "from", json_integer (op->from - 1));
        json_object_set_new (o, "from_step", json_integer (op->from_length));
    }
}

static int answer_ask (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    enum search_answer what;
    struct search_op op;
    json_t *o;

    (void)line;
    what = searcher_ask (s->searcher, &op, s->x);
    if (what == SEARCH_RUN && !s->header.confirm && begin_trial (s, &op, err) < 0)
        return -1;
    o = json_object ();
    if (what == SEARCH_RUN)
        describe_op (s, &op, o);
    else
        json_object_set_new (o, "wait", json_true ());
    if (what == SEARCH_DONE)
        json_object_set_new (o, "done", json_true ());
    print_answer (o);
    return 0;
}

/* Begin a trial that the client chose, to be trained in full. */
static int answer_begin (struct server *s, const struct search_line *line,
                         struct slurmdl_error *err)
{
    struct search_op op = { .trial = s->trials + 1,
                            .fresh = true,
                            .length = s->header.config.max_length };

    if (line->id != s->trials) {
        errno = EINVAL;
        return errorf (err, "'id' is %" PRId64 ", but the next is %ld", line->id, s->trials);
    }
    if (s->header.config.repeats > 1)
        return bad_request (err, "begin and 'repeats' cannot be used together");
    if (header_point (&s->header, line->params, "params", s->x, err) < 0
        || header_fit (&s->header, "params", s->x, 1, err) < 0)
        return -1;
    return begin_trial (s, &op, err);
}

/* Return the number of the trial, or 0 with 'err' if it does not exist. */
static long trial_of (const struct server *s, const struct search_line *line,
                      struct slurmdl_error *err)
{
    if (line->id < s->trials)
        return (long)line->id + 1;
    errno = EINVAL;
    errorf (err, "'id' is %" PRId64 ", but there is no such trial", line->id);
    return 0;
}

static void keep_best_observed (struct server *s, long trial, double value)
{
    bool better = s->header.config.smaller_is_better ? value < s->value : value > s->value;

    if (isfinite (value) && (s->best == 0 || better)) {
        s->best = trial;
        s->value = value;
    }
}

static int tell_values (struct server *s, long trial, int64_t length, const double *values)
{
    if (searcher_observe (s->searcher, trial, length, values) < 0)
        return -1;
    keep_best_observed (s, trial, *values);
    return 0;
}

/* The value null means that the trial failed. */
static int answer_observe (struct server *s, const struct search_line *line,
                           struct slurmdl_error *err)
{
    double values[OBJECTIVES_MAX];
    long trial = trial_of (s, line, err);
    int rv;

    if (!trial || header_values (&s->header, line->value, "tell", values, err) < 0)
        return -1;
    if (searcher_spend (s->searcher, trial, line->seconds) < 0)
        return bad_request (err, "'seconds' is too large");
    rv = json_is_null (line->value) ? searcher_exit (s->searcher, trial)
                                    : tell_values (s, trial, s->lengths[trial], values);
    /* with steps, the last report included the value already */
    if (rv < 0 && !s->header.steps)
        return bad_request (err, "the trial is not being trained");
    return 0;
}

static int answer_reject (struct server *s, const struct search_line *line,
                          struct slurmdl_error *err)
{
    long trial = trial_of (s, line, err);

    if (!trial)
        return -1;
    if (searcher_reject (s->searcher, trial) < 0)
        return bad_request (err, "the trial is not being trained");
    return 0;
}

/* Return the decision about a trial after a report, or NULL if it is not being trained.
 */
static const char *decide_trial (struct server *s, long trial, int64_t step, const double *values)
{
    int64_t length = s->lengths[trial];
    bool last = step >= length;

    if (searcher_report (s->searcher, trial, last ? length : step, *values) < 0)
        return NULL;
    if (!last && !searcher_stops (s->searcher, trial))
        return "continue";
    if (tell_values (s, trial, last ? length : step, values) < 0)
        return NULL;
    return last && length < s->header.config.max_length && isfinite (*values) ? "pause" : "stop";
}

static int answer_report (struct server *s, const struct search_line *line,
                          struct slurmdl_error *err)
{
    double values[OBJECTIVES_MAX];
    const char *decision;
    long trial = trial_of (s, line, err);

    if (!trial || header_values (&s->header, line->value, "report", values, err) < 0)
        return -1;
    if (!(decision = decide_trial (s, trial, line->step, values)))
        return bad_request (err, "the trial is not being trained");
    print_answer (json_pack ("{s:s}", "decision", decision));
    return 0;
}

static int answer_best (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    json_t *o = json_object ();

    (void)line;
    (void)err;
    if (s->best) {
        json_object_set_new (o, "id", json_integer (s->best - 1));
        json_object_set (o, "params", s->params[s->best]);
        json_object_set_new (o, "value", json_real (s->value));
    }
    print_answer (o);
    return 0;
}

static int answer_quit (struct server *s, const struct search_line *line, struct slurmdl_error *err)
{
    (void)line;
    (void)err;
    s->quits = true;
    return 0;
}

/* ---- requests ---- */

#define LINE_AT(field) offsetof (struct search_line, field)

/* clang-format off */
#define OP      { "op",      FIELD_TEXT,    LINE_AT (op),      true,  0, 0 }
#define ID      { "id",      FIELD_INTEGER, LINE_AT (id),      true,  0, BIG }
#define STEP    { "step",    FIELD_INTEGER, LINE_AT (step),    true,  1, BIG }
#define VALUE   { "value",   FIELD_ANY,     LINE_AT (value),   true,  0, 0 }
#define PARAMS  { "params",  FIELD_OBJECT,  LINE_AT (params),  true,  0, 0 }
#define SECONDS { "seconds", FIELD_NUMBER,  LINE_AT (seconds), false, 0, INFINITY }

static const struct {
    const char *name;
    struct field fields[6];
    int (*run) (struct server *s,
                const struct search_line *line,
                struct slurmdl_error *err);
} operations[] = {
    { "ask",    { OP },                     answer_ask },
    { "tell",   { OP, ID, VALUE, SECONDS }, answer_observe },
    { "report", { OP, ID, STEP, VALUE },    answer_report },
    { "reject", { OP, ID },                 answer_reject },
    { "begin",  { OP, ID, PARAMS },         answer_begin },
    { "best",   { OP },                     answer_best },
    { "quit",   { OP },                     answer_quit },
};
/* clang-format on */

static int operate (struct server *s, const json_t *o, struct slurmdl_error *err)
{
    const char *op = json_string_value (json_object_get (o, "op"));
    struct search_line line = { 0 };

    for (size_t i = 0; op && i < sizeof (operations) / sizeof (*operations); i++) {
        if (strcmp (operations[i].name, op))
            continue;
        if (fields_read (operations[i].fields, o, op, &line, err) < 0)
            return -1;
        return operations[i].run (s, &line, err);
    }
    return bad_request (err, "'op' must be ask, tell, report, reject, begin, best or quit");
}

/* The lines of standard input. */
struct input {
    char *text;
    size_t size;
    long number;
};

/* Python writes NaN and Infinity, which are not valid JSON. */
static void explain_json_error (const json_error_t *why, struct slurmdl_error *err)
{
    bool number = strstr (why->text, "'NaN'") || strstr (why->text, "Infinity'");

    errorf (err, "column %d: %s%s", why->column, why->text,
            number ? "; use null for a value that is not finite" : "");
}

static json_t *parse_request (const char *text, size_t n, struct slurmdl_error *err)
{
    json_error_t why;
    json_t *line = json_loadb (text, n, JSON_REJECT_DUPLICATES, &why);

    errno = EINVAL;
    if (memchr (text, '\0', n))
        bad_request (err, "a NUL byte");
    else if (!line)
        explain_json_error (&why, err);
    else if (!json_is_object (line))
        bad_request (err, "not a JSON object");
    if (!*err->text)
        return line;
    json_decref (line);
    return NULL;
}

static json_t *next_request_line (struct input *in, struct slurmdl_error *err)
{
    ssize_t n = getline (&in->text, &in->size, stdin);

    if (n < 0) {
        if (!feof (stdin))
            errorf (err, "cannot read: %s", strerror (errno));
        return NULL;
    }
    in->number++;
    return parse_request (in->text, (size_t)n, err);
}

static void serve_requests (struct server *s, struct input *in, const char *searcher,
                            struct slurmdl_error *err)
{
    json_t *line = next_request_line (in, err);
    int rv = -1;

    if (line && (rv = header_read (&s->header, line, searcher, err)) == 0)
        rv = start_search (s, err);
    while (rv == 0 && !s->quits && !ferror (stdout) && (line = next_request_line (in, err))) {
        rv = operate (s, line, err);
        json_decref (line);
    }
}

/* Names in the message may contain newlines. */
static void make_printable (char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

int cmd_search_server (const struct command_line *line)
{
    const struct search_server_options *opt = line->options;
    struct slurmdl_error err = { "" };
    struct server s = { 0 };
    struct input in = { 0 };

    serve_requests (&s, &in, opt->searcher, &err);
    server_free (&s);
    free (in.text);
    make_printable (err.text);
    if (*err.text) {
        complain ("line %ld: %s", in.number, err.text);
        return ferror (stdin) ? EXIT_IO : EXIT_USAGE;
    }
    if (!ferror (stdout))
        return EXIT_OK;
    complain ("cannot write the answer");
    return EXIT_IO;
}
