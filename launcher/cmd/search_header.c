/* SPDX-License-Identifier: Apache-2.0 */
/* Read the configuration of a search from JSON. */
#include "launcher/cmd/search_header.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/json_fields.h"
#include "runtime/base/error.h"

enum { TRIALS_DEFAULT = 100000, TRIALS_MOST = 10000000 };

/* ---- keys ---- */

struct keys {
    json_t *space, *direction, *points, *known, *ignored;
    const char *searcher, *sampler, *constraint, *mode;
    int64_t seed, max_trials, max_step, min_step, max_rungs, repeats, population;
    double budget, divisor, max_seconds;
    bool cost_aware, confirm;
};

#define AT(field) offsetof (struct keys, field)
#define BIG       0x1p53
#define SEED_MAX  0x1p63

/* clang-format off */
static const struct field header_fields[] = {
    { "space",       FIELD_LIST,    AT (space),       true,  0, 0 },
    { "searcher",    FIELD_TEXT,    AT (searcher),    false, 0, 0 },
    { "sampler",     FIELD_TEXT,    AT (sampler),     false, 0, 0 },
    { "direction",   FIELD_ANY,     AT (direction),   false, 0, 0 },
    { "seed",        FIELD_INTEGER, AT (seed),        false, 0, SEED_MAX },
    { "budget",      FIELD_NUMBER,  AT (budget),      false, 0, TRIALS_MOST },
    { "max_trials",  FIELD_INTEGER, AT (max_trials),  false, 0, TRIALS_MOST },
    { "max_step",    FIELD_INTEGER, AT (max_step),    false, 1, BIG },
    { "min_step",    FIELD_INTEGER, AT (min_step),    false, 0, BIG },
    { "divisor",     FIELD_NUMBER,  AT (divisor),     false, 0, 0 },
    { "max_rungs",   FIELD_INTEGER, AT (max_rungs),   false, 1, 64 },
    { "mode",        FIELD_TEXT,    AT (mode),        false, 0, 0 },
    { "constraint",  FIELD_TEXT,    AT (constraint),  false, 0, 0 },
    { "points",      FIELD_LIST,    AT (points),      false, 0, 0 },
    { "known",       FIELD_LIST,    AT (known),       false, 0, 0 },
    { "repeats",     FIELD_INTEGER, AT (repeats),     false, 0, 64 },
    { "max_seconds", FIELD_NUMBER,  AT (max_seconds), false, 0, INFINITY },
    { "cost_aware",  FIELD_BOOL,    AT (cost_aware),  false, 0, 0 },
    { "population",  FIELD_INTEGER, AT (population),  false, 0, 100000 },
    { "confirm",     FIELD_BOOL,    AT (confirm),     false, 0, 0 },
    { "metric",      FIELD_ANY,     AT (ignored),     false, 0, 0 },
    { "workers",     FIELD_ANY,     AT (ignored),     false, 0, 0 },
    { 0 },
};
/* clang-format on */

/* ---- values ---- */

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

int header_values (const struct search_header *h, const json_t *json, const char *who,
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

    if (!(h->points = calloc (n * h->n + 1, sizeof (*h->points))))
        return errorf (err, "out of memory");
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

    h->known = calloc (n + 1, sizeof (*h->known));
    h->known_x = calloc (n * h->n + 1, sizeof (double));
    h->known_y = calloc (n * OBJECTIVES_MAX + 1, sizeof (double));
    if (!h->known || !h->known_x || !h->known_y)
        return errorf (err, "out of memory");
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

/* ---- the configuration ---- */

static int read_direction (const json_t *d, bool *larger)
{
    const char *text = json_string_value (d);

    *larger = text && !strcmp (text, "maximize");
    return *larger || (text && !strcmp (text, "minimize")) ? 0 : -1;
}

/* One, or a list of one for each objective. */
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

static int read_mode (struct search_header *h, const char *text, struct slurmdl_error *err)
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
static int check_kind (const char *what, const char *name, struct slurmdl_error *err)
{
    const char *words[64] = { 0 };
    char hint[80];
    size_t n = 0;

    for (const struct searcher_kind *k = searcher_kinds; k->name && n < 63; k++) {
        if (k->needs & IS_CUSTOM)
            continue;
        if (!name || !strcmp (k->name, name))
            return 0;
        words[n++] = k->name;
    }
    hint_text (hint, sizeof (hint), name, words);
    errno = EINVAL;
    return errorf (err, "unknown %s '%.60s'%s", what, name, hint);
}

/* A search by steps goes on until its caller has enough, or to max_trials. */
static long trials_of (const struct keys *k)
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
        .max_trials = trials_of (k),
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
    if (check_kind ("searcher", k->searcher, err) < 0 || check_kind ("sampler", k->sampler, err) < 0
        || read_mode (h, k->mode, err) < 0)
        return -1;
    if (k->confirm && (h->steps || k->repeats > 1))
        return header_bad (err, "", "'confirm' needs full trainings that are not repeated");
    h->config.smaller_is_better = true;
    h->config.objectives = 1;
    return k->direction ? read_directions (h, k->direction, err) : 0;
}

int header_read (struct search_header *h, json_t *json, const char *searcher,
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

void header_free (struct search_header *h)
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
