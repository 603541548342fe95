/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment and its trials as JSON. */
#include "launcher/sweep/experiment_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/conditions.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"

static void set_new (json_t *o, const char *name, json_t *v)
{
    json_object_set_new (o, name, v);
}

json_t *text_json (const char *bytes)
{
    json_t *o = bytes ? json_string (bytes) : json_null ();
    char *escaped, *to;

    if (o)
        return o;
    to = escaped = xmalloc (4 * strlen (bytes) + 1);
    for (; *bytes; bytes++)
        if ((unsigned char)*bytes < 0x80)
            *to++ = *bytes;
        else
            to += sprintf (to, "\\x%02x", (unsigned char)*bytes);
    *to = '\0';
    o = json_string (escaped);
    free (escaped);
    return o;
}

static json_t *column_cell_json (enum column_type type, const struct cell *cell)
{
    return type == COLUMN_INT    ? json_integer (cell->integer)
           : type == COLUMN_REAL ? finite_to_json (cell->real)
                                 : text_json (cell->text);
}

/* Keep the type that the trainer sees: a boolean, a list or an integer. */
static json_t *shown_hparam (const struct sweep *s, const struct result_column *c, long trial)
{
    json_t *v = trial_hparam (s, sweep_trial (s, trial), &s->exp->space->hparams[c->index]);

    return v ? v : json_null ();
}

static void set_progress (json_t *o, const struct sweep *s, long trial)
{
    struct metric_progress p;

    if (sweep_trial (s, trial)->state != TRIAL_OPEN || sweep_has_ended (s))
        return;
    set_new (o, "target", json_integer (sweep_trial (s, trial)->target));
    if (trial_progress (s, trial, &p) < 0)
        return;
    set_new (o, "step", json_integer (p.step));
    set_new (o, "value", finite_to_json (p.value));
    set_new (o, "age", finite_to_json (progress_age (&p)));
    set_new (o, "rate", finite_to_json (progress_rate (&p)));
}

json_t *trial_json (const struct sweep *s, const struct columns *c, long trial)
{
    json_t *hparams = json_object ();
    json_t *o = json_object ();

    for (size_t i = 0; i < c->n; i++) {
        const struct result_column *col = &c->list[i];
        struct cell cell = column_cell (col, s, trial);
        if (col->hparam)
            set_new (hparams, col->name, shown_hparam (s, col, trial));
        else
            set_new (o, col->name, column_cell_json (col->type, &cell));
    }
    set_new (o, "hyperparameters", hparams);
    set_new (o, "conditions", conditions_json (trial_conditions (s, trial)));
    set_progress (o, s, trial);
    return o;
}

static json_t *point_json (const struct sweep *s, long point)
{
    json_t *o = json_pack ("{s:I}", "point", (json_int_t)point);
    json_t *mean = json_object ();
    json_t *deviation = json_object ();

    for (size_t i = 0; i < sweep_metrics (s); i++) {
        struct sweep_result r = point_result (s, point, i);
        set_new (o, "n", json_integer (r.n));
        set_new (o, "length", json_integer (r.length));
        if (i == 0)
            set_new (o, "compared", json_boolean (r.compared));
        set_new (mean, sweep_metric (s, i), finite_to_json (r.value));
        set_new (deviation, sweep_metric (s, i), finite_to_json (r.deviation));
    }
    set_new (o, "mean", mean);
    set_new (o, "deviation", deviation);
    return o;
}

static json_t *points_json (const struct sweep *s)
{
    json_t *list = json_array ();

    for (long i = 1; s->ntrials && i <= trial_point (s, s->ntrials); i++)
        json_array_append_new (list, point_json (s, i));
    return list;
}

static json_t *objectives_json (const struct sweep *s)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < sweep_metrics (s); i++)
        json_array_append_new (list,
                               json_pack ("{s:o, s:b}", "name", text_json (sweep_metric (s, i)),
                                          "smaller_is_better",
                                          (int)(i ? !s->exp->search->config.larger[i]
                                                  : s->exp->search->config.smaller_is_better)));
    return list;
}

static void set_best (json_t *o, const struct sweep *s)
{
    long best = sweep_best (s);
    struct sweep_result r = { .value = NAN, .deviation = NAN };

    if (best)
        r = point_result (s, trial_point (s, best), 0);
    set_new (o, "best_trial", best ? json_integer (best) : json_null ());
    set_new (o, "best", finite_to_json (r.value));
    set_new (o, "best_length", best ? json_integer (r.length) : json_null ());
    if (s->exp->search->config.repeats <= 1)
        return;
    set_new (o, "best_point", best ? json_integer (trial_point (s, best)) : json_null ());
    set_new (o, "best_n", json_integer (r.n));
    set_new (o, "best_deviation", finite_to_json (r.deviation));
}

json_t *experiment_json (const struct sweep *s)
{
    json_t *o = json_object ();

    set_new (o, "experiment", text_json (s->exp->name));
    set_new (o, "dir", text_json (s->dir));
    set_new (o, "id", text_json (s->id));
    set_new (o, "digest", text_json (s->digest));
    set_new (o, "description", text_json (s->exp->description));
    set_new (o, "state", text_json (sweep_state_name (s->state)));
    if (s->exp->job->is_given)
        set_new (o, "conditions", conditions_json (job_conditions (s)));
    set_new (o, "searcher", text_json (s->exp->search->searcher));
    set_new (o, "done", finite_to_json (searcher_progress (s->searcher)));
    set_new (o, "metrics", objectives_json (s));
    set_new (o, "space", space_json (s->exp));
    set_best (o, s);
    if (s->exp->search->config.repeats > 1)
        set_new (o, "points", points_json (s));
    return o;
}
