/* SPDX-License-Identifier: Apache-2.0 */
/* Which parameters matter, and by which values. */
#include "launcher/report/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The length with the most results, if that is most of the trials. */
static int64_t fair_length (const struct report *r, size_t k)
{
    long best = 0, with = 0;
    int64_t length = 0;

    for (size_t i = 0; i < r->nlengths; i++) {
        long n = 0;
        for (size_t m = 0; m < r->nresults; m++)
            n += r->results[m].length == r->lengths[i] && r->trials[r->results[m].trial].sweep == k;
        if (n > best) {
            best = n;
            length = r->lengths[i];
        }
    }
    for (long i = 0; i < r->n; i++)
        with += r->trials[i].sweep == k && r->trials[i].of->nmilestones > 0;
    return best * 2 > with ? length : 0;
}

/* Of many lengths, as of searches that stop trials anywhere, none is fair. */
static void find_length (struct explanation *x, const struct report *r)
{
    x->length = r->nlengths > 1 && r->nlengths <= 64 ? fair_length (r, x->sweep) : 0;
}

static void fill_values (const struct explanation *x, const struct report *r, double *y)
{
    const struct report_sweep *of = &r->sweeps[x->sweep];

    for (long i = 0; i < of->s->ntrials; i++)
        y[i] = x->length ? NAN : report_value (r, of->first + i, 0);
    for (size_t m = 0; x->length && m < r->nresults; m++)
        if (r->results[m].length == x->length && r->trials[r->results[m].trial].sweep == x->sweep)
            y[r->results[m].trial - of->first] = r->results[m].value;
}

/* With the most trials that have a value. */
static size_t largest_sweep (const struct report *r)
{
    size_t found = 0;
    long most = -1;

    for (size_t k = 0; k < r->nsweeps; k++) {
        long n = 0;
        for (long i = 0; i < r->sweeps[k].s->ntrials; i++)
            n += isfinite (report_value (r, r->sweeps[k].first + i, 0));
        if (n > most) {
            most = n;
            found = k;
        }
    }
    return found;
}

static int find_params (struct explanation *x, const struct experiment *e,
                        const struct report_params *p)
{
    if (!(x->param = malloc ((e->nparams + 1) * sizeof (*x->param))))
        return -1;
    for (size_t d = 0; d < e->nparams; d++) {
        x->param[d] = -1;
        for (size_t i = 0; i < p->n; i++)
            if (!strcmp (p->list[i].name, e->params[d].name))
                x->param[d] = (long)i;
    }
    return 0;
}

int explain (struct explanation *x, const struct report *r, const struct report_params *p)
{
    struct sweep *s;
    const double **points;
    double *y;
    int rv = -1;

    *x = (struct explanation){ .sweep = largest_sweep (r) };
    s = r->sweeps[x->sweep].s;
    find_length (x, r);
    points = malloc (((size_t)s->ntrials + 1) * sizeof (*points));
    y = malloc (((size_t)s->ntrials + 1) * sizeof (*y));
    if (points && y && find_params (x, s->exp, p) == 0) {
        for (long i = 0; i < s->ntrials; i++)
            points[i] = s->trials[i].x;
        fill_values (x, r, y);
        rv = s->searcher ? importance_fit (&x->of, s->searcher, points, y, s->ntrials) : 1;
    }
    x->known = rv == 0;
    free (points);
    free (y);
    return rv < 0 ? -1 : 0;
}

void explanation_free (struct explanation *x)
{
    importance_free (&x->of);
    free (x->param);
    *x = (struct explanation){ 0 };
}

static const struct marginal *marginal_of (const struct explanation *x, size_t param)
{
    for (long d = 0; x->known && d < x->of.n; d++)
        if (x->param[d] == (long)param)
            return &x->of.marginals[d];
    return NULL;
}

double explained_share (const struct explanation *x, size_t param)
{
    const struct marginal *m = marginal_of (x, param);

    return m ? m->share : NAN;
}

static json_t *list_json (const double *v, int n)
{
    json_t *list = json_array ();

    for (int i = 0; i < n; i++)
        json_array_append_new (list, rounded_to_json (v[i], 5));
    return list;
}

/* The choices of the first experiment have the table's numbers. */
static bool can_draw (const struct explanation *x, const struct report_param *p)
{
    return !p->category || x->sweep == 0;
}

void explained_put (const struct explanation *x, const struct report_params *p, size_t param,
                    json_t *o)
{
    const struct marginal *m = marginal_of (x, param);

    if (!m)
        return;
    json_object_set_new (o, "share", rounded_to_json (m->share, 3));
    if (!can_draw (x, &p->list[param]))
        return;
    json_object_set_new (o, "at", list_json (m->x, m->n));
    json_object_set_new (o, "mean", list_json (m->mean, m->n));
}

json_t *explained_surfaces (const struct explanation *x, const struct report_params *p)
{
    json_t *list = json_array ();

    for (int i = 0; x->known && i < x->of.nsurfaces; i++) {
        const struct surface *u = &x->of.surfaces[i];
        long a = x->param[u->a], b = x->param[u->b];
        if (a < 0 || b < 0 || !can_draw (x, &p->list[a]) || !can_draw (x, &p->list[b]))
            continue;
        json_array_append_new (
            list, json_pack ("{s:i, s:i, s:o, s:o, s:o, s:o}", "a", (int)a, "b", (int)b, "share",
                             rounded_to_json (u->share, 3), "x", list_json (u->xa, u->na), "y",
                             list_json (u->xb, u->nb), "v", list_json (u->mean, u->na * u->nb)));
    }
    return list;
}
