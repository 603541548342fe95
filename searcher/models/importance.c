/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the variance of a value each parameter explains. */
#include "searcher/models/importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/models/gp.h"
#include "searcher/numeric/numeric.h"
#include "searcher/numeric/row.h"
#include "searcher/space/space.h"
#include "searcher/state/state.h"

/* Least and greatest number of points to fit; points of the space to average
 * over, and to take the variance over; number of parameters to draw surfaces
 * for.
 */
enum { FIT_MIN = 12, FIT_MAX = 200, MEAN_OVER = 96, ALL_OVER = 2048, PAIRED = 4 };

struct fit {
    const struct searcher *s;
    const struct dim *dims;
    int64_t d, n;
    struct gp *gp;
    bool *category;
    double *values;    /* as given, in order; ... */
    double *warped;    /* ... and their warped ones: both increase */
    double *base;      /* ALL_OVER points, not masked */
    double *point, *z; /* one point and its features */
    double variance;   /* of the mean over the space */
};

/* ---- the model ---- */

static void features (const struct fit *f, const double *x, double *z)
{
    for (int64_t k = 0; k < f->d; k++)
        z[k] = isnan (x[k]) ? -1 : f->category[k] ? x[k] : space_part (f->dims + k, x[k]);
}

/* If there are more values than can be fitted, choose evenly in time. */
static int64_t choose_values (const double *y, long n, long *rows)
{
    int64_t found = 0, kept = 0;

    for (long i = 0; i < n; i++)
        if (isfinite (y[i]))
            rows[found++] = i;
    for (int64_t i = 0; i < found && kept < FIT_MAX; i++)
        if (i * FIT_MAX / found >= kept || found <= FIT_MAX)
            rows[kept++] = rows[i];
    return kept;
}

/* A diverged trial is only bad: clip values to within three interquartile
 * ranges of the quartiles.
 */
static void clip_outliers (double *y, double *sorted, int64_t n)
{
    double low, high, width;

    memcpy (sorted, y, (size_t)n * sizeof (*y));
    qsort (sorted, (size_t)n, sizeof (*y), row_ascending);
    low = sorted[n / 4];
    high = sorted[n * 3 / 4];
    width = 3 * (high - low);
    for (int64_t i = 0; width > 0 && i < n; i++)
        y[i] = fmin (fmax (y[i], low - width), high + width);
}

static enum importance_result fit_rows (struct fit *f, const double *const *x, const double *y,
                                        const long *rows)
{
    double *z = malloc ((size_t)f->n * (size_t)(f->d + 2) * sizeof (*z));
    double *given = z + f->n * f->d, *warped = given + f->n;
    enum importance_result result = IMPORTANCE_FAILED;

    if (!z)
        return IMPORTANCE_FAILED;
    for (int64_t i = 0; i < f->n; i++) {
        features (f, x[rows[i]], z + i * f->d);
        given[i] = y[rows[i]];
    }
    clip_outliers (given, warped, f->n);
    memcpy (f->values, given, (size_t)f->n * sizeof (*given));
    warp_values (given, f->n, warped);
    if ((f->gp = gp_create (f->n, f->d, f->category)))
        result = gp_fit (f->gp, f->n, z, warped, NULL) < 0 ? IMPORTANCE_NONE : IMPORTANCE_FITTED;
    memcpy (f->warped, warped, (size_t)f->n * sizeof (*warped));
    qsort (f->values, (size_t)f->n, sizeof (double), row_ascending);
    qsort (f->warped, (size_t)f->n, sizeof (double), row_ascending);
    free (z);
    return result;
}

static double predict (struct fit *f, double *x)
{
    double mean;

    features (f, x, f->z);
    gp_predict (f->gp, f->z, &mean, NULL);
    return mean;
}

/* Invert the warp of a value. */
static double unwarp (const struct fit *f, double w)
{
    int64_t i = 1;

    while (i < f->n - 1 && f->warped[i] < w)
        i++;
    double step = f->warped[i] - f->warped[i - 1];
    double part = step > 0 ? (w - f->warped[i - 1]) / step : 0;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return f->values[i - 1] + part * (f->values[i] - f->values[i - 1]);
}

/* ---- means over the space ---- */

static double *base_point (const struct fit *f, int64_t i)
{
    return f->base + i * f->d;
}

/* Expected value with parameters a and b (-1: only a) fixed; NaN if they are
 * never active together.  '*part' is how often they are.
 */
static double mean_at (struct fit *f, int64_t a, double xa, int64_t b, double xb, double *part)
{
    double sum = 0;
    int n = 0;

    for (int64_t i = 0; i < MEAN_OVER; i++) {
        memcpy (f->point, base_point (f, i), (size_t)f->d * sizeof (double));
        f->point[a] = xa;
        if (b >= 0)
            f->point[b] = xb;
        point_mask (f->s, f->point);
        if (isnan (f->point[a]) || (b >= 0 && isnan (f->point[b])))
            continue;
        sum += predict (f, f->point);
        n++;
    }
    *part = (double)n / MEAN_OVER;
    return n ? sum / n : NAN;
}

static double sample_variance (const double *v, int64_t n)
{
    double sum = 0, square = 0;
    int64_t known = 0;

    for (int64_t i = 0; i < n; i++)
        if (!isnan (v[i])) {
            sum += v[i];
            known++;
        }
    for (int64_t i = 0; i < n; i++)
        if (!isnan (v[i]))
            square += (v[i] - sum / known) * (v[i] - sum / known);
    return known ? square / known : 0;
}

static enum importance_result measure_all (struct fit *f)
{
    double *all = malloc (ALL_OVER * sizeof (*all));

    if (!all)
        return IMPORTANCE_FAILED;
    for (int64_t i = 0; i < ALL_OVER; i++) {
        double *x = base_point (f, i);
        for (int64_t k = 0; k < f->d; k++)
            x[k] = space_sample (f->dims + k, 1, (uint64_t)i);
        memcpy (f->point, x, (size_t)f->d * sizeof (double));
        point_mask (f->s, f->point);
        all[i] = predict (f, f->point);
    }
    f->variance = sample_variance (all, ALL_OVER);
    free (all);
    return f->variance > 1e-6 ? IMPORTANCE_FITTED : IMPORTANCE_NONE;
}

/* Representative values of a parameter.  Returns how many. */
static int parameter_grid (const struct dim *d, int most, double *x)
{
    int64_t n = d->type == PARAM_CATEGORICAL ? d->choices : most;

    if (n > most)
        n = most;
    for (int64_t i = 0; i < n; i++)
        x[i] =
            d->type == PARAM_CATEGORICAL ? (double)i : space_at (d, ((double)i + 0.5) / (double)n);
    return (int)n;
}

static double variance_share (const struct fit *f, double variance_of)
{
    double share = variance_of / f->variance;

    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void marginal_fill (struct fit *f, int64_t k, struct marginal *m)
{
    double part = 0, most = 0;

    m->n = parameter_grid (f->dims + k, MARGINAL_POINTS, m->x);
    for (int i = 0; i < m->n; i++) {
        m->mean[i] = mean_at (f, k, m->x[i], -1, 0, &part);
        most = part > most ? part : most;
    }
    m->share = variance_share (f, most * sample_variance (m->mean, m->n));
    for (int i = 0; i < m->n; i++)
        m->mean[i] = unwarp (f, m->mean[i]);
}

static void surface_fill (struct fit *f, const struct importance *m, struct surface *u)
{
    double part = 0, most = 0;

    u->na = parameter_grid (f->dims + u->a, SURFACE_POINTS, u->xa);
    u->nb = parameter_grid (f->dims + u->b, SURFACE_POINTS, u->xb);
    for (int j = 0; j < u->nb; j++)
        for (int i = 0; i < u->na; i++) {
            double *mean = &u->mean[j * u->na + i];
            *mean = mean_at (f, u->a, u->xa[i], u->b, u->xb[j], &part);
            most = part > most ? part : most;
        }
    u->share = variance_share (f, most * sample_variance (u->mean, (int64_t)u->na * u->nb))
               - m->marginals[u->a].share - m->marginals[u->b].share;
    u->share = u->share < 0 ? 0 : u->share;
    for (int i = 0; i < u->na * u->nb; i++)
        if (!isnan (u->mean[i]))
            u->mean[i] = unwarp (f, u->mean[i]);
}

/* ---- all ---- */

/* List the PAIRED most important parameters in descending order. */
static int most_important (const struct importance *m, long *list)
{
    int n = 0;

    for (long k = 0; k < m->n; k++) {
        int i = n < PAIRED ? n++ : PAIRED;
        for (; i > 0 && m->marginals[list[i - 1]].share < m->marginals[k].share; i--)
            if (i < PAIRED)
                list[i] = list[i - 1];
        if (i < PAIRED)
            list[i] = k;
    }
    return n;
}

static void fit_importance (struct fit *f, struct importance *m)
{
    double alone = 0;
    long list[PAIRED];
    int n;

    for (long k = 0; k < m->n; k++) {
        marginal_fill (f, k, &m->marginals[k]);
        alone += m->marginals[k].share;
    }
    /* the shares can exceed 1: the variance over the space is an estimate */
    for (long k = 0; alone > 1 && k < m->n; k++)
        m->marginals[k].share /= alone;
    f->variance *= fmax (alone, 1);
    n = most_important (m, list);
    for (int b = 1; b < n; b++)
        for (int a = 0; a < b; a++) {
            struct surface *u = &m->surfaces[m->nsurfaces++];
            u->a = list[a];
            u->b = list[b];
            surface_fill (f, m, u);
        }
}

static int fit_open (struct fit *f, int64_t d)
{
    size_t n = (size_t)d * (ALL_OVER + 2) + 2 * FIT_MAX;

    f->category = calloc ((size_t)d, sizeof (*f->category));
    f->base = calloc (n, sizeof (double));
    if (!f->category || !f->base)
        return -1;
    f->point = f->base + d * ALL_OVER;
    f->z = f->point + d;
    f->values = f->z + d;
    f->warped = f->values + FIT_MAX;
    for (int64_t k = 0; k < d; k++)
        f->category[k] = f->dims[k].type == PARAM_CATEGORICAL;
    return 0;
}

enum importance_result importance_fit (struct importance *m, const struct searcher *s,
                                       const double *const *x, const double *y, long n)
{
    struct fit f = { .s = s, .dims = searcher_dims (s), .d = s->n };
    long *rows = malloc (((size_t)n + 1) * sizeof (*rows));
    enum importance_result result = IMPORTANCE_FAILED;

    *m = (struct importance){ .n = (long)f.d };
    m->marginals = calloc ((size_t)f.d + 1, sizeof (*m->marginals));
    if (!rows || !m->marginals || fit_open (&f, f.d) < 0)
        goto end;
    f.n = choose_values (y, n, rows);
    result = f.d < 1 || f.n < FIT_MIN ? IMPORTANCE_NONE : fit_rows (&f, x, y, rows);
    if (result == IMPORTANCE_FITTED)
        result = measure_all (&f);
    if (result == IMPORTANCE_FITTED)
        fit_importance (&f, m);
end:
    gp_destroy (f.gp);
    free (rows);
    free (f.category);
    free (f.base);
    return result;
}

void importance_free (struct importance *m)
{
    free (m->marginals);
    *m = (struct importance){ 0 };
}
