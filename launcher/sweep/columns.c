/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the table of trials. */
#include "launcher/sweep/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"

/* ---- of every trial ---- */

#define GET(name, member, expression)                                                              \
    static void get_##name (const struct sweep *s, const struct result_column *c, long trial,      \
                            struct cell *cell)                                                     \
    {                                                                                              \
        const struct sweep_trial *t = sweep_trial (s, trial);                                      \
                                                                                                   \
        (void)c;                                                                                   \
        (void)t;                                                                                   \
        cell->member = expression;                                                                 \
    }

GET (trial, integer, trial)
GET (state, text, trial_state_name (s, t))
GET (length, integer, t->length)
GET (best_length, integer, trial_result (s, trial, 0).length)
GET (seconds, real, t->seconds)
GET (attempts, integer, trial_attempts (s, t))
GET (fails, integer, t->tries.failed)
GET (begin_time, real, t->begin_time)
GET (end_time, real, t->end_time)
GET (host, text, t->host)
GET (gpus, text, t->gpus)
GET (why, text, t->why)
GET (point, integer, trial_point (s, trial))
GET (repeat, integer, trial_repeat (s, trial))
GET (mean, real, point_result (s, trial_point (s, trial), 0).value)
GET (deviation, real, point_result (s, trial_point (s, trial), 0).deviation)
GET (n, integer, point_result (s, trial_point (s, trial), 0).n)

static void set_logged (struct cell *cell, double value)
{
    cell->real = value;
    if (isnan (value))
        cell->text = "nan";
}

static void get_metric (const struct sweep *s, const struct result_column *c, long trial,
                        struct cell *cell)
{
    (void)c;
    if (sweep_trial (s, trial)->length > 0)
        set_logged (cell, sweep_trial (s, trial)->metric);
}

static void get_best (const struct sweep *s, const struct result_column *c, long trial,
                      struct cell *cell)
{
    (void)c;
    if (sweep_trial (s, trial)->length > 0)
        set_logged (cell, trial_result (s, trial, 0).value);
}

static void get_value (const struct sweep *s, const struct result_column *c, long trial,
                       struct cell *cell)
{
    const double *values = trial_values (sweep_trial (s, trial));

    if (values)
        set_logged (cell, values[c->index]);
}

/* If an experiment has several metrics, each gets a column. */
static size_t further_metrics (const struct sweep *s)
{
    return sweep_metrics (s) > 1 ? sweep_metrics (s) : 0;
}

static size_t if_repeated (const struct sweep *s)
{
    return s->exp->search->config.repeats > 1;
}

static void print_two_digits (char *buf, size_t size, double value)
{
    snprintf (buf, size, "%.2g", value);
}

/* clang-format off */
/* The columns in the order of CSV, which is not that of dl show's table. */
static const struct {
    const char *name; /* NULL: of the metric */
    const char *title;
    enum column_type type;
    size_t (*count) (const struct sweep *s); /* NULL: one */
    void (*get) (const struct sweep *s, const struct result_column *c, long trial, struct cell *cell);
    enum column_place place;
    int drop;
    void (*print) (char *buf, size_t size, double value);
} fixed[] = {
    { "trial",       NULL,   COLUMN_INT,  NULL,            get_trial,       PLACE_TRIAL },
    { "state",       NULL,   COLUMN_TEXT, NULL,            get_state,       PLACE_STATE,     6 },
    { "length",      NULL,   COLUMN_INT,  NULL,            get_length,      PLACE_LENGTH,    5 },
    { "metric",      "last", COLUMN_REAL, NULL,            get_metric,      PLACE_LAST,      4 },
    { NULL,          NULL,   COLUMN_REAL, further_metrics, get_value,       PLACE_METRIC },
    { "best",        NULL,   COLUMN_REAL, NULL,            get_best,        PLACE_BEST },
    { "best_length", NULL,   COLUMN_INT,  NULL,            get_best_length },
    { "seconds",     "time", COLUMN_REAL, NULL,            get_seconds,     PLACE_TIME,      2, duration_text },
    { "attempts",    NULL,   COLUMN_INT,  NULL,            get_attempts,    PLACE_ATTEMPTS,  1 },
    { "fails",       NULL,   COLUMN_INT,  NULL,            get_fails },
    { "begin_time",  NULL,   COLUMN_REAL, NULL,            get_begin_time,  PLACE_NONE,      0, time_text },
    { "end_time",    NULL,   COLUMN_REAL, NULL,            get_end_time,    PLACE_NONE,      0, time_text },
    { "host",        NULL,   COLUMN_TEXT, NULL,            get_host },
    { "gpus",        NULL,   COLUMN_TEXT, NULL,            get_gpus },
    { "why",         NULL,   COLUMN_TEXT, NULL,            get_why,         PLACE_WHY },
    { "point",       NULL,   COLUMN_INT,  if_repeated,     get_point,       PLACE_POINT },
    { "repeat",      NULL,   COLUMN_INT,  if_repeated,     get_repeat },
    { "mean",        NULL,   COLUMN_REAL, if_repeated,     get_mean,        PLACE_MEAN },
    { "deviation",   NULL,   COLUMN_REAL, if_repeated,     get_deviation,   PLACE_DEVIATION, 0, print_two_digits },
    { "n",           NULL,   COLUMN_INT,  if_repeated,     get_n,           PLACE_N },
};
/* clang-format on */
enum { NFIXED = sizeof (fixed) / sizeof (*fixed), DROP_LOGGED = 3 };

/* ---- hyperparameters ---- */

static json_t *hparam_cell (const struct sweep *s, const struct result_column *c, long trial)
{
    return trial_hparam (s, sweep_trial (s, trial), &s->exp->space->hparams[c->index]);
}

static void get_integer (const struct sweep *s, const struct result_column *c, long trial,
                         struct cell *cell)
{
    json_t *v = hparam_cell (s, c, trial);

    cell->integer = json_integer_value (v);
    json_decref (v);
}

static void get_real (const struct sweep *s, const struct result_column *c, long trial,
                      struct cell *cell)
{
    json_t *v = hparam_cell (s, c, trial);

    cell->real = v ? number_from_json (v) : NAN;
    json_decref (v);
}

/* Show a choice that is not a string with the label that the reader of the file gave it. */
static void get_text (const struct sweep *s, const struct result_column *c, long trial,
                      struct cell *cell)
{
    const struct hparam *h = &s->exp->space->hparams[c->index];
    json_t *v = hparam_cell (s, c, trial);

    if (!v || c->text)
        cell->text = v ? c->text : NULL;
    else if (json_is_string (v))
        cell->text = json_string_value (v);
    else
        for (size_t i = 0; h->labels && h->labels[i]; i++)
            if (json_equal (v, json_array_get (h->values, i)))
                cell->text = h->labels[i];
    json_decref (v);
}

/* The narrowest type that can hold all values of the hyperparameter, and that it has none. */
static enum column_type type_of_hparam (const struct experiment *e, const struct hparam *h)
{
    const struct param *p = h->dim >= 0 ? &e->space->params[h->dim] : NULL;
    enum column_type type = COLUMN_INT;
    size_t n = p ? json_array_size (h->values) : 1;

    if (p && p->type != PARAM_CATEGORICAL)
        return p->type == PARAM_INT && !p->when ? COLUMN_INT : COLUMN_REAL;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = p ? json_array_get (h->values, i) : h->values;
        if (!json_is_number (v))
            return COLUMN_TEXT;
        if (!json_is_integer (v))
            type = COLUMN_REAL;
    }
    return p && p->when ? COLUMN_REAL : type;
}

static void add_hparam_column (struct columns *c, const struct experiment *e, size_t index)
{
    static void (*const get[]) (const struct sweep *s, const struct result_column *c, long trial,
                                struct cell *cell) = {
        [COLUMN_INT] = get_integer,
        [COLUMN_REAL] = get_real,
        [COLUMN_TEXT] = get_text,
    };
    const struct hparam *h = &e->space->hparams[index];
    struct result_column *new = &c->list[c->n++];

    *new = (struct result_column){ .name = xstrdup (h->path),
                                   .type = type_of_hparam (e, h),
                                   .hparam = true,
                                   .index = index,
                                   .place = PLACE_HPARAM };
    new->get = get[new->type];
    if (h->dim < 0 && new->type == COLUMN_TEXT)
        new->text = json_text (h->values);
}

/* ---- all ---- */

static bool name_is_taken (const struct columns *c, const char *name)
{
    for (size_t i = 0; i + 1 < c->n; i++)
        if (!strcmp (c->list[i].name, name))
            return true;
    return false;
}

/* "metric.validation_loss" for the metric "validation/loss". */
static char *metric_name (const struct columns *c, const char *metric)
{
    char *name = xasprintf ("metric.%s", metric);

    for (char *p = name; *p; p++)
        if (*p == '/')
            *p = '_';
    while (name_is_taken (c, name)) {
        char *longer = xasprintf ("%s_", name);
        free (name);
        name = longer;
    }
    return name;
}

static void add_fixed (struct columns *c, const struct sweep *s, size_t row)
{
    size_t n = fixed[row].count ? fixed[row].count (s) : 1;

    for (size_t i = 0; i < n; i++) {
        struct result_column *new = &c->list[c->n++];
        *new = (struct result_column){ .title = fixed[row].title,
                                       .type = fixed[row].type,
                                       .index = i,
                                       .place = fixed[row].place,
                                       .drop = fixed[row].drop,
                                       .get = fixed[row].get,
                                       .print = fixed[row].print };
        if (fixed[row].name)
            new->name = xstrdup (fixed[row].name);
        else {
            new->metric = true;
            new->title = sweep_metric (s, i);
            new->name = metric_name (c, new->title);
        }
    }
}

static void get_logged (const struct sweep *s, const struct result_column *c, long trial,
                        struct cell *cell)
{
    (void)s;
    if (c->logged->has[trial - 1])
        set_logged (cell, c->logged->values[trial - 1]);
}

void columns_add_logged (struct columns *c, const struct logged_metrics *l)
{
    c->list = xreallocarray (c->list, c->n + l->n, sizeof (*c->list));
    for (size_t i = 0; i < l->n; i++) {
        struct result_column *new = &c->list[c->n++];
        *new = (struct result_column){ .type = COLUMN_REAL,
                                       .title = l->list[i].name,
                                       .logged = &l->list[i],
                                       .place = PLACE_LOGGED,
                                       .drop = DROP_LOGGED,
                                       .get = get_logged };
        new->name = metric_name (c, l->list[i].name);
    }
}

void columns_create (struct columns *c, const struct sweep *s)
{
    const struct experiment *e = s->exp;

    *c = (struct columns){ 0 };
    c->list = xcalloc (NFIXED + sweep_metrics (s) + e->space->nhparams, sizeof (*c->list));
    for (size_t i = 0; i < NFIXED; i++)
        add_fixed (c, s, i);
    for (size_t i = 0; i < e->space->nhparams; i++)
        add_hparam_column (c, e, i);
}

void columns_destroy (struct columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free (c->list[i].name);
        free (c->list[i].text);
    }
    free (c->list);
    *c = (struct columns){ 0 };
}

struct result_column column_named (const char *name)
{
    size_t i = 0;

    while (!fixed[i].name || strcmp (fixed[i].name, name))
        i++;
    return (struct result_column){ .type = fixed[i].type, .get = fixed[i].get };
}

struct cell column_cell (const struct result_column *c, const struct sweep *s, long trial)
{
    struct cell cell = { .real = NAN };

    c->get (s, c, trial, &cell);
    return cell;
}

char *column_text (const struct result_column *c, const struct sweep *s, long trial)
{
    const struct hparam *h = c->hparam ? &s->exp->space->hparams[c->index] : NULL;
    struct cell cell;
    char text[32];

    if (h && h->dim >= 0)
        return cell_text (s, sweep_trial (s, trial), h);
    cell = column_cell (c, s, trial);
    if (c->type == COLUMN_INT)
        return xasprintf ("%lld", (long long)cell.integer);
    if (c->type == COLUMN_TEXT || isnan (cell.real))
        return cell.text ? xstrdup (cell.text) : NULL;
    if (!c->print)
        return xasprintf ("%.6g", cell.real);
    c->print (text, sizeof (text), cell.real);
    return xstrdup (text);
}
