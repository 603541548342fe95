/* SPDX-License-Identifier: Apache-2.0 */
/* NSGA-II, a genetic algorithm for several objectives. */
#include <stdlib.h>

#include "searcher/models/models.h"
#include "searcher/numeric/rng.h"
#include "searcher/objectives/pareto.h"
#include "searcher/samplers/samplers.h"
#include "searcher/state/state.h"

/* K. Deb and others, IEEE Transactions on Evolutionary Computation 6, 2002, but
 * without generations, because trials end at any time: each child has two
 * parents from the best 'population' of the newest NEW_MAX trials.
 */
enum { POPULATION = 50, NEW_MAX = 2000, TRIES = 20 };

static const double crossed = 0.9, cross_power = 15, mutate_power = 20;

struct nest {
    const struct searcher *s;
    struct training_set v;
    int64_t from, n; /* trials of the training set that take part */
    int64_t *rank, *parent, nparents;
    double *lonely;
    struct rng rng;
};

static int64_t population_size (const struct searcher *s)
{
    return s->population > 0 ? s->population : POPULATION;
}

static bool is_better (const struct nest *t, int64_t a, int64_t b)
{
    if (t->rank[a] != t->rank[b])
        return t->rank[a] < t->rank[b];
    if (t->lonely[a] != t->lonely[b])
        return t->lonely[a] > t->lonely[b];
    return a > b;
}

/* Insertion into a sorted list: few of many are kept. */
static void choose_parents (struct nest *t)
{
    int64_t most = population_size (t->s);

    for (int64_t i = 0; i < t->n; i++) {
        int64_t k = t->nparents < most ? t->nparents++ : most;
        if (k == most && !is_better (t, i, t->parent[--k]))
            continue;
        for (; k > 0 && is_better (t, i, t->parent[k - 1]); k--)
            t->parent[k] = t->parent[k - 1];
        t->parent[k] = i;
    }
}

static int nest_open (struct nest *t, const struct searcher *s, long trial)
{
    const double *y;

    *t = (struct nest){ .s = s, .rng = { s->seed, trial, rng_key ("nsga2"), 0 } };
    if (training_set_open (&t->v, s) < 0)
        return -1;
    t->from = t->v.n > NEW_MAX ? t->v.n - NEW_MAX : 0;
    t->n = t->v.n - t->from;
    t->rank = malloc ((t->n + 1) * sizeof (*t->rank));
    t->parent = malloc ((population_size (s) + 1) * sizeof (*t->parent));
    t->lonely = malloc ((t->n + 1) * sizeof (*t->lonely));
    y = t->v.value + t->from * t->v.m;
    if (!t->rank || !t->parent || !t->lonely || pareto_ranks (y, t->n, t->v.m, t->rank) < 0
        || pareto_crowding (y, t->n, t->v.m, t->rank, t->lonely) < 0)
        return -1;
    choose_parents (t);
    return 0;
}

static void nest_close (struct nest *t)
{
    training_set_close (&t->v);
    free (t->rank);
    free (t->parent);
    free (t->lonely);
}

/* Binary tournament. */
static const double *tournament (struct nest *t)
{
    int64_t a = t->parent[rng_pick (&t->rng, t->nparents)];
    int64_t b = t->parent[rng_pick (&t->rng, t->nparents)];

    return searcher_point (t->s, t->v.trial[t->from + (is_better (t, a, b) ? a : b)]);
}

static double reflect_once (double u)
{
    u = fabs (u);
    u = u > 1 ? 2 - u : u;
    return u < 0 ? 0 : u > 1 ? 1 : u;
}

/* Simulated binary crossover (K. Deb and R. B. Agrawal, 1995). */
static double cross (struct nest *t, double a, double b)
{
    double u = rng_next (&t->rng);
    double spread =
        u < 0.5 ? pow (2 * u, 1 / (cross_power + 1)) : pow (1 / (2 - 2 * u), 1 / (cross_power + 1));

    spread *= rng_next (&t->rng) < 0.5 ? 1 : -1;
    return reflect_once ((a + b) / 2 + spread * (a - b) / 2);
}

/* Polynomial mutation (K. Deb and S. Agrawal, 1999). */
static double mutate (struct nest *t, double a)
{
    double u = rng_next (&t->rng);
    double by = u < 0.5 ? pow (2 * u, 1 / (mutate_power + 1)) - 1
                        : 1 - pow (2 - 2 * u, 1 / (mutate_power + 1));

    return reflect_once (a + by);
}

/* The value of one parameter; NaN if the parent did not have it. */
static double inherit_value (struct nest *t, const struct dim *d, double a, double b, bool mates)
{
    bool changes = rng_next (&t->rng) * t->s->n < 1;
    double part;

    if (isnan (a)
        || (mates && !isnan (b) && rng_next (&t->rng) < 0.5 && d->type == PARAM_CATEGORICAL))
        a = b;
    if (isnan (a) || (changes && d->type == PARAM_CATEGORICAL))
        return space_at (d, rng_next (&t->rng));
    if (d->type == PARAM_CATEGORICAL)
        return a;
    part = space_part (d, a);
    if (mates && !isnan (b))
        part = cross (t, part, space_part (d, b));
    if (changes)
        part = mutate (t, part);
    return space_at (d, part);
}

static void breed (struct nest *t, double *x)
{
    const struct dim *dims = searcher_dims (t->s);

    for (int try = 0; try < TRIES; try++) {
        const double *a = tournament (t), *b = tournament (t);
        bool mates = rng_next (&t->rng) < crossed;
        for (int64_t i = 0; i < t->s->n; i++)
            x[i] = inherit_value (t, dims + i, a[i], b[i], mates);
        point_mask (t->s, x);
        if (point_allowed (t->s, x))
            return;
    }
}

void nsga2_point (const struct searcher *s, long trial, double *x)
{
    struct nest t;

    if (training_set_count (s) < population_size (s)) {
        sobol_point (s, trial, x);
        return;
    }
    if (nest_open (&t, s, trial) < 0)
        point_random (s, trial, x);
    else
        breed (&t, x);
    nest_close (&t);
}

const struct search_sampler sample_nsga2 = {
    .keeps = true,
    .point = nsga2_point,
};
