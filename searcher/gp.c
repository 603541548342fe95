/* SPDX-License-Identifier: Apache-2.0 */
/* Fit a Gaussian process by its most probable parameters; predict. */
#include "searcher/gp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 30, HALVINGS = 12 };

static const double jitter = 1e-8;
static const double sqrt_5 = 0x1.1e3779b97f4a8p+1;

struct gp {
    int64_t max, d, n;
    const bool *category;
    double *z, *y;
    double *theta; /* log of the length scales, then of the noise */
    double *pair;  /* squared distance of i > j in each dimension */
    double *a, *e; /* of each pair: sqrt(5) r and exp(-sqrt(5) r) */
    double *l;     /* Cholesky factor, lower, n x n */
    double *inv;   /* inverse of the covariance, lower */
    double *alpha, *scale, *k;
    double *search; /* what the optimiser needs */
};

static double *row (double *m, const struct gp *gp, int64_t i)
{
    return m + i * gp->max;
}

struct gp *gp_create (int64_t max, int64_t d, const bool *category)
{
    struct gp *gp = calloc (1, sizeof (*gp));
    int64_t pairs = max * (max - 1) / 2, t = d + 1;
    int64_t sizes[] = {
        max * d,   max,       t,   pairs * d, pairs, pairs,
        max * max, max * max, max, d,         max,   t * (t + 5)
    };
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
    *gp = (struct gp){ .max = max, .d = d, .category = category };
    gp->z = at;
    gp->y = gp->z + sizes[0];
    gp->theta = gp->y + sizes[1];
    gp->pair = gp->theta + sizes[2];
    gp->a = gp->pair + sizes[3];
    gp->e = gp->a + sizes[4];
    gp->l = gp->e + sizes[5];
    gp->inv = gp->l + sizes[6];
    gp->alpha = gp->inv + sizes[7];
    gp->scale = gp->alpha + sizes[8];
    gp->k = gp->scale + sizes[9];
    gp->search = gp->k + sizes[10];
    return gp;
}

void gp_destroy (struct gp *gp)
{
    if (gp) {
        free (gp->z);
        free (gp);
    }
}

/* ---- kernel ---- */

static double square (const struct gp *gp, int64_t i, double u, double v)
{
    if (gp->category[i])
        return u != v;
    return (u - v) * (u - v);
}

static void set_pairs (struct gp *gp)
{
    double *p = gp->pair;

    for (int64_t i = 0; i < gp->n; i++)
        for (int64_t j = 0; j < i; j++)
            for (int64_t k = 0; k < gp->d; k++)
                *p++ =
                    square (gp, k, gp->z[i * gp->d + k], gp->z[j * gp->d + k]);
}

/* 1/l^2 of each dimension. */
static void set_scale (struct gp *gp, const double *theta)
{
    for (int64_t k = 0; k < gp->d; k++)
        gp->scale[k] = exp (-2 * theta[k]);
}

static double matern (double a, double e)
{
    return (1 + a + a * a / 3) * e;
}

static void set_covariance (struct gp *gp, const double *theta)
{
    const double *p = gp->pair;
    double noise = exp (theta[gp->d]) + jitter;
    int64_t at = 0;

    set_scale (gp, theta);
    for (int64_t i = 0; i < gp->n; i++) {
        for (int64_t j = 0; j < i; j++, at++) {
            double r2 = 1e-18;
            for (int64_t k = 0; k < gp->d; k++)
                r2 += *p++ * gp->scale[k];
            gp->a[at] = sqrt_5 * sqrt (r2);
            gp->e[at] = exp (-gp->a[at]);
            row (gp->l, gp, i)[j] = matern (gp->a[at], gp->e[at]);
        }
        row (gp->l, gp, i)[i] = 1 + noise;
    }
}

/* ---- linear algebra, in place, lower triangles ---- */

static double dot (const double *a, const double *b, int64_t n)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t i = 0;

    for (; i + 4 <= n; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; i++)
        s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

/* Rows 'from' .. n-1; those before are done. */
static int cholesky (struct gp *gp, int64_t from)
{
    for (int64_t i = from; i < gp->n; i++) {
        double *li = row (gp->l, gp, i), v;
        for (int64_t j = 0; j < i; j++) {
            const double *lj = row (gp->l, gp, j);
            li[j] = (li[j] - dot (li, lj, j)) / lj[j];
        }
        v = li[i] - dot (li, li, i);
        if (!(v > 0))
            return -1;
        li[i] = sqrt (v);
    }
    return 0;
}

/* x = L^-1 b */
static void solve (const struct gp *gp, const double *b, double *x)
{
    for (int64_t i = 0; i < gp->n; i++) {
        const double *li = row (gp->l, gp, i);
        x[i] = (b[i] - dot (li, x, i)) / li[i];
    }
}

/* x = L^-T x */
static void solve_back (const struct gp *gp, double *x)
{
    for (int64_t i = gp->n - 1; i >= 0; i--) {
        const double *li = row (gp->l, gp, i);
        x[i] /= li[i];
        for (int64_t j = 0; j < i; j++)
            x[j] -= li[j] * x[i];
    }
}

static void set_alpha (struct gp *gp)
{
    solve (gp, gp->y, gp->alpha);
    solve_back (gp, gp->alpha);
}

/* inv = (L L^T)^-1, all of it: column i is the solution for a unit vector. */
static void invert (struct gp *gp)
{
    for (int64_t i = 0; i < gp->n; i++) {
        double *x = row (gp->inv, gp, i);
        memset (x, 0, gp->n * sizeof (*x));
        x[i] = 1 / row (gp->l, gp, i)[i];
        for (int64_t k = i + 1; k < gp->n; k++) {
            const double *lk = row (gp->l, gp, k);
            x[k] = -dot (lk + i, x + i, k - i) / lk[k];
        }
        solve_back (gp, x);
    }
}

/* ---- the probability of the parameters ---- */

static double prior (const struct gp *gp, const double *theta, double *g)
{
    double mean = log (0.5) + 0.5 * log ((double)gp->d), f = 0, z;

    for (int64_t k = 0; k < gp->d; k++) {
        z = theta[k] - mean;
        f += z * z / 2;
        g[k] += z;
    }
    z = (theta[gp->d] - log (1e-3)) / 2;
    g[gp->d] += z / 2;
    return f + z * z / 2;
}

/* dK / d log l = 5/3 (1 + a) e D^2 / l^2 */
static void add_gradient (const struct gp *gp, const double *theta, double *g)
{
    const double *p = gp->pair;
    double trace = 0;
    int64_t at = 0;

    for (int64_t i = 0; i < gp->n; i++) {
        const double *inv = gp->inv + i * gp->max;
        for (int64_t j = 0; j < i; j++, at++) {
            double w = (inv[j] - gp->alpha[i] * gp->alpha[j]) * (5.0 / 3)
                       * (1 + gp->a[at]) * gp->e[at];
            for (int64_t k = 0; k < gp->d; k++)
                g[k] += w * *p++ * gp->scale[k];
        }
        trace += inv[i] - gp->alpha[i] * gp->alpha[i];
    }
    g[gp->d] += trace / 2 * exp (theta[gp->d]);
}

/* Minus the log of the posterior, and its gradient. */
static double energy (struct gp *gp, const double *theta, double *g)
{
    double f;

    set_covariance (gp, theta);
    if (cholesky (gp, 0) < 0)
        return INFINITY;
    set_alpha (gp);
    invert (gp);
    memset (g, 0, (gp->d + 1) * sizeof (*g));
    add_gradient (gp, theta, g);
    f = dot (gp->y, gp->alpha, gp->n) / 2 + prior (gp, theta, g);
    for (int64_t i = 0; i < gp->n; i++)
        f += log (row (gp->l, gp, i)[i]);
    return f;
}

/* ---- the most probable parameters: BFGS within bounds ---- */

static double bound (const struct gp *gp, int64_t k, double x)
{
    double low = k < gp->d ? log (0.03) : log (1e-6);
    double high = k < gp->d ? log (20) : log (0.5);

    return x < low ? low : x > high ? high : x;
}

struct bfgs {
    int64_t n;
    double *x, *g, *next, *g_next, *step, *h; /* h: n x n */
};

static void identity (const struct bfgs *b)
{
    memset (b->h, 0, b->n * b->n * sizeof (double));
    for (int64_t i = 0; i < b->n; i++)
        b->h[i * b->n + i] = 1;
}

/* Downhill, at most 2 in any direction; returns the slope. */
static double set_step (const struct bfgs *b)
{
    double most = 0, slope = 0;

    for (int64_t i = 0; i < b->n; i++) {
        b->step[i] = -dot (b->h + i * b->n, b->g, b->n);
        most = fmax (most, fabs (b->step[i]));
    }
    for (int64_t i = 0; i < b->n; i++) {
        if (most > 2)
            b->step[i] *= 2 / most;
        slope += b->step[i] * b->g[i];
    }
    return slope;
}

/* H = (1 - r s y')H(1 - r y s') + r s s', r = 1/y's (Nocedal and Wright 6.17);
 * 'step' holds s and 'x', which is not needed any more, y.
 */
static void update (const struct bfgs *b, double *hy)
{
    double sy = 0, yhy = 0;

    for (int64_t i = 0; i < b->n; i++) {
        b->step[i] = b->next[i] - b->x[i];
        b->x[i] = b->g_next[i] - b->g[i];
        sy += b->step[i] * b->x[i];
    }
    if (sy <= 1e-10)
        return;
    for (int64_t i = 0; i < b->n; i++) {
        hy[i] = dot (b->h + i * b->n, b->x, b->n);
        yhy += hy[i] * b->x[i];
    }
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t j = 0; j < b->n; j++)
            b->h[i * b->n + j] +=
                (1 + yhy / sy) * b->step[i] * b->step[j] / sy
                - (hy[i] * b->step[j] + b->step[i] * hy[j]) / sy;
}

/* Try shorter and shorter steps.  Returns the new energy, or the old one. */
static double
line_search (struct gp *gp, const struct bfgs *b, double f, double slope)
{
    double t = 1;

    for (int i = 0; i < HALVINGS; i++, t /= 2) {
        double now;
        for (int64_t k = 0; k < b->n; k++)
            b->next[k] = bound (gp, k, b->x[k] + t * b->step[k]);
        now = energy (gp, b->next, b->g_next);
        if (now <= f + 1e-4 * t * slope)
            return now;
    }
    return f;
}

static void optimise (struct gp *gp)
{
    int64_t n = gp->d + 1;
    double *at = gp->search;
    struct bfgs b = { n,          gp->theta,  at,        at + n,
                      at + 2 * n, at + 3 * n, at + 5 * n };
    double f = energy (gp, b.x, b.g), now, slope;

    identity (&b);
    for (int i = 0; i < STEPS && isfinite (f); i++) {
        if ((slope = set_step (&b)) > -1e-9)
            break;
        now = line_search (gp, &b, f, slope);
        if (!(now < f))
            break;
        update (&b, at + 4 * n);
        memcpy (b.x, b.next, n * sizeof (*b.x));
        memcpy (b.g, b.g_next, n * sizeof (*b.g));
        if (f - now < 1e-4)
            break;
        f = now;
    }
}

/* ---- interface ---- */

static int set_factor (struct gp *gp)
{
    set_covariance (gp, gp->theta);
    if (cholesky (gp, 0) < 0)
        return -1;
    set_alpha (gp);
    return 0;
}

int gp_fit (struct gp *gp, int64_t n, const double *z, const double *y)
{
    double mean = log (0.5) + 0.5 * log ((double)gp->d);

    gp->n = n;
    memcpy (gp->z, z, n * gp->d * sizeof (*z));
    memcpy (gp->y, y, n * sizeof (*y));
    for (int64_t k = 0; k < gp->d; k++)
        gp->theta[k] = bound (gp, k, mean);
    gp->theta[gp->d] = log (1e-3);
    set_pairs (gp);
    optimise (gp);
    return set_factor (gp);
}

/* Covariance of a point with those that are known. */
static void covariances (const struct gp *gp, const double *z, double *k)
{
    for (int64_t i = 0; i < gp->n; i++) {
        const double *zi = gp->z + i * gp->d;
        double r2 = 1e-18, a;
        for (int64_t j = 0; j < gp->d; j++)
            r2 += square (gp, j, z[j], zi[j]) * gp->scale[j];
        a = sqrt_5 * sqrt (r2);
        k[i] = matern (a, exp (-a));
    }
}

int gp_believe (struct gp *gp, const double *z)
{
    double *last = row (gp->l, gp, gp->n);

    if (gp->n == gp->max)
        return -1;
    covariances (gp, z, last);
    gp->y[gp->n] = dot (last, gp->alpha, gp->n);
    last[gp->n] = 1 + exp (gp->theta[gp->d]) + jitter;
    memcpy (gp->z + gp->n * gp->d, z, gp->d * sizeof (*z));
    gp->n++;
    if (cholesky (gp, gp->n - 1) < 0) {
        gp->n--;
        return -1;
    }
    set_alpha (gp);
    return 0;
}

void gp_predict (const struct gp *gp,
                 const double *z,
                 double *mean,
                 double *variance)
{
    double left;

    covariances (gp, z, gp->k);
    *mean = dot (gp->k, gp->alpha, gp->n);
    solve (gp, gp->k, gp->k);
    left = 1 - dot (gp->k, gp->k, gp->n);
    *variance = left > 1e-10 ? left : 1e-10;
}

double gp_best (const struct gp *gp)
{
    double noise = exp (gp->theta[gp->d]) + jitter, best = INFINITY;

    /* K alpha = y, and the mean there is (K - noise) alpha */
    for (int64_t i = 0; i < gp->n; i++)
        best = fmin (best, gp->y[i] - noise * gp->alpha[i]);
    return best;
}
