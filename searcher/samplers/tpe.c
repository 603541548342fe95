/* SPDX-License-Identifier: Apache-2.0 */
/* Tree-structured Parzen estimator (Bergstra and others, NIPS 2011). */
#include <stdlib.h>
#include <string.h>

#include "searcher/models/models.h"
#include "searcher/objectives/pareto.h"
#include "searcher/samplers/samplers.h"
#include "searcher/state/state.h"

/* As in Optuna: first random trials; the best tenth, at most 25, is good; the
 * best of 24 candidates is taken.  Of more than OTHERS_MAX other trials the
 * newest and an even share of the rest are used, and of the running trials the
 * newest RUNNING_MAX.
 */
enum { STARTUP = 10, GOOD_MAX = 25, CANDIDATES = 24 };
enum { OTHERS_MAX = 400, OTHERS_NEW = 100, RUNNING_MAX = 200, TRIES = 20 };

/* Parameters that are active for the same values of the same parent are
 * modelled together, from the trials in which they are active (Optuna's
 * 'group').
 */
struct group {
    int64_t n;
    int64_t *index; /* of the parameters */
    struct dim *dims;
    double *coordinates;
    const double **good, **others; /* oldest first; running trials count as others */
    int64_t ngood, nothers;
    struct parzen *likely, *unlikely;
};

/* ---- good and others ---- */

static int64_t good_ones (int64_t n)
{
    int64_t good = (n + 9) / 10;

    return good < GOOD_MAX ? good : GOOD_MAX;
}

/* Mark the 'want' smallest values of the trials that take part; among equal
 * values the first observed is better.
 */
static void mark_smallest (const struct training_set *v, const bool *part, int64_t want, bool *good)
{
    int64_t best[GOOD_MAX], n = 0;

    for (int64_t i = 0; i < v->n; i++) {
        double y = v->value[i];
        int64_t k = n < want ? n : want - 1;
        if (!part[i] || !isfinite (y) || (n == want && (n == 0 || y >= v->value[best[k]])))
            continue;
        for (; k > 0 && y < v->value[best[k - 1]]; k--)
            best[k] = best[k - 1];
        best[k] = i;
        n += n < want;
    }
    for (int64_t i = 0; i < n; i++)
        good[best[i]] = true;
}

/* Several objectives: rank by non-domination, then by hypervolume within the
 * last front that fits in part (Y. Ozaki and others, GECCO 2020).
 */
static int mark_fronts (const struct training_set *v, const bool *part, int64_t want, bool *good)
{
    double *y = malloc ((v->n * v->m + 1) * sizeof (*y));
    int64_t *of = malloc ((2 * v->n + 1) * sizeof (*of)), *order = of + v->n;
    int64_t n = 0;
    int rv = -1;

    for (int64_t i = 0; y && of && i < v->n; i++)
        if (part[i]) {
            memcpy (y + n * v->m, v->value + i * v->m, v->m * sizeof (*y));
            of[n++] = i;
        }
    if (y && of && pareto_best (y, n, v->m, want, order) == 0) {
        for (int64_t i = 0; i < want; i++)
            good[of[order[i]]] = isfinite (y[order[i] * v->m]);
        rv = 0;
    }
    free (y);
    free (of);
    return rv;
}

static int mark_good (const struct training_set *v, const bool *part, int64_t n, bool *good)
{
    if (v->m > 1)
        return mark_fronts (v, part, good_ones (n), good);
    mark_smallest (v, part, good_ones (n), good);
    return 0;
}

/* ---- groups ---- */

static bool shares_group (const struct searcher *s, int64_t a, int64_t b)
{
    const struct dim *x = searcher_dims (s) + a, *y = searcher_dims (s) + b;

    return x->parent == y->parent && x->nwhen == y->nwhen
           && (x->nwhen == 0
               || !memcmp (searcher_at (s, x->at_when), searcher_at (s, y->at_when),
                           x->nwhen * sizeof (double)));
}

static double *take_group (const struct searcher *s, struct group *g, long trial)
{
    double *u = g->coordinates + (g->ngood + g->nothers) * g->n;

    for (int64_t i = 0; i < g->n; i++)
        u[i] = space_inner (g->dims + i, searcher_point (s, trial)[g->index[i]]);
    return u;
}

/* If there are many, choose the newest and every k-th of the others. */
static bool is_chosen (int64_t i, int64_t n)
{
    int64_t old = n - OTHERS_NEW, want = OTHERS_MAX - OTHERS_NEW;

    return n <= OTHERS_MAX || i >= old || i * want / old != (i + 1) * want / old;
}

static int fill_group (const struct searcher *s, const struct training_set *v, struct group *g,
                       const bool *part, const bool *good)
{
    int64_t others = 0, seen = 0;

    for (int64_t i = 0; i < v->n; i++)
        others += part[i] && !good[i];
    for (int64_t i = 0; i < v->n; i++)
        if (part[i] && good[i]) {
            g->good[g->ngood] = take_group (s, g, v->trial[i]);
            g->ngood++;
        } else if (part[i] && is_chosen (seen++, others)) {
            g->others[g->nothers] = take_group (s, g, v->trial[i]);
            g->nothers++;
        }
    for (int64_t i = v->npending > RUNNING_MAX ? v->npending - RUNNING_MAX : 0; i < v->npending;
         i++)
        if (!isnan (searcher_point (s, v->pending[i])[g->index[0]])) {
            g->others[g->nothers] = take_group (s, g, v->pending[i]);
            g->nothers++;
        }
    g->likely = parzen_create (g->dims, g->n, g->good, g->ngood);
    g->unlikely = parzen_create (g->dims, g->n, g->others, g->nothers);
    return g->likely && g->unlikely ? 0 : -1;
}

static void group_close (struct group *g)
{
    free (g->index);
    free (g->dims);
    free (g->coordinates);
    free (g->good);
    free (g->others);
    parzen_destroy (g->likely);
    parzen_destroy (g->unlikely);
}

/* Open the group of parameter 'first'. */
static int group_open (struct group *g, const struct searcher *s, const struct training_set *v,
                       int64_t first)
{
    int64_t rows = v->n + v->npending + 1, n = 0;
    bool *part = calloc (2 * rows, sizeof (*part)), *good = part + rows;
    int rv = -1;

    *g = (struct group){ 0 };
    g->index = malloc (s->n * sizeof (*g->index));
    g->dims = malloc (s->n * sizeof (*g->dims));
    g->good = malloc (rows * sizeof (*g->good));
    g->others = malloc (rows * sizeof (*g->others));
    for (int64_t i = first; g->index && g->dims && i < s->n; i++)
        if (shares_group (s, first, i)) {
            g->index[g->n] = i;
            g->dims[g->n++] = searcher_dims (s)[i];
        }
    g->coordinates = malloc (rows * g->n * sizeof (double));
    if (part && g->n > 0 && g->good && g->others && g->coordinates) {
        for (int64_t i = 0; i < v->n; i++)
            n += part[i] = !isnan (searcher_point (s, v->trial[i])[first]);
        rv = mark_good (v, part, n, good);
    }
    if (rv == 0)
        rv = fill_group (s, v, g, part, good);
    free (part);
    return rv;
}

/* ---- the proposal ---- */

/* The candidate with the largest ratio of good density to other density; 'u' has room for two. */
static void best_candidate (const struct group *g, struct rng *r, double *u)
{
    double *next = u + g->n, top = -INFINITY;

    for (int i = 0; i < CANDIDATES; i++) {
        double gain;
        parzen_sample (g->likely, r, next);
        gain = parzen_log (g->likely, next) - parzen_log (g->unlikely, next);
        if (i == 0 || gain > top) {
            top = gain;
            memcpy (u, next, g->n * sizeof (*u));
        }
    }
}

static bool is_group_first (const struct searcher *s, int64_t i)
{
    for (int64_t k = 0; k < i; k++)
        if (shares_group (s, k, i))
            return false;
    return true;
}

/* The state of one proposal; a group is fitted when it is first active. */
struct tpe_forest {
    const struct searcher *s;
    const struct training_set *v;
    struct rng rng;
    struct group *groups; /* by the first parameter of a group */
    bool *done;           /* the parameter has its value */
    double *u;            /* room for two points */
};

static int forest_open (struct tpe_forest *f, const struct searcher *s,
                        const struct training_set *v, long trial)
{
    *f = (struct tpe_forest){ .s = s, .v = v, .rng = { s->seed, trial, rng_key ("tpe"), 0 } };
    f->groups = calloc (s->n + 1, sizeof (*f->groups));
    f->done = malloc (s->n + 1);
    f->u = malloc ((2 * s->n + 1) * sizeof (*f->u));
    return f->groups && f->done && f->u ? 0 : -1;
}

static void forest_close (struct tpe_forest *f)
{
    for (int64_t i = 0; f->groups && i < f->s->n; i++)
        group_close (f->groups + i);
    free (f->groups);
    free (f->done);
    free (f->u);
}

static int place_group (struct tpe_forest *f, int64_t first, double *x)
{
    struct group *g = f->groups + first;

    if (!g->likely && group_open (g, f->s, f->v, first) < 0)
        return -1;
    best_candidate (g, &f->rng, f->u);
    for (int64_t i = 0; i < g->n; i++)
        x[g->index[i]] = space_outer (g->dims + i, f->u[i]);
    return 0;
}

/* Whether the group is active is not known before its parent has a value. */
enum group_state { GROUP_UNKNOWN, GROUP_INACTIVE, GROUP_ACTIVE };

static enum group_state group_state (const struct searcher *s, int64_t i, const double *x,
                                     const bool *done)
{
    const struct dim *d = searcher_dims (s) + i;

    if (d->parent < 0)
        return GROUP_ACTIVE;
    if (!done[d->parent])
        return GROUP_UNKNOWN;
    return space_waits (d, s, x[d->parent]) ? GROUP_ACTIVE : GROUP_INACTIVE;
}

static void mark_done (const struct searcher *s, int64_t first, bool *done)
{
    for (int64_t i = first; i < s->n; i++)
        done[i] = done[i] || shares_group (s, first, i);
}

static int place_all (struct tpe_forest *f, double *x)
{
    const struct searcher *s = f->s;
    bool again = true;

    memset (f->done, 0, s->n);
    for (int64_t i = 0; i < s->n; i++)
        x[i] = NAN;
    while (again) {
        again = false;
        for (int64_t i = 0; i < s->n; i++) {
            enum group_state state;
            if (f->done[i] || !is_group_first (s, i)
                || (state = group_state (s, i, x, f->done)) == GROUP_UNKNOWN)
                continue;
            if (state == GROUP_ACTIVE && place_group (f, i, x) < 0)
                return -1;
            mark_done (s, i, f->done);
            again = true;
        }
    }
    return 0;
}

static int tpe_propose (const struct searcher *s, const struct training_set *v, long trial,
                        double *x)
{
    struct tpe_forest f;
    int rv = forest_open (&f, s, v, trial);

    for (int try = 0; rv == 0 && try < TRIES; try++) {
        rv = place_all (&f, x);
        if (rv == 0 && point_allowed (s, x))
            break;
    }
    forest_close (&f);
    return rv;
}

void tpe_point (const struct searcher *s, long trial, double *x)
{
    struct training_set v;

    if (training_set_count (s) < STARTUP) {
        point_random (s, trial, x);
        return;
    }
    /* without memory for the model, use a random point */
    if (training_set_open_wide (&v, s) < 0 || tpe_propose (s, &v, trial, x) < 0)
        point_random (s, trial, x);
    training_set_close (&v);
}

const struct search_sampler sample_tpe = {
    .keeps = true,
    .point = tpe_point,
};
