/* SPDX-License-Identifier: Apache-2.0 */
/* CMA-ES: draw, rank, adapt mean, step and covariance, keep the margin. */
#include "searcher/models/models.h"

#include <math.h>
#include <string.h>

#include "searcher/numeric/row.h"

enum { TRIES = 100, ROUNDS = 30, SWEEPS = 2 };

/* Names follow the tutorial: x = mean + sigma y, y ~ N (0, C), C = B D^2 B^T.
 * With margin a point is mean + sigma A y, A diagonal.
 */
struct cmaes {
    int64_t d, lambda, mu, observed, generation;
    int64_t flat; /* generations since the best value changed */
    double best;  /* value of the last generation */
    double sigma, first_sigma;
    double mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, keep, chi;
    double room[]; /* vectors, matrices, points; then values, weights */
};

/* CELLS is 0, and A is 1, in a continuous dimension. */
enum vector { MEAN, PATH_SIGMA, PATH_C, D, A, CELLS, STEP, SCRATCH, VECTORS };

/* Row i of AXIS is eigenvector i; points are sorted, the best first. */
enum matrix { C, AXIS, WORK, POINT };

/* As with strchr(), the caller takes care of const. */
static double *state_vector (const struct cmaes *s, enum vector v)
{
    return (double *)s->room + (int64_t)v * s->d;
}

static double *matrix_row (const struct cmaes *s, enum matrix m, int64_t i)
{
    return (double *)s->room + (VECTORS + m * s->d + i) * s->d;
}

static double *recombination_weights (const struct cmaes *s)
{
    return matrix_row (s, POINT, s->lambda) + s->lambda;
}

static int64_t population_of (int64_t d, int64_t population)
{
    return population > 1 ? population : 4 + (int64_t)(3 * log (d));
}

size_t cmaes_size (int64_t d, int64_t population)
{
    int64_t lambda = population_of (d, population);

    return sizeof (struct cmaes)
           + (d * (VECTORS + POINT * d + lambda) + 2 * lambda) * sizeof (double);
}

/* to += scale * from */
static void add_scaled (double *to, double scale, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += scale * from[i];
}

static double clip_to (double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The value that a standard normal variable exceeds with probability q <= 0.5,
 * accurate to 0.0005 (M. Abramowitz and I. A. Stegun, Handbook of Mathematical
 * Functions, 1964, 26.2.23).
 */
static double normal_quantile (double q)
{
    double t = sqrt (-2 * log (q));
    double p = 2.515517 + t * (0.802853 + t * 0.010328);

    return t - p / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

static void spin (double *x, double *y, int64_t n, int64_t stride, double co, double si)
{
    for (int64_t k = 0; k < n * stride; k += stride) {
        double old = x[k];
        x[k] = co * old - si * y[k];
        y[k] = si * old + co * y[k];
    }
}

/* Rotate axes p and q so that work[p][q] becomes 0 (C. G. J. Jacobi, 1846).
 * Returns false if it is 0 already.
 */
static bool rotate_axes (struct cmaes *s, int64_t p, int64_t q)
{
    double *w = matrix_row (s, WORK, 0), *wp = w + p * s->d, *wq = w + q * s->d;
    double theta = (wq[q] - wp[p]) / (2 * wp[q]);
    double t = copysign (1 / (fabs (theta) + hypot (theta, 1)), theta);
    double co = 1 / sqrt (t * t + 1), si = t * co;

    if (fabs (wp[q]) <= 1e-15 * sqrt (fabs (wp[p] * wq[q])))
        return false;
    spin (wp, wq, s->d, 1, co, si);
    spin (w + p, w + q, s->d, s->d, co, si);
    spin (matrix_row (s, AXIS, p), matrix_row (s, AXIS, q), s->d, 1, co, si);
    return true;
}

/* m += w v v^T */
static void add_square (struct cmaes *s, enum matrix m, double w, const double *v)
{
    for (int64_t i = 0; i < s->d; i++)
        add_scaled (matrix_row (s, m, i), w * v[i], v, s->d);
}

/* B diag (D^power) B^T, power 2 or -2. pow() is avoided: its last bit differs
 * between processors.
 */
static void compose_matrix (struct cmaes *s, enum matrix to, int power)
{
    memset (matrix_row (s, to, 0), 0, s->d * s->d * sizeof (double));
    for (int64_t k = 0; k < s->d; k++) {
        double square = state_vector (s, D)[k] * state_vector (s, D)[k];
        add_square (s, to, power > 0 ? square : 1 / square, matrix_row (s, AXIS, k));
    }
}

/* Compute B and D. Rounding must not make C singular. */
static void decompose (struct cmaes *s)
{
    size_t size = s->d * s->d * sizeof (double);
    double least = 1e-40;
    bool any = true;

    memcpy (matrix_row (s, WORK, 0), matrix_row (s, C, 0), size);
    memset (matrix_row (s, AXIS, 0), 0, size);
    for (int64_t i = 0; i < s->d; i++) {
        least += 1e-15 * matrix_row (s, C, i)[i];
        matrix_row (s, AXIS, i)[i] = 1;
    }
    for (int i = 0; any && i < ROUNDS; i++) {
        any = false;
        for (int64_t p = 0; p < s->d; p++)
            for (int64_t q = p + 1; q < s->d; q++)
                any = rotate_axes (s, p, q) || any;
    }
    for (int64_t i = 0; i < s->d; i++)
        state_vector (s, D)[i] = sqrt (fmax (matrix_row (s, WORK, i)[i], least));
    compose_matrix (s, C, 2);
}

static double cell_of (double u, double cells)
{
    return clip_to (floor (u * cells), 0, cells - 1);
}

/* Keep a total probability of alpha for the cells next to the mean's.  (In the
 * paper, a side that has more than its share gives some to the other side.)
 */
static void keep_margin (struct cmaes *s)
{
    double alpha = 1.0 / (s->d * s->lambda), edge = normal_quantile (alpha);
    double side = normal_quantile (alpha / 2);

    for (int64_t i = 0; i < s->d; i++) {
        double n = state_vector (s, CELLS)[i], *a = state_vector (s, A) + i;
        double *mean = state_vector (s, MEAN) + i, cell = cell_of (*mean, n);
        double low = cell / n, high = (cell + 1) / n;
        double dev = s->sigma * *a * sqrt (matrix_row (s, C, i)[i]);
        double below = fmin (side, (*mean - low) / dev);
        double above = fmin (side, (high - *mean) / dev);
        if (n > 1 && cell == 0) {
            *mean = fmax (*mean, high - edge * dev);
        } else if (n > 1 && cell == n - 1) {
            *mean = fmin (*mean, low + edge * dev);
        } else if (n > 1) {
            *mean = (low * above + high * below) / (below + above);
            *a *= (high - low) / ((below + above) * dev);
        }
    }
}

/* The constants of table 1 of the tutorial. */
static void set_constants (struct cmaes *s)
{
    double *w = recombination_weights (s), n = s->d, plus[2] = { 0 }, minus[2] = { 0 }, a, m;

    for (int64_t k = 0; k < s->lambda; k++) {
        double *sum = k < s->mu ? plus : minus;
        w[k] = log ((s->lambda + 1) / 2.0) - log (k + 1);
        sum[0] += w[k];
        sum[1] += w[k] * w[k];
    }
    m = s->mu_eff = plus[0] * plus[0] / plus[1];
    s->c_1 = 2 / ((n + 1.3) * (n + 1.3) + m);
    s->c_mu = fmin (1 - s->c_1 - 1e-8, 2 * (m - 2 + 1 / m) / ((n + 2) * (n + 2) + m));
    a = fmin (1 + 2 * minus[0] * minus[0] / minus[1] / (m + 2),
              fmin (1 + s->c_1 / s->c_mu, (1 - s->c_1 - s->c_mu) / (n * s->c_mu)));
    for (int64_t k = 0; k < s->lambda; k++)
        w[k] *= k < s->mu ? 1 / plus[0] : a / -minus[0];
    s->keep = 1 - s->c_1 - s->c_mu * (1 - a);
    s->c_sigma = (m + 2) / (n + m + 5);
    s->d_sigma = 1 + s->c_sigma + 2 * fmax (0, sqrt ((m - 1) / (n + 1)) - 1);
    s->c_c = (4 + m / n) / (n + 4 + 2 * m / n);
    s->chi = sqrt (n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
}

void cmaes_start (void *state, int64_t d, const int64_t *steps, const double *mean, double sigma,
                  int64_t population)
{
    struct cmaes *s = state;

    memset (s, 0, cmaes_size (d, population));
    s->d = d;
    s->lambda = population_of (d, population);
    s->mu = s->lambda / 2;
    s->best = NAN;
    s->sigma = s->first_sigma = sigma;
    set_constants (s);
    for (int64_t i = 0; i < d; i++) {
        state_vector (s, MEAN)[i] = mean[i];
        state_vector (s, CELLS)[i] = steps[i];
        state_vector (s, A)[i] = matrix_row (s, C, i)[i] = 1;
    }
    decompose (s);
    keep_margin (s);
}

void cmaes_warm_start (void *state, int64_t d, const int64_t *steps, const double *points,
                       int64_t n, int64_t population)
{
    double best = n < 10 ? 1 : n / 10, *mean;
    struct cmaes *s = state;

    cmaes_start (s, d, steps, points, 0.1, population);
    mean = state_vector (s, MEAN);
    memset (mean, 0, d * sizeof (double));
    for (int64_t k = 0; k < best; k++) {
        add_scaled (mean, 1 / best, points + k * d, d);
        add_square (s, C, 1 / best / (0.1 * 0.1), points + k * d);
    }
    add_square (s, C, -1 / (0.1 * 0.1), mean);
    decompose (s);
    keep_margin (s);
}

/* Returns false if the point is outside the cube. */
static bool draw_candidate (const struct cmaes *s, struct rng *r, double *u)
{
    bool inside = true;

    memset (u, 0, s->d * sizeof (double));
    for (int64_t k = 0; k < s->d; k++) {
        double length = s->sigma * state_vector (s, D)[k] * rng_gauss (r);
        add_scaled (u, length, matrix_row (s, AXIS, k), s->d);
    }
    for (int64_t i = 0; i < s->d; i++) {
        u[i] = state_vector (s, MEAN)[i] + state_vector (s, A)[i] * u[i];
        inside = inside && (state_vector (s, CELLS)[i] || (u[i] >= 0 && u[i] <= 1));
    }
    return inside;
}

void cmaes_ask (const void *state, struct rng *r, double *u)
{
    const struct cmaes *s = state;
    const double *cells = state_vector (s, CELLS);

    for (int i = 0; i <= TRIES && !draw_candidate (s, r, u); i++)
        ;
    for (int64_t i = 0; i < s->d; i++)
        u[i] = cells[i] > 0 ? (cell_of (u[i], cells[i]) + 0.5) / cells[i] : clip_to (u[i], 0, 1);
}

/* Draw y[i] again, given the other coordinates (WORK is the inverse of C) and the cell. */
static void redraw (struct cmaes *s, int64_t i, double u, double *y, struct rng *r)
{
    double n = state_vector (s, CELLS)[i], cell = cell_of (u, n);
    double scale = s->sigma * state_vector (s, A)[i], mean = state_vector (s, MEAN)[i];
    double low = cell == 0 ? -INFINITY : (cell / n - mean) / scale;
    double high = cell == n - 1 ? INFINITY : ((cell + 1) / n - mean) / scale;
    const double *inverse = matrix_row (s, WORK, i);
    double centre = y[i] - row_dot (inverse, y, s->d) / inverse[i];
    double dev = 1 / sqrt (inverse[i]);
    double z = rng_gauss_between (r, (low - centre) / dev, (high - centre) / dev);

    y[i] = clip_to (centre + dev * z, low, high);
}

/* Convert point k to y.  The position within a cell does not influence the
 * value and is not observed, so y is drawn again within the cell, by Gibbs
 * sampling.  Using the centre of the cell would make y, and therefore sigma,
 * too small.
 */
static void set_y (struct cmaes *s, int64_t k)
{
    double *y = matrix_row (s, POINT, k), *u = state_vector (s, SCRATCH);
    const double *cells = state_vector (s, CELLS);
    struct rng r = { .trial = s->generation, .key = k };

    memcpy (u, y, s->d * sizeof (double));
    for (int64_t i = 0; i < s->d; i++) {
        r.seed = rng_bits (r.seed, (int64_t)(u[i] * 0x1p53), 0, 0);
        y[i] = cells[i] > 0 ? 0 : (u[i] - state_vector (s, MEAN)[i]) / s->sigma;
    }
    for (int j = 0; j < SWEEPS; j++)
        for (int64_t i = 0; i < s->d; i++)
            if (cells[i] > 0)
                redraw (s, i, u[i], y, &r);
}

/* Set SCRATCH to z = C^(-1/2) y and return its squared length. */
static double whiten (struct cmaes *s, const double *y)
{
    double *z = state_vector (s, SCRATCH);

    memset (z, 0, s->d * sizeof (double));
    for (int64_t k = 0; k < s->d; k++) {
        const double *b = matrix_row (s, AXIS, k);
        add_scaled (z, row_dot (b, y, s->d) / state_vector (s, D)[k], b, s->d);
    }
    return row_dot (z, z, s->d);
}

/* Returns h_sigma: 0 while the step size grows too fast for the covariance to follow. */
static double adapt_sigma (struct cmaes *s)
{
    double *path = state_vector (s, PATH_SIGMA), *z = state_vector (s, SCRATCH);
    double c = s->c_sigma, gain = sqrt (c * (2 - c) * s->mu_eff);
    double settled = sqrt (1 - pow (1 - c, 2.0 * s->generation + 2)), length;

    whiten (s, state_vector (s, STEP));
    for (int64_t i = 0; i < s->d; i++)
        path[i] = (1 - c) * path[i] + gain * z[i];
    length = sqrt (row_dot (path, path, s->d)) / s->chi;
    /* grow at most by e: points from elsewhere may be very far away */
    s->sigma *= exp (fmin (1, c / s->d_sigma * (length - 1)));
    s->sigma = clip_to (s->sigma, 1e-40, 1e10);
    return length < (1.4 + 2.0 / (s->d + 1)) * settled;
}

static void adapt_covariance (struct cmaes *s, double h)
{
    double *path = state_vector (s, PATH_C), c = s->c_c;
    double gain = h * sqrt (c * (2 - c) * s->mu_eff);
    double keep = s->keep + s->c_1 * (1 - h) * c * (2 - c);

    for (int64_t i = 0; i < s->d; i++)
        path[i] = (1 - c) * path[i] + gain * state_vector (s, STEP)[i];
    for (int64_t i = 0; i < s->d * s->d; i++)
        matrix_row (s, C, 0)[i] *= keep;
    add_square (s, C, s->c_1, path);
    for (int64_t k = 0; k < s->lambda; k++) {
        const double *y = matrix_row (s, POINT, k);
        double w = recombination_weights (s)[k] * s->c_mu;
        add_square (s, C, w < 0 ? w * s->d / (whiten (s, y) + 1e-8) : w, y);
    }
}

static void adapt (struct cmaes *s)
{
    double sigma = s->sigma;

    compose_matrix (s, WORK, -2);
    for (int64_t k = 0; k < s->lambda; k++)
        set_y (s, k);
    memset (state_vector (s, STEP), 0, s->d * sizeof (double));
    for (int64_t k = 0; k < s->mu; k++)
        add_scaled (state_vector (s, STEP), recombination_weights (s)[k], matrix_row (s, POINT, k),
                    s->d);
    s->generation++;
    adapt_covariance (s, adapt_sigma (s));
    /* the paper leaves A out here; a mean in a wrong cell then leaves it too late */
    for (int64_t i = 0; i < s->d; i++)
        state_vector (s, MEAN)[i] += sigma * state_vector (s, A)[i] * state_vector (s, STEP)[i];
    decompose (s);
    keep_margin (s);
}

void cmaes_observe (void *state, const double *u, double value)
{
    struct cmaes *s = state;
    double v = isnan (value) ? INFINITY : value, *at = matrix_row (s, POINT, s->lambda);
    int64_t k = s->observed, size = s->d * sizeof (double);

    while (k > 0 && at[k - 1] > v)
        k--;
    memmove (at + k + 1, at + k, (s->observed - k) * sizeof (double));
    memmove (matrix_row (s, POINT, k + 1), matrix_row (s, POINT, k), (s->observed - k) * size);
    memcpy (matrix_row (s, POINT, k), u, size);
    at[k] = v;
    if (++s->observed < s->lambda)
        return;
    s->flat = at[0] == s->best ? s->flat + 1 : 0;
    s->best = at[0];
    s->observed = 0;
    adapt (s);
}

bool cmaes_should_stop (const void *state)
{
    const struct cmaes *s = state;
    const double *mean = state_vector (s, MEAN), *d = state_vector (s, D);
    double tiny = 1e-12 * s->first_sigma, low = d[0], high = d[0];
    bool is_tiny = true;

    for (int64_t i = 0; i < s->d; i++) {
        double dev = s->sigma * sqrt (matrix_row (s, C, i)[i]);
        double path = s->sigma * fabs (state_vector (s, PATH_C)[i]);
        if (state_vector (s, CELLS)[i] == 0 && mean[i] + 0.2 * dev == mean[i])
            return true;
        is_tiny = is_tiny && dev < tiny && path < tiny;
        low = fmin (low, d[i]);
        high = fmax (high, d[i]);
    }
    return is_tiny || high > 1e7 * low || s->sigma * high > 1e4 * s->first_sigma
           || s->flat > 10 + 30 * s->d / s->lambda;
}
