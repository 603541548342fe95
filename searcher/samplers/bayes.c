/* SPDX-License-Identifier: Apache-2.0 */
/* Bayesian optimisation: the point of largest expected improvement. */
#include <stdlib.h>

#include "searcher/models/models.h"
#include "searcher/samplers/samplers.h"
#include "searcher/state/state.h"

enum { START_MIN = 5, START_MAX = 14 };

/* Candidates: random points, points near the best ones at three distances, and
 * these with one coordinate drawn again; the best candidates are then perturbed
 * a few times.
 */
enum { ANYWHERE = 400, NEAR = 80, ANEW = 60, BEST = 6, KEPT = 8, ROUNDS = 7, MOVES = 12 };
enum { CANDIDATES = ANYWHERE + 3 * NEAR + ANEW, POOL = KEPT * (MOVES + 1) };

/* Candidates are positions in the unit cube, which stand for values. */
struct hunt {
    const struct searcher *s;
    struct surrogate t;
    struct improve a;
    struct rng rng;
    int64_t d;
    double *cube, *score, *x;
};

void bayes_close (struct hunt *h)
{
    if (!h)
        return;
    improve_close (&h->a);
    surrogate_close (&h->t);
    free (h->cube);
    free (h);
}

static int prepare_hunt (struct hunt *h, const struct searcher *s, const struct training_set *v)
{
    int64_t rows = CANDIDATES > POOL ? CANDIDATES : POOL;

    if (surrogate_open (&h->t, s, v) < 0)
        return -1;
    surrogate_believe (&h->t);
    if (improve_open (&h->a, &h->t, &h->rng) < 0)
        return -1;
    h->cube = malloc ((rows * (h->d + 1) + h->d) * sizeof (double));
    if (!h->cube)
        return -1;
    h->score = h->cube + rows * h->d;
    h->x = h->score + rows;
    return 0;
}

struct hunt *bayes_open (const struct searcher *s, const struct training_set *v, long trial)
{
    struct hunt *h = calloc (1, sizeof (*h));

    if (!h)
        return NULL;
    h->s = s;
    h->d = s->n;
    h->rng = (struct rng){ s->seed, trial, rng_key ("gp"), 0 };
    if (prepare_hunt (h, s, v) == 0)
        return h;
    bayes_close (h);
    return NULL;
}

double bayes_error (const struct hunt *h)
{
    return gp_error (h->t.gp[0]);
}

static void values_at (const struct hunt *h, const double *cube, double *x)
{
    const struct dim *dims = searcher_dims (h->s);

    for (int64_t k = 0; k < h->d; k++)
        x[k] = space_at (dims + k, cube[k] < 1 ? cube[k] : 1);
    point_mask (h->s, x);
}

static double score_of_cube (const struct hunt *h, const double *cube)
{
    values_at (h, cube, h->x);
    return improve_log (&h->a, h->x);
}

static double reflect (double u)
{
    u = fabs (u);
    u = u > 1 ? 2 - u : u;
    return u < 0 ? 0 : u < 1 ? u : 1 - 1e-9;
}

/* Perturb at least one coordinate. */
static void perturb (struct hunt *h, const double *from, double by, double share, double *to)
{
    int64_t sure = rng_pick (&h->rng, h->d);

    for (int64_t k = 0; k < h->d; k++) {
        bool moves = rng_next (&h->rng) < share || k == sure;
        double u = from[k];
        if (moves)
            u += by * rng_gauss (&h->rng);
        to[k] = reflect (u);
    }
}

/* One of the best points, as a position in the cube. */
static void some_best (struct hunt *h, double *cube)
{
    const struct dim *dims = searcher_dims (h->s);
    int64_t most = h->t.n < BEST ? h->t.n : BEST;
    int64_t i = h->t.order[rng_pick (&h->rng, most)];
    const double *x = searcher_point (h->s, surrogate_trial (&h->t, i));

    for (int64_t k = 0; k < h->d; k++)
        cube[k] = isnan (x[k]) ? rng_next (&h->rng) : space_part (dims + k, x[k]);
}

static void make_candidates (struct hunt *h)
{
    static const double distance[] = { 0.15, 0.05, 0.015 };
    double share = fmax (0.3, 1.0 / h->d), *c = h->cube;

    for (int i = 0; i < ANYWHERE; i++, c += h->d)
        for (int64_t k = 0; k < h->d; k++)
            c[k] = rng_next (&h->rng);
    for (int i = 0; i < 3 * NEAR; i++, c += h->d) {
        some_best (h, c);
        perturb (h, c, distance[i / NEAR], share, c);
    }
    for (int i = 0; i < ANEW; i++, c += h->d) {
        some_best (h, c);
        double *one = c + rng_pick (&h->rng, h->d);
        *one = rng_next (&h->rng);
    }
    for (int i = 0; i < CANDIDATES; i++)
        h->score[i] = score_of_cube (h, h->cube + i * h->d);
}

/* Move the best of n candidates to the front, best first. */
static void keep_best (struct hunt *h, int64_t n, int64_t kept)
{
    for (int64_t i = 0; i < kept && i < n; i++) {
        int64_t best = i;
        double v;
        for (int64_t k = i + 1; k < n; k++)
            if (h->score[k] > h->score[best])
                best = k;
        for (int64_t k = 0; best != i && k < h->d; k++) {
            double u = h->cube[i * h->d + k];
            h->cube[i * h->d + k] = h->cube[best * h->d + k];
            h->cube[best * h->d + k] = u;
        }
        v = h->score[i];
        h->score[i] = h->score[best];
        h->score[best] = v;
    }
}

static void improve_candidates (struct hunt *h)
{
    double share = fmax (0.4, 1.0 / h->d), by = 0.1;

    for (int round = 0; round < ROUNDS; round++, by *= 0.6) {
        for (int64_t i = 0; i < KEPT * MOVES; i++) {
            double *to = h->cube + (KEPT + i) * h->d;
            perturb (h, h->cube + i / MOVES * h->d, by, share, to);
            h->score[KEPT + i] = score_of_cube (h, to);
        }
        keep_best (h, POOL, KEPT);
    }
}

/* Take the best candidate that is not the point of a trial. */
static bool take_best (struct hunt *h, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        if (h->score[i] == -INFINITY)
            continue;
        values_at (h, h->cube + i * h->d, x);
        if (point_is_new (h->s, x))
            return true;
    }
    return false;
}

bool bayes_find (struct hunt *h, double *x)
{
    make_candidates (h);
    keep_best (h, CANDIDATES, KEPT);
    improve_candidates (h);
    if (take_best (h, KEPT, x))
        return true;
    make_candidates (h);
    keep_best (h, CANDIDATES, CANDIDATES);
    return take_best (h, CANDIDATES, x);
}

bool bayes_is_early (const struct searcher *s, long trial)
{
    long n = s->n < START_MIN ? START_MIN : s->n > START_MAX ? START_MAX : s->n;

    return s->n == 0 || trial + s->known <= n;
}

static void bayes_model_point (const struct searcher *s, const struct training_set *v, long trial,
                               double *x)
{
    struct hunt *h = bayes_open (s, v, trial);

    if (!h || !bayes_find (h, x))
        point_random (s, trial, x);
    bayes_close (h);
}

static void gp_point (const struct searcher *s, long trial, double *x)
{
    struct training_set v;

    if (bayes_is_early (s, trial)) {
        sobol_point (s, trial, x);
        return;
    }
    /* without a model, use a random point */
    if (training_set_open (&v, s) < 0)
        point_random (s, trial, x);
    else if (training_set_good (&v) < 3)
        sobol_point (s, trial, x);
    else
        bayes_model_point (s, &v, trial, x);
    training_set_close (&v);
}

const struct search_sampler sample_gp = {
    .keeps = true,
    .point = gp_point,
};
