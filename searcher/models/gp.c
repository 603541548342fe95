/* SPDX-License-Identifier: Apache-2.0 */
/* Fit a Gaussian process by its most probable hyperparameters, and predict. */
#include "searcher/models/gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/models/gp_internal.h"
#include "searcher/numeric/numeric.h"

/* With more than PART points, a part of that size is fitted first, then all points in FEW steps. */
enum { STEPS = 30, PART = 40, FEW = 4 };

/* A warp is kept only if it gains this much in the log posterior for each of
 * its parameters (H. Akaike, IEEE Trans. Automatic Control 19, 1974).
 */
static const double gain_each = 1;

/* Bound of |log a| and |log b|. */
static const double warp_most = 2;

struct gp *gp_create (int64_t max, int64_t d, const bool *category)
{
    struct gp *gp = calloc (1, sizeof (*gp));
    int64_t pairs = max * (max - 1) / 2, t = 3 * d + 1;
    /* clang-format off */
    const int64_t sizes[] = {
        max * d, max * d, max * d, max * d, max, max,
        t, t, t, d, d, d, d, pairs * d, pairs, pairs,
        max * max, max * max, max, max,
        bfgs_room (d + 1), bfgs_room (t) + 2 * t
    };
    double **parts[] = {
        &gp->u, &gp->z, &gp->by_a, &gp->by_b, &gp->y, &gp->extra,
        &gp->theta, &gp->low, &gp->high,
        &gp->a, &gp->b, &gp->point, &gp->scale,
        &gp->pair, &gp->r2, &gp->slope,
        &gp->l, &gp->inv, &gp->alpha, &gp->k,
        &gp->search, &gp->search_warp
    };
    /* clang-format on */
    int64_t total = 1;
    double *at;

    if (!gp)
        return NULL;
    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++)
        total += sizes[i];
    if (!(at = malloc (total * sizeof (double)))) {
        free (gp);
        return NULL;
    }
    gp->max = max;
    gp->d = d;
    gp->category = category;
    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++) {
        *parts[i] = at;
        at += sizes[i];
    }
    return gp;
}

void gp_destroy (struct gp *gp)
{
    if (gp) {
        free (gp->u);
        free (gp);
    }
}

void gp_keep_straight (struct gp *gp)
{
    gp->straight = true;
}

/* ---- fit ---- */

static void set_start (struct gp *gp)
{
    double mean = gp_usual_scale (gp);

    for (int64_t k = 0; k <= gp->d; k++) {
        gp->low[k] = k < gp->d ? log (0.03) : log (1e-6);
        gp->high[k] = k < gp->d ? log (20) : log (0.5);
        gp->theta[k] = k < gp->d ? fmin (mean, gp->high[k]) : log (1e-3);
    }
    for (int64_t k = gp->d + 1; k < gp_parameters (gp, true); k++) {
        gp->low[k] = -warp_most;
        gp->high[k] = warp_most;
        gp->theta[k] = 0;
    }
    for (int64_t k = 0; k < gp->d; k++)
        gp->a[k] = gp->b[k] = 1;
    gp->warped = false;
}

struct data {
    const double *z, *y, *extra;
};

static void load_data (struct gp *gp, const int64_t *which, int64_t n, const struct data *data)
{
    gp->n = n;
    for (int64_t i = 0; i < n; i++) {
        int64_t from = which ? which[i] : i;
        for (int64_t k = 0; k < gp->d; k++)
            gp->u[k * gp->max + i] = data->z[from * gp->d + k];
        gp->y[i] = data->y[from];
        gp->extra[i] = data->extra ? data->extra[from] : 0;
    }
    gp_set_points (gp, gp->theta);
}

/* Choose every k-th point by value, including the best and the worst. */
static void choose_part (const double *y, int64_t n, int64_t *part, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t k = i;
        for (; k > 0 && y[order[k - 1]] > y[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    for (int64_t i = 0; i < PART; i++)
        part[i] = order[i * (n - 1) / (PART - 1)];
}

/* Fewer steps are enough to see whether a warp gains enough than to find its best shape. */
static struct bfgs optimiser (struct gp *gp, bool warps)
{
    return (struct bfgs){ .n = gp_parameters (gp, warps),
                          .low = gp->low,
                          .high = gp->high,
                          .f = gp_energy,
                          .arg = gp,
                          .tolerance = warps ? 0.05 : 1e-4,
                          .room = warps ? gp->search_warp : gp->search };
}

/* The gain that the warps must reach. */
static double gain_due (const struct gp *gp)
{
    double parameters = 0;

    for (int64_t k = 0; k < gp->d; k++)
        parameters += gp->category[k] ? 0 : 2;
    return gain_each * parameters;
}

/* Starting from the best process without warps, optimise all parameters if the
 * slope there promises enough gain with only the prior holding the warps back.
 */
static void fit_warps (struct gp *gp)
{
    const struct bfgs b = optimiser (gp, true);
    double *theta = gp->search_warp + bfgs_room (b.n), *g = theta + b.n;
    double plain, due = gain_due (gp);

    memcpy (theta, gp->theta, b.n * sizeof (*theta));
    plain = gp_posterior (gp, theta, g);
    if (!isfinite (plain) || gp_promise (gp, g) <= due)
        return;
    gp->bending = true;
    bfgs_reset (&b);
    bfgs_minimise (&b, theta, STEPS);
    gp->bending = false;
    if (plain - gp_posterior (gp, theta, g) > due) {
        gp->warped = true;
        memcpy (gp->theta, theta, b.n * sizeof (*theta));
    }
}

/* The warps found for a part stay as they are. */
static void fit_many (struct gp *gp, const struct data *data, int64_t n)
{
    const struct bfgs b = optimiser (gp, false);
    int64_t part[PART];

    /* the room of the factor is used to sort the points */
    choose_part (data->y, n, part, (int64_t *)gp->l);
    load_data (gp, part, PART, data);
    bfgs_minimise (&b, gp->theta, STEPS);
    if (!gp->straight)
        fit_warps (gp);
    bfgs_scale (&b, (double)n / PART);
    load_data (gp, NULL, n, data);
    bfgs_minimise (&b, gp->theta, FEW);
}

static void fit_few (struct gp *gp, const struct data *data, int64_t n)
{
    const struct bfgs b = optimiser (gp, false);

    load_data (gp, NULL, n, data);
    bfgs_minimise (&b, gp->theta, STEPS);
    if (!gp->straight)
        fit_warps (gp);
    gp_set_points (gp, gp->theta);
}

int gp_fit (struct gp *gp, int64_t n, const double *z, const double *y, const double *extra)
{
    const struct data data = { z, y, extra };
    const struct bfgs b = optimiser (gp, false);

    set_start (gp);
    bfgs_reset (&b);
    if (n > PART * 3 / 2)
        fit_many (gp, &data, n);
    else
        fit_few (gp, &data, n);
    return gp_set_covariance (gp, gp->theta);
}

/* ---- predict ---- */

static const double *warp_point (const struct gp *gp, const double *z)
{
    if (!gp->warped)
        return z;
    kumaraswamy_point (z, gp->a, gp->b, gp->d, gp->point);
    for (int64_t k = 0; k < gp->d; k++)
        if (gp->category[k])
            gp->point[k] = z[k];
    return gp->point;
}

/* Covariances of a (warped) point with the known points. */
static void covariances (const struct gp *gp, const double *z, double *k)
{
    memset (k, 0, gp->n * sizeof (*k));
    for (int64_t j = 0; j < gp->d; j++) {
        const double *zj = gp->z + j * gp->max;
        if (gp->category[j])
            matern_add_unequal (k, zj, z[j], gp->scale[j], gp->n);
        else
            matern_add_square (k, zj, z[j], gp->scale[j], gp->n);
    }
    matern (k, NULL, gp->n);
}

int gp_believe (struct gp *gp, const double *z)
{
    double *last = gp_row (gp->l, gp, gp->n);
    const double *warped = warp_point (gp, z);
    struct factor l;

    if (gp->n == gp->max)
        return -1;
    covariances (gp, warped, last);
    gp->y[gp->n] = factor_dot (last, gp->alpha, gp->n);
    last[gp->n] = 1 + gp_diagonal (gp->theta, gp->d);
    gp->extra[gp->n] = 0;
    for (int64_t k = 0; k < gp->d; k++) {
        gp->u[k * gp->max + gp->n] = z[k];
        gp->z[k * gp->max + gp->n] = warped[k];
    }
    gp->n++;
    l = gp_factor (gp);
    if (factor_make (&l, gp->n - 1) < 0) {
        gp->n--;
        return -1;
    }
    gp_set_alpha (gp);
    return 0;
}

void gp_predict (const struct gp *gp, const double *z, double *mean, double *variance)
{
    const struct factor f = gp_factor (gp);
    double left;

    covariances (gp, warp_point (gp, z), gp->k);
    *mean = factor_dot (gp->k, gp->alpha, gp->n);
    if (!variance)
        return;
    factor_solve (&f, gp->k, gp->k);
    left = 1 - factor_dot (gp->k, gp->k, gp->n);
    *variance = left > 1e-10 ? left : 1e-10;
}

double gp_best (const struct gp *gp)
{
    double noise = gp_diagonal (gp->theta, gp->d), best = INFINITY;

    /* K alpha = y, and the mean there is (K - noise) alpha */
    for (int64_t i = 0; i < gp->n; i++)
        best = fmin (best, gp->y[i] - (noise + gp->extra[i]) * gp->alpha[i]);
    return best;
}

/* alpha_i / (K^-1)_ii is the error of predicting point i from the others
 * (Rasmussen and Williams, 5.12)
 */
double gp_error (const struct gp *gp)
{
    const struct factor f = gp_factor (gp);
    double sum = 0, square_sum = 0;

    factor_invert (&f, gp->inv);
    for (int64_t i = 0; i < gp->n; i++) {
        double e = gp->alpha[i] / factor_inverse (&f, gp->inv, i, i);
        sum += e * e;
        square_sum += gp->y[i] * gp->y[i];
    }
    return sum / (square_sum + 1e-12);
}
