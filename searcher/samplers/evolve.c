/* SPDX-License-Identifier: Apache-2.0 */
/* Points from CMA-ES. */
#include <stdlib.h>

#include "searcher/models/models.h"
#include "searcher/numeric/rng.h"
#include "searcher/samplers/samplers.h"
#include "searcher/state/state.h"

/* With more dimensions there is no covariance matrix, and points are random. */
enum { DIMS_MAX = 200, TRIES = 50 };

/* The state of cmaes.c follows. */
struct evolution {
    int64_t begun;
};

static void *strategy (void *evolution)
{
    return (struct evolution *)evolution + 1;
}

int64_t evolve_room (size_t n, int64_t population)
{
    if (n == 0 || n > DIMS_MAX)
        return sizeof (struct evolution);
    return sizeof (struct evolution) + cmaes_size (n, population);
}

static bool is_possible (const struct searcher *s)
{
    return s->n > 0 && s->n <= DIMS_MAX;
}

/* Discrete values whose cells in the cube differ in width count as continuous. */
static void set_steps (const struct searcher *s, int64_t *steps)
{
    const struct dim *d = searcher_dims (s);

    for (int64_t i = 0; i < s->n; i++, d++)
        steps[i] = d->deviation > 0 || (d->type == PARAM_INT && d->base > 1) ? 0 : space_values (d);
}

/* Inactive parameters are set to the middle. */
static void to_cube (const struct searcher *s, const double *x, double *u)
{
    const struct dim *d = searcher_dims (s);

    for (int64_t i = 0; i < s->n; i++)
        u[i] = isnan (x[i]) ? 0.5 : space_part (d + i, x[i]);
}

/* Trials with a value, the best first. */
struct sorted {
    double value;
    long trial;
};

static int compare_scores (const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

static int64_t sort_trials (const struct searcher *s, struct sorted *list)
{
    int64_t n = 0;

    for (long i = searcher_first (s); i <= s->created; i++)
        if (isfinite (searcher_value (s, i)))
            list[n++] = (struct sorted){ searcher_value (s, i), i };
    qsort (list, n, sizeof (*list), compare_scores);
    return n;
}

/* A sixth of each range, as in other libraries: a wider start finds half as
 * much on BBOB with 100 trials.
 */
static void start_at (const struct searcher *s, void *evolution, const int64_t *steps,
                      const double *mean)
{
    cmaes_start (strategy (evolution), s->n, steps, mean, 1.0 / 6, s->population);
}

static void begin_evolution (const struct searcher *s, void *evolution, struct sorted *list,
                             double *u)
{
    int64_t steps[DIMS_MAX], n = sort_trials (s, list);
    double middle[DIMS_MAX];

    set_steps (s, steps);
    for (int64_t i = 0; i < s->n; i++)
        middle[i] = 0.5;
    for (int64_t i = 0; i < n; i++)
        to_cube (s, searcher_point (s, list[i].trial), u + i * s->n);
    if (n > 0)
        cmaes_warm_start (strategy (evolution), s->n, steps, u, n, s->population);
    else
        start_at (s, evolution, steps, middle);
}

void evolve_begin (const struct searcher *s, void *evolution)
{
    int64_t most = s->created + s->known + 1;
    struct sorted *list;
    double *u;

    if (!is_possible (s))
        return;
    list = malloc (most * sizeof (*list));
    u = malloc (most * s->n * sizeof (*u));
    if (list && u) {
        begin_evolution (s, evolution, list, u);
        ((struct evolution *)evolution)->begun = 1;
    }
    free (list);
    free (u);
}

bool evolve_begun (const void *evolution)
{
    return ((const struct evolution *)evolution)->begun;
}

/* Restart from a random point: the old region has no more to give. */
static void begin_anew (const struct searcher *s, void *evolution, long trial)
{
    struct rng r = { s->seed, trial, rng_key ("cmaes restart"), 0 };
    int64_t steps[DIMS_MAX];
    double mean[DIMS_MAX];

    set_steps (s, steps);
    for (int64_t i = 0; i < s->n; i++)
        mean[i] = rng_next (&r);
    start_at (s, evolution, steps, mean);
}

void evolve_learn (const struct searcher *s, void *evolution, long trial)
{
    double u[DIMS_MAX];

    if (!is_possible (s) || !evolve_begun (evolution) || isnan (searcher_value (s, trial)))
        return;
    to_cube (s, searcher_point (s, trial), u);
    cmaes_observe (strategy (evolution), u, searcher_value (s, trial));
    if (cmaes_should_stop (strategy (evolution)))
        begin_anew (s, evolution, trial);
}

void evolve_point (const struct searcher *s, const void *evolution, long trial, double *x)
{
    struct rng r = { s->seed, trial, rng_key ("cmaes"), 0 };
    const struct dim *d = searcher_dims (s);
    double u[DIMS_MAX];

    if (!is_possible (s) || !evolve_begun (evolution)) {
        point_random (s, trial, x);
        return;
    }
    for (int try = 0; try < TRIES; try++) {
        cmaes_ask (strategy ((void *)evolution), &r, u);
        for (int64_t i = 0; i < s->n; i++)
            x[i] = space_at (d + i, u[i] < 1 ? u[i] : 1);
        point_mask (s, x);
        if (point_allowed (s, x))
            return;
    }
}

static int64_t cmaes_room (const struct search_request *request)
{
    return evolve_room (request->n, request->config->population);
}

static void cmaes_begin (struct searcher *s)
{
    evolve_begin (s, searcher_at (s, s->at_sample));
}

static void cmaes_learn (struct searcher *s, long trial)
{
    evolve_learn (s, searcher_at (s, s->at_sample), trial);
}

static void cmaes_point (const struct searcher *s, long trial, double *x)
{
    evolve_point (s, searcher_at (s, s->at_sample), trial, x);
}

const struct search_sampler sample_cmaes = {
    .keeps = true,
    .room = cmaes_room,
    .start = cmaes_begin,
    .learn = cmaes_learn,
    .point = cmaes_point,
};
