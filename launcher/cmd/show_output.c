/* SPDX-License-Identifier: Apache-2.0 */
/* The trials that a user selected, as text, JSON or CSV. */
#include "launcher/cmd/show_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/export.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/experiment_json.h"
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

static json_t *selected_trials_json (const struct sweep *s, const struct selection *sel)
{
    bool *front = sweep_metrics (s) > 1 ? sweep_front (s) : NULL;
    json_t *list = json_array ();

    for (long i = 0; i < sel->n; i++) {
        json_t *o = trial_json (s, &sel->shown, sel->trials[i]);
        if (front)
            json_object_set_new (o, "pareto", json_boolean (front[sel->trials[i] - 1]));
        json_array_append_new (list, o);
    }
    free (front);
    return list;
}

void print_conditions (const struct conditions *c)
{
    enum life_condition order[LIFE_CONDITIONS];
    int known = conditions_order (c, order);

    for (int i = 0; i < known; i++) {
        const struct condition_entry *e = &c->list[order[i]];
        char when[32];
        time_text (when, sizeof (when), e->time);
        printf ("  %-11s %s %s  %s%s%s\n", condition_names[order[i]],
                e->is_true ? "since" : "until", when, e->reason, e->message ? ": " : "",
                e->message ? e->message : "");
    }
}

void print_json (json_t *v)
{
    json_put (v, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (v);
}

void show_json (const struct sweep *s, const struct selection *sel)
{
    json_t *o = experiment_json (s);

    json_object_set_new (o, "trials", selected_trials_json (s, sel));
    print_json (o);
}
