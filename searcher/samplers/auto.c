/* SPDX-License-Identifier: Apache-2.0 */
/* The automatic sampler, which picks and mixes the others. */
#include "searcher/models/models.h"
#include "searcher/numeric/rng.h"
#include "searcher/samplers/samplers.h"
#include "searcher/state/state.h"

/* Full trainings: after the first points of a Sobol sequence, a Gaussian
 * process proposes points.  If it explains little of the data (its
 * leave-one-out error is large), the estimator of tpe, which needs no
 * smoothness, proposes a share of the trials instead.  In numeric spaces, an
 * evolution strategy continues from the best trials after EVOLVE_FROM of them.
 *
 * Rung by rung: the process sees extrapolated values, and a share of the trials
 * stays random, because early values favour fast learners: all trials until
 * some have reached the second rung, and a larger share until some have come
 * half-way up.
 */
enum { EVOLVE_FROM = 100, CROWD_FROM = 250 };

/* The process is not used with more active parameters than this, or more in all. */
enum { ACTIVE_MAX = 60, DIMS_MAX = 200, SAMPLE = 100 };

static const struct {
    double error, share;
} shares[] = { { 0.3, 0.125 }, { 0.6, 0.34 }, { INFINITY, 0.6 } };

static const double random_share = 0.15, blind_share = 0.33;
static const double evolve_share = 0.75, tree_share = 0.5;

static bool is_tree (const struct searcher *s)
{
    for (int64_t i = 0; i < s->n; i++)
        if (searcher_dims (s)[i].parent >= 0)
            return true;
    return false;
}

/* Without steps only choices vary: no point has neighbours that are nearer than
 * others, so that nothing is rugged.
 */
static bool is_discrete_space (const struct searcher *s)
{
    for (int64_t i = 0; i < s->n; i++)
        if (space_values (searcher_dims (s) + i) == 0)
            return false;
    return true;
}

static bool is_numeric (const struct searcher *s)
{
    for (int64_t i = 0; i < s->n; i++) {
        const struct dim *d = searcher_dims (s) + i;
        if (d->parent >= 0 || (d->type == PARAM_CATEGORICAL && d->choices > 2))
            return false;
    }
    return true;
}

static int64_t active_count (const struct searcher *s, long trial)
{
    const double *x = searcher_point (s, trial);
    int64_t n = 0;

    for (int64_t i = 0; i < s->n; i++)
        n += !isnan (x[i]);
    return n;
}

/* The first points spread over the space: their widest distance is nearly that of the space. */
static bool is_wide (const struct searcher *s)
{
    if (s->n <= ACTIVE_MAX || s->n > DIMS_MAX || !is_tree (s))
        return s->n > ACTIVE_MAX;
    for (long i = 1; i <= s->created && i <= SAMPLE; i++)
        if (active_count (s, i) > ACTIVE_MAX)
            return true;
    return false;
}

static double tpe_share (const struct searcher *s, const struct hunt *h)
{
    double error;
    int i = 0;

    if (is_tree (s))
        return tree_share;
    if (is_discrete_space (s))
        return 0;
    error = bayes_error (h);
    while (error >= shares[i].error)
        i++;
    return shares[i].share;
}

static double dice (const struct searcher *s, long trial)
{
    return rng_unit (s->seed, trial, rng_key ("auto"));
}

static void new_random_point (const struct searcher *s, long trial, double *x)
{
    for (uint64_t try = 0; try < 20; try++) {
        point_random (s, trial + (try << 36), x);
        point_mask (s, x);
        if (point_is_new (s, x))
            return;
    }
}

/* Returns false if the estimator proposes an old point. */
static bool find_tpe (const struct searcher *s, long trial, double *x)
{
    tpe_point (s, trial, x);
    return point_is_new (s, x);
}

static bool is_for_tpe (const struct searcher *s, const struct hunt *h, long trial)
{
    return s->rungs == 1 && s->objectives == 1 && dice (s, trial) < tpe_share (s, h);
}

static void auto_model_point (const struct searcher *s, struct training_set *v, long trial,
                              double *x)
{
    struct hunt *h;

    if (training_set_good (v) < 3) {
        sobol_point (s, trial, x);
        return;
    }
    h = bayes_open (s, v, trial);
    if (!(h && is_for_tpe (s, h, trial) && find_tpe (s, trial, x)) && !(h && bayes_find (h, x)))
        new_random_point (s, trial, x);
    bayes_close (h);
}

static void full_point (const struct searcher *s, long trial, double *x)
{
    const void *evolution = searcher_at (s, s->at_sample);
    struct training_set v = { 0 };

    if (s->objectives > 1 && trial > CROWD_FROM)
        nsga2_point (s, trial, x);
    else if (is_wide (s))
        tpe_point (s, trial, x);
    else if (evolve_begun (evolution) && dice (s, trial) < evolve_share)
        evolve_point (s, evolution, trial, x);
    else if (training_set_open (&v, s) < 0)
        point_random (s, trial, x);
    else
        auto_model_point (s, &v, trial, x);
    training_set_close (&v);
}

/* A larger share while nothing is known of long trainings. */
static double share_at (const struct searcher *s, int64_t rung)
{
    if (rung == 0)
        return 1;
    return 2 * rung < s->rungs - 1 ? blind_share : random_share;
}

static void rung_point (const struct searcher *s, long trial, double *x)
{
    struct training_set v = { 0 };

    if (is_wide (s) || transfer_open (&v, s) < 0 || dice (s, trial) < share_at (s, v.rung))
        new_random_point (s, trial, x);
    else
        auto_model_point (s, &v, trial, x);
    training_set_close (&v);
}

static void auto_point (const struct searcher *s, long trial, double *x)
{
    if (bayes_is_early (s, trial))
        sobol_point (s, trial, x);
    else if (s->rungs > 1)
        rung_point (s, trial, x);
    else
        full_point (s, trial, x);
}

static int64_t auto_room (const struct search_request *request)
{
    return evolve_room (request->n, request->config->population);
}

static void auto_learn (struct searcher *s, long trial)
{
    void *evolution = searcher_at (s, s->at_sample);

    if (s->rungs > 1 || s->objectives > 1 || s->n > ACTIVE_MAX || !is_numeric (s)
        || is_discrete_space (s))
        return;
    if (evolve_begun (evolution))
        evolve_learn (s, evolution, trial);
    else if (training_set_count (s) >= EVOLVE_FROM)
        evolve_begin (s, evolution);
}

const struct search_sampler sample_auto = {
    .keeps = true,
    .room = auto_room,
    .learn = auto_learn,
    .point = auto_point,
};
