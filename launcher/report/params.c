/* SPDX-License-Identifier: Apache-2.0 */
/* The hyperparameters of a report's experiments as columns. */
#include "launcher/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/space.h"
#include "launcher/sys/alloc.h"

static struct report_param *find_report_param (const struct report_params *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp (p->list[i].name, name))
            return &p->list[i];
    return NULL;
}

static bool same_in_all (const struct report *r, const struct hparam *h)
{
    for (size_t k = 0; k < r->nsweeps; k++) {
        const struct hparam *other = hparam_find (r->sweeps[k].s->exp, h->path);
        if (!other || other->dim >= 0 || !json_equal (h->values, other->values))
            return false;
    }
    return true;
}

static void join_range (struct report_param *p, const struct param *of)
{
    double low = of->min, high = of->max;

    if (of->type == PARAM_LOG) {
        low = pow (of->base, low);
        high = pow (of->base, high);
    }
    p->low = fmin (p->low, low);
    p->high = fmax (p->high, high);
    p->log = p->log || of->type == PARAM_LOG || (of->type == PARAM_INT && of->base > 1);
    p->integer = p->integer && of->type == PARAM_INT;
}

static void add_report_param (struct report_params *p, const struct report *r,
                              const struct experiment *e, const struct hparam *h)
{
    struct report_param *to = find_report_param (p, h->path);

    if (h->dim < 0 && same_in_all (r, h))
        return;
    if (!to) {
        XGROW (p->list, p->n);
        to = &p->list[p->n++];
        *to = (struct report_param){
            .name = h->path, .integer = true, .low = INFINITY, .high = -INFINITY
        };
    }
    if (h->dim >= 0 && e->space->params[h->dim].type != PARAM_CATEGORICAL)
        join_range (to, &e->space->params[h->dim]);
    else if (h->dim >= 0 || !json_is_number (h->values))
        to->category = true;
}

static double category_number (struct report_param *p, const char *text)
{
    return (double)words_number (&p->table, text);
}

static double param_number_text (struct report_param *p, double v)
{
    char text[40];

    snprintf (text, sizeof (text), "%.6g", v);
    return category_number (p, text);
}

static double constant_value (struct report_param *p, const struct hparam *h)
{
    char *text;
    double v;

    if (!p->category)
        return json_number_value (h->values);
    if (json_is_string (h->values))
        return category_number (p, json_string_value (h->values));
    text = json_text (h->values);
    v = category_number (p, text);
    free (text);
    return v;
}

static double param_value (struct report_param *p, const struct experiment *e,
                           const struct hparam *h, const double *point)
{
    double x;

    if (h->dim < 0)
        return constant_value (p, h);
    x = point[h->dim];
    if (isnan (x))
        return NAN;
    if (e->space->params[h->dim].type == PARAM_CATEGORICAL)
        return category_number (p, h->labels[(long)x]);
    if (p->category)
        return param_number_text (p, x);
    return x;
}

/* Number the choices in the order of the file, whether they are used or not. */
static void fill_table (struct report_param *p, const struct report *r)
{
    for (size_t k = 0; k < r->nsweeps; k++) {
        const struct hparam *h = hparam_find (r->sweeps[k].s->exp, p->name);
        for (size_t i = 0; h && h->labels && h->labels[i]; i++)
            words_number (&p->table, h->labels[i]);
    }
}

static void fill_param_values (struct report_param *p, const struct report *r)
{
    p->v = xmalloc (((size_t)r->n + 1) * sizeof (*p->v));
    p->began = xmalloc (((size_t)r->n + 1) * sizeof (*p->began));
    if (p->category)
        fill_table (p, r);
    for (size_t k = 0; k < r->nsweeps; k++) {
        const struct sweep *s = r->sweeps[k].s;
        const struct hparam *h = hparam_find (s->exp, p->name);
        for (long i = 0; i < s->ntrials; i++) {
            const struct sweep_trial *t = &s->trials[i];
            long at = r->sweeps[k].first + i;
            p->v[at] = h ? param_value (p, s->exp, h, t->x) : NAN;
            p->began[at] = h && t->began ? param_value (p, s->exp, h, t->began) : p->v[at];
        }
    }
}

void params_fill (struct report_params *p, const struct report *r)
{
    *p = (struct report_params){ 0 };
    for (size_t k = 0; k < r->nsweeps; k++) {
        const struct experiment *e = r->sweeps[k].s->exp;
        for (size_t i = 0; i < e->space->nhparams; i++)
            add_report_param (p, r, e, &e->space->hparams[i]);
    }
    for (size_t i = 0; i < p->n; i++)
        fill_param_values (&p->list[i], r);
}

void params_free (struct report_params *p)
{
    for (size_t i = 0; i < p->n; i++) {
        words_free (&p->list[i].table);
        free (p->list[i].v);
        free (p->list[i].began);
    }
    free (p->list);
    *p = (struct report_params){ 0 };
}

bool param_text (const struct report_param *p, long trial, char *buf, size_t size)
{
    double v = p->v[trial];

    if (isnan (v))
        return false;
    if (p->category)
        snprintf (buf, size, "%s", p->table.list[(size_t)v]);
    else if (p->integer)
        snprintf (buf, size, "%.0f", v);
    else
        snprintf (buf, size, "%.6g", v);
    return true;
}
