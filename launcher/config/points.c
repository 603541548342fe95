/* SPDX-License-Identifier: Apache-2.0 */
/* The points that a search tries first: the defaults, searcher.try_first. */
#include "launcher/config/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/setting.h"
#include "launcher/config/space.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"

enum { PATH_SIZE = 128 };

/* What messages are about: the key, or the point given to dl try. */
static const char *point_subject (const struct problems *p)
{
    return p->words ? "the point" : "'searcher.try_first'";
}

/* ---- what is active ---- */

bool point_active (const struct experiment *e, size_t i, const double *x)
{
    const struct param *d = &e->space->params[i];
    size_t other = 0;

    if (!d->when)
        return true;
    while (strcmp (e->space->params[other].name, d->when))
        other++;
    for (long k = 0; k < d->when_count; k++)
        if (x[other] == d->when_values[k])
            return point_active (e, other, x);
    return false;
}

/* Remove the values of inactive parameters from 'x'. */
static void clear_inactive (const struct experiment *e, double *x)
{
    bool *active = xcalloc (e->space->nparams + 1, sizeof (*active));

    for (size_t i = 0; i < e->space->nparams; i++)
        active[i] = point_active (e, i, x);
    for (size_t i = 0; i < e->space->nparams; i++)
        if (!active[i])
            x[i] = NAN;
    free (active);
}

/* ---- defaults ---- */

/* Get the middle of each parameter, even if it is inactive, by asking the searcher "single". */
static int middle_of_space (const struct experiment *e, double *x)
{
    const struct search_config config = { .name = "single", .max_length = 1 };
    struct param *free_params = xcalloc (e->space->nparams + 1, sizeof (*free_params));
    struct searcher *s = NULL;
    struct search_op op;
    int rv = -1;

    for (size_t i = 0; i < e->space->nparams; i++) {
        free_params[i] = e->space->params[i];
        free_params[i].when = NULL;
    }
    if ((s = searcher_create (&config, free_params, e->space->nparams))
        && searcher_ask (s, &op, x) == SEARCH_RUN)
        rv = 0;
    searcher_destroy (s);
    free (free_params);
    return rv;
}

/* Fill in the default of each parameter.  Returns how many have a default of their own, or -1 on
 * failure.
 */
static int default_point (const struct experiment *e, double *x)
{
    int n = 0;

    if (middle_of_space (e, x) < 0)
        return -1;
    for (size_t i = 0; i < e->space->nhparams; i++)
        if (!isnan (e->space->hparams[i].preset)) {
            x[e->space->hparams[i].dim] = e->space->hparams[i].preset;
            n++;
        }
    return n;
}

/* ---- try_first ---- */

static void read_point (struct experiment *e, const config_setting_t *group, const char *prefix,
                        double *x, struct problems *p);

static void read_point_value (struct experiment *e, const config_setting_t *s, const char *path,
                              double *x, struct problems *p)
{
    const struct hparam *h = hparam_find (e, path);
    char prefix[PATH_SIZE + 1];

    if (h && h->dim >= 0)
        setting_value (e, h, s, point_subject (p), &x[h->dim], p);
    else if (h)
        problem_at (p, origin_of (s), "%s: '%s' is a constant; leave it out", point_subject (p),
                    path);
    else if (config_setting_is_group (s)) {
        snprintf (prefix, sizeof (prefix), "%s.", path);
        read_point (e, s, prefix, x, p);
    } else
        hparam_unknown (e, s, point_subject (p), path, p);
}

static void read_point (struct experiment *e, const config_setting_t *group, const char *prefix,
                        double *x, struct problems *p)
{
    char path[PATH_SIZE];

    for (int i = 0; i < config_setting_length (group); i++) {
        const config_setting_t *s = config_setting_get_elem (group, (unsigned)i);
        int n = snprintf (path, sizeof (path), "%s%s", prefix, config_setting_name (s));
        if (n >= (int)sizeof (path))
            hparam_unknown (e, s, point_subject (p), path, p);
        else
            read_point_value (e, s, path, x, p);
    }
}

/* Fill in the missing values of 'x', which are NaN. */
static void complete_point (const struct experiment *e, const config_setting_t *s,
                            const double *preset, double *x, struct problems *p)
{
    bool *given = xcalloc (e->space->nparams + 1, sizeof (*given));

    for (size_t i = 0; i < e->space->nparams; i++) {
        given[i] = !isnan (x[i]);
        if (!given[i])
            x[i] = preset[i];
    }
    clear_inactive (e, x);
    for (size_t i = 0; i < e->space->nparams; i++)
        if (given[i] && isnan (x[i]))
            problem_at (p, origin_of (s),
                        "%s: '%s' is not active at this point: it depends on '%s'",
                        point_subject (p), e->space->params[i].name, e->space->params[i].when);
    free (given);
}

/* The values are known to be in range, so only the constraint can fail. */
static void check_point (const struct experiment *e, const double *x, struct origin origin,
                         const char *what, struct problems *p)
{
    const struct search_config config = { .name = "random",
                                          .max_trials = 1,
                                          .max_length = 1,
                                          .constraint = e->search->constraint,
                                          .points = x,
                                          .npoints = 1 };

    if (searcher_check (&config, e->space->params, e->space->nparams, NULL))
        problem_at (p, origin, "%s: 'searcher.constraint' forbids this point", what);
}

/* Add the points of 'list', which may be NULL. */
static void add_listed_points (struct experiment *e, const config_setting_t *list,
                               const double *preset, struct problems *p)
{
    for (int i = 0; list && i < config_setting_length (list); i++) {
        const config_setting_t *s = config_setting_get_elem (list, (unsigned)i);
        double *x = e->search->points + (size_t)e->search->config.npoints * e->space->nparams;
        int before = p->count;
        for (size_t k = 0; k < e->space->nparams; k++)
            x[k] = NAN;
        read_point (e, s, "", x, p);
        if (p->count == before)
            complete_point (e, s, preset, x, p);
        if (p->count == before)
            check_point (e, x, origin_of (s), point_subject (p), p);
        if (p->count == before)
            e->search->config.npoints++;
    }
}

static void add_default_point (struct experiment *e, config_t *cf, const double *preset,
                               struct problems *p)
{
    memcpy (e->search->points, preset, e->space->nparams * sizeof (*preset));
    clear_inactive (e, e->search->points);
    check_point (e, e->search->points, origin_of_key (cf, "hyperparameters"),
                 "the hyperparameters' defaults, which are trial 1", p);
    e->search->config.npoints = 1;
}

static void check_point_count (const struct experiment *e, const config_setting_t *list,
                               long trials, struct problems *p)
{
    if (trials > 0 && e->search->config.npoints > trials)
        problem_at (p, origin_of (list),
                    "%s: %ld points, the defaults included, are more than the %ld trial%s",
                    point_subject (p), e->search->config.npoints, trials, trials == 1 ? "" : "s");
}

void points_read (struct experiment *e, config_t *cf, struct problems *p)
{
    const config_setting_t *list = config_lookup (cf, "searcher.try_first");
    bool grid = !strcmp (e->search->searcher, "grid");
    size_t n = list ? (size_t)config_setting_length (list) : 0;
    double *preset = xcalloc (e->space->nparams + 1, sizeof (*preset));
    int given = default_point (e, preset);

    e->search->points = xcalloc ((n + 1) * (e->space->nparams + 1), sizeof (*e->search->points));
    if (given < 0)
        out_of_memory ();
    if (list && !setting_is_list_of_groups (list))
        problem_at (p, origin_of (list),
                    "'searcher.try_first' must be a list of points: ( { name = value; }, ... )");
    else if (list && grid)
        problem_at (p, origin_of (list),
                    "searcher \"grid\" tries only its own points: leave 'searcher.try_first' out");
    else {
        if (given > 0 && !grid)
            add_default_point (e, cf, preset, p);
        add_listed_points (e, list, preset, p);
        if (list)
            check_point_count (
                e, list, strcmp (e->search->searcher, "single") ? e->search->config.max_trials : 1,
                p);
    }
    free (preset);
    e->search->config.points = e->search->points;
}

/* ---- points of an earlier experiment ---- */

void known_points_free (struct experiment *e)
{
    free (e->search->known);
    free (e->search->known_numbers);
    e->search->known = NULL;
    e->search->known_numbers = NULL;
    e->search->config.known = NULL;
    e->search->config.nknown = 0;
}

void known_points_allocate (struct experiment *e, size_t n)
{
    size_t width = e->space->nparams + e->metric->n;

    known_points_free (e);
    e->search->known = xcalloc (n + 1, sizeof (*e->search->known));
    e->search->known_numbers = xcalloc (n * width + 1, sizeof (*e->search->known_numbers));
    for (size_t i = 0; i < n; i++) {
        e->search->known[i].x = e->search->known_numbers + i * width;
        e->search->known[i].values = e->search->known[i].x + e->space->nparams;
    }
    e->search->config.known = e->search->known;
}

json_t *known_points_json (const struct experiment *e)
{
    json_t *list = json_array ();

    for (long i = 0; i < e->search->config.nknown; i++) {
        const struct search_known *k = &e->search->known[i];
        json_t *metric = e->metric->n > 1 ? numbers_to_json (k->values, e->metric->n)
                                          : number_to_json (k->values[0]);
        json_array_append_new (list, json_pack ("{s:o, s:o}", "x",
                                                numbers_to_json (k->x, e->space->nparams), "metric",
                                                metric));
    }
    return list;
}

void known_points_read (struct experiment *e, const json_t *known)
{
    size_t n = json_array_size (known);

    if (n == 0)
        return;
    known_points_allocate (e, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *k = json_array_get (known, i);
        const json_t *x = json_object_get (k, "x");
        const json_t *metric = json_object_get (k, "metric");
        double *row = e->search->known_numbers + i * (e->space->nparams + e->metric->n);
        for (size_t j = 0; j < e->space->nparams; j++)
            *row++ = number_from_json (json_array_get (x, j));
        for (size_t j = 0; j < e->metric->n; j++)
            *row++ =
                number_from_json (json_is_array (metric) ? json_array_get (metric, j) : metric);
    }
    e->search->config.nknown = (long)n;
}
