/* SPDX-License-Identifier: Apache-2.0 */
/* The trials that a user selected, as text, JSON or CSV. */
#include "launcher/cmd/show_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/export.h"
#include "launcher/config/space_json.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/json_number.h"

/* ---- text ---- */

static void fill_hparam (struct libscols_line *line, size_t column, const struct sweep *s,
                         const struct result_column *c, long trial)
{
    const struct hparam *h = &s->exp->hparams[c->index];
    struct cell cell = column_cell (c, s, trial);
    char *text = h->dim >= 0 ? cell_text (s, sweep_trial (s, trial), h) : NULL;

    if (text || h->dim >= 0)
        table_set (line, column, "%s", text ? text : "-");
    else if (c->type == COLUMN_TEXT)
        table_set (line, column, "%s", cell.text ? cell.text : "-");
    else if (c->type == COLUMN_INT)
        table_set (line, column, "%lld", (long long)cell.integer);
    else
        table_set (line, column, "%.6g", cell.real);
    free (text);
}

static void fill_cell (struct libscols_line *line, size_t column, const struct sweep *s,
                       const struct result_column *c, long trial)
{
    struct cell cell = column_cell (c, s, trial);
    char text[32];

    if (c->hparam)
        fill_hparam (line, column, s, c, trial);
    else if (c->type == COLUMN_TEXT)
        table_set (line, column, "%s", cell.text ? cell.text : "-");
    else if (c->type == COLUMN_INT)
        table_set (line, column, "%lld", (long long)cell.integer);
    else if (isnan (cell.real))
        table_set (line, column, "%s", cell.text ? cell.text : "-");
    else if (!strcmp (c->name, "seconds")) {
        duration_text (text, sizeof (text), cell.real);
        table_set (line, column, "%s", text);
    } else if (!strcmp (c->name, "begin_time") || !strcmp (c->name, "end_time")) {
        time_text (text, sizeof (text), cell.real);
        table_set (line, column, "%s", text);
    } else
        table_set (line, column, "%.6g", cell.real);
}

void show_columns (const struct sweep *s, const struct selection *sel)
{
    const struct columns *c = &sel->shown;
    struct table_column *heads = calloc (c->n + 1, sizeof (*heads));
    struct libscols_table *tb;

    for (size_t i = 0; heads && i < c->n; i++)
        heads[i] = (struct table_column){ c->list[i].logged ? c->list[i].text : c->list[i].name,
                                          c->list[i].type != COLUMN_TEXT };
    if (!heads || !(tb = table_create ("trials", heads, false))) {
        free (heads);
        return;
    }
    for (long i = 0; i < sel->n; i++) {
        struct libscols_line *line = scols_table_new_line (tb, NULL);
        for (size_t k = 0; line && k < c->n; k++)
            fill_cell (line, k, s, &c->list[k], sel->trials[i]);
    }
    table_print (tb);
    scols_unref_table (tb);
    free (heads);
}

/* ---- CSV ---- */

void show_csv (const struct sweep *s, const struct selection *sel)
{
    csv_put_names (stdout, &sel->shown, false);
    for (long i = 0; i < sel->n; i++)
        csv_put_trial (stdout, s, &sel->shown, sel->trials[i], false);
}

/* ---- JSON ---- */

static void set_new (json_t *o, const char *name, json_t *v)
{
    json_object_set_new (o, name, v);
}

/* JSON has no NaN and no infinity: a field is a number or null. */
static json_t *real (double v)
{
    return finite_to_json (v);
}

static json_t *text (const char *v)
{
    return v ? json_string (v) : json_null ();
}

static json_t *cell_json (enum column_type type, const struct cell *cell)
{
    return type == COLUMN_INT    ? json_integer (cell->integer)
           : type == COLUMN_REAL ? real (cell->real)
                                 : text (cell->text);
}

/* As the trainer has it: a boolean, a list, an integer as such. */
static json_t *shown_hparam (const struct sweep *s, const struct result_column *c, long trial)
{
    json_t *v = trial_hparam (s, sweep_trial (s, trial), &s->exp->hparams[c->index]);

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
    set_new (o, "value", real (p.value));
    set_new (o, "age", real (progress_age (&p)));
    set_new (o, "rate", real (progress_rate (&p)));
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
            set_new (o, col->name, cell_json (col->type, &cell));
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
        set_new (mean, sweep_metric (s, i), real (r.value));
        set_new (deviation, sweep_metric (s, i), real (r.deviation));
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

static json_t *trials_json (const struct sweep *s, const struct selection *sel)
{
    bool *front = sweep_metrics (s) > 1 ? sweep_front (s) : NULL;
    json_t *list = json_array ();

    for (long i = 0; i < sel->n; i++) {
        json_t *o = trial_json (s, &sel->shown, sel->trials[i]);
        if (front)
            set_new (o, "pareto", json_boolean (front[sel->trials[i] - 1]));
        json_array_append_new (list, o);
    }
    free (front);
    return list;
}

static json_t *metrics_json (const struct sweep *s)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < sweep_metrics (s); i++)
        json_array_append_new (
            list, json_pack ("{s:s, s:b}", "name", sweep_metric (s, i), "smaller_is_better",
                             i ? !s->exp->search.larger[i] : s->exp->search.smaller_is_better));
    return list;
}

void print_json (json_t *v)
{
    json_put (v, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (v);
}

static void set_best (json_t *o, const struct sweep *s)
{
    long best = sweep_best (s);
    struct sweep_result r = { .value = NAN, .deviation = NAN };

    if (best)
        r = point_result (s, trial_point (s, best), 0);
    set_new (o, "best_trial", best ? json_integer (best) : json_null ());
    set_new (o, "best", real (r.value));
    set_new (o, "best_length", best ? json_integer (r.length) : json_null ());
    if (s->exp->search.repeats <= 1)
        return;
    set_new (o, "best_point", best ? json_integer (trial_point (s, best)) : json_null ());
    set_new (o, "best_n", json_integer (r.n));
    set_new (o, "best_deviation", real (r.deviation));
}

void show_json (const struct sweep *s, const struct selection *sel)
{
    json_t *o = json_object ();

    set_new (o, "experiment", text (s->exp->name));
    set_new (o, "dir", text (s->dir));
    set_new (o, "state", text (sweep_state_name (s->state)));
    set_new (o, "searcher", text (s->exp->searcher_name));
    set_new (o, "done", real (searcher_progress (s->searcher)));
    set_new (o, "metrics", metrics_json (s));
    set_new (o, "space", space_json (s->exp));
    set_best (o, s);
    if (s->exp->search.repeats > 1)
        set_new (o, "points", points_json (s));
    set_new (o, "trials", trials_json (s, sel));
    print_json (o);
}
