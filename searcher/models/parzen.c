/* SPDX-License-Identifier: Apache-2.0 */
/* A Parzen estimator: kernels with their widths and weights, sampling and densities. */
#include "searcher/models/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/numeric/normal.h"

enum { FLAT = 25, NARROW = 100, CELLS_MAX = 2 * NARROW, TRIES = 1000 };
/* Integers with more values than this have a density, not masses. */
enum { DISCRETE_MAX = 256, NEGLIGIBLE = 40, ALL = 9 };

/* One kernel in one dimension. */
struct kernel {
    double mu, sigma, inverse; /* 1 / sigma */
    double log_norm;           /* what a density or mass is divided by */
};

struct parzen {
    const struct dim *dims;
    int64_t n, count; /* kernels: count and the prior */
    double *log_weight;
    struct kernel *kernels; /* of kernel k in dimension i: see kernel_at() */
    double *scratch;        /* a number a kernel */
};

static struct kernel *kernel_at (const struct parzen *p, int64_t k, int64_t i)
{
    return p->kernels + i * (p->count + 1) + k;
}

/* ---- the normal distribution ---- */

/* Probability mass between a and b standard deviations, accurate far out in the tails. */
static double mass (double a, double b)
{
    if (a > 0)
        return (erfc (a * M_SQRT1_2) - erfc (b * M_SQRT1_2)) / 2;
    if (b < 0)
        return (erfc (-b * M_SQRT1_2) - erfc (-a * M_SQRT1_2)) / 2;
    return (erf (b * M_SQRT1_2) - erf (a * M_SQRT1_2)) / 2;
}

static double log_mass (double a, double b)
{
    double m = mass (a, b);
    double x;

    if (m > 0)
        return log (m);
    /* so far out that only the order matters */
    x = a > 0 ? a : b;
    return -x * x / 2 - LOG_SQRT_2PI - log (fabs (x) + 1);
}

/* ---- kernels ---- */

static bool is_discrete_dim (const struct dim *d)
{
    return d->step > 0;
}

static double clip_bandwidth (double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* For each value, the larger distance to its two neighbours; the first of
 * several equal values ranks below the others. 0 if it is less than the width
 * of a cell.  This avoids sorting: a neighbour farther away than a cell is the
 * first or the last value of another cell.
 */
static void find_gaps (const double *value, int64_t n, double low, double range, int64_t cells,
                       double *gap)
{
    int64_t first[CELLS_MAX], last[CELLS_MAX], below = -1;
    double a_cell = range / cells;

    memset (first, -1, sizeof (first));
    for (int64_t k = 0; k < n; k++) {
        double at = (value[k] - low) / a_cell;
        int64_t c = at > 0 ? (int64_t)(at < cells ? at : cells - 1) : 0;
        gap[k] = 0;
        if (first[c] < 0)
            first[c] = last[c] = k;
        first[c] = value[k] < value[first[c]] ? k : first[c];
        last[c] = value[k] >= value[last[c]] ? k : last[c];
    }
    for (int64_t c = 0; c < cells; c++) {
        if (first[c] >= 0 && below >= 0) {
            double d = value[first[c]] - value[below];
            gap[first[c]] = fmax (gap[first[c]], d);
            gap[below] = fmax (gap[below], d);
        }
        below = first[c] >= 0 ? last[c] : below;
    }
}

static void set_kernel (struct parzen *p, int64_t k, int64_t i, double mu, double sigma)
{
    double low = space_low (p->dims + i), high = space_high (p->dims + i);
    struct kernel *kernel = kernel_at (p, k, i);

    if (!(sigma > 0)) /* there is only one value */
        sigma = 1;
    kernel->mu = mu;
    kernel->sigma = sigma;
    kernel->inverse = 1 / sigma;
    /* with ends this far away, all but 1e-19 of it lies inside */
    kernel->log_norm = mu - low > ALL * sigma && high - mu > ALL * sigma
                           ? 0
                           : log_mass ((low - mu) / sigma, (high - mu) / sigma);
    if (!is_discrete_dim (p->dims + i))
        kernel->log_norm += log (sigma) + LOG_SQRT_2PI;
}

/* 'room' has two numbers for each point. */
static void fit_number (struct parzen *p, int64_t i, const double *const *points, double *room)
{
    double low = space_low (p->dims + i), high = space_high (p->dims + i);
    double range = high - low, *value = room, *gap = room + p->count;
    int64_t parts = p->count + 2 < NARROW ? p->count + 2 : NARROW;

    for (int64_t k = 0; k < p->count; k++)
        value[k] = points[k][i];
    /* cells of half the least width, even after rounding */
    find_gaps (value, p->count, low, range, 2 * parts, gap);
    if (p->count == 1)
        gap[0] = fmax (value[0] - low, high - value[0]);
    for (int64_t k = 0; k < p->count; k++)
        set_kernel (p, k, i, value[k], clip_bandwidth (gap[k], range / parts, range));
    if (p->dims[i].deviation > 0)
        set_kernel (p, p->count, i, p->dims[i].mean, p->dims[i].deviation);
    else
        set_kernel (p, p->count, i, low + range / 2, range);
}

/* For a choice, mu is the choice, -1 for the prior.  Kernel k weighs its own
 * choice by 1 + 1/kernels and every other by 1/kernels, normalised.
 */
static void fit_choice (struct parzen *p, int64_t i, const double *const *points)
{
    for (int64_t k = 0; k <= p->count; k++)
        *kernel_at (p, k, i) = (struct kernel){
            .mu = k < p->count ? points[k][i] : -1,
        };
}

/* The newest kernels and the prior have weight 1; older ones less, down to 1/n. */
static void weigh (struct parzen *p)
{
    int64_t old = p->count - FLAT;
    double sum = 1;

    for (int64_t k = 0; k < p->count; k++) {
        double first = 1.0 / p->count;
        double w = k >= old ? 1 : old == 1 ? first : first + (1 - first) * k / (old - 1);
        p->log_weight[k] = w;
        sum += w;
    }
    p->log_weight[p->count] = 1;
    for (int64_t k = 0; k <= p->count; k++)
        p->log_weight[k] = log (p->log_weight[k] / sum);
}

static int fit_kernels (struct parzen *p, const double *const *points)
{
    double *room = malloc ((2 * p->count + 1) * sizeof (*room));
    int rv = room ? 0 : -1;

    for (int64_t i = 0; rv == 0 && i < p->n; i++)
        if (p->dims[i].type == PARAM_CATEGORICAL)
            fit_choice (p, i, points);
        else
            fit_number (p, i, points, room);
    free (room);
    return rv;
}

struct parzen *parzen_create (const struct dim *dims, int64_t n, const double *const *points,
                              int64_t count)
{
    struct parzen *p = calloc (1, sizeof (*p));

    if (!p)
        return NULL;
    *p = (struct parzen){ .dims = dims, .n = n, .count = count };
    p->log_weight = malloc ((count + 1) * sizeof (double));
    p->scratch = malloc ((count + 1) * sizeof (double));
    p->kernels = malloc ((count + 1) * (n + 1) * sizeof (struct kernel));
    if (!p->log_weight || !p->scratch || !p->kernels || fit_kernels (p, points) < 0) {
        parzen_destroy (p);
        return NULL;
    }
    weigh (p);
    return p;
}

void parzen_destroy (struct parzen *p)
{
    if (p) {
        free (p->log_weight);
        free (p->scratch);
        free (p->kernels);
        free (p);
    }
}

/* ---- sampling ---- */

static int64_t choose_kernel (const struct parzen *p, struct rng *r)
{
    double part = rng_next (r);
    int64_t k = 0;

    for (; k < p->count; k++)
        if ((part -= exp (p->log_weight[k])) < 0)
            break;
    return k;
}

static double sample_choice (const struct parzen *p, const struct kernel *kernel, int64_t choices,
                             struct rng *r)
{
    double part = 1.0 / (p->count + 1);

    if (kernel->mu >= 0 && rng_next (r) * (1 + part * choices) < 1)
        return kernel->mu;
    return clip_bandwidth (floor (rng_next (r) * choices), 0, choices - 1);
}

/* Draw until a number is inside: at least a third are, because mu is. */
static double sample_number (const struct dim *d, const struct kernel *kernel, struct rng *r)
{
    double low = space_low (d), high = space_high (d), u = kernel->mu;

    for (int i = 0; i < TRIES && low < high; i++) {
        double v = kernel->mu + kernel->sigma * rng_gauss (r);
        if (v >= low && v <= high) {
            u = v;
            break;
        }
    }
    return space_inner (d, space_outer (d, u));
}

void parzen_sample (const struct parzen *p, struct rng *r, double *u)
{
    int64_t k = choose_kernel (p, r);

    for (int64_t i = 0; i < p->n; i++) {
        const struct dim *d = p->dims + i;
        const struct kernel *kernel = kernel_at (p, k, i);
        u[i] = d->type == PARAM_CATEGORICAL ? sample_choice (p, kernel, d->choices, r)
                                            : sample_number (d, kernel, r);
    }
}

/* ---- density ---- */

/* Add the log density of u in dimension i to each kernel. */
static void add_density (const struct parzen *p, int64_t i, double u)
{
    const struct kernel *kernel = kernel_at (p, 0, i);

    for (int64_t k = 0; k <= p->count; k++, kernel++) {
        double z = (u - kernel->mu) * kernel->inverse;
        p->scratch[k] -= z * z / 2 + kernel->log_norm;
    }
}

static void add_choice (const struct parzen *p, int64_t i, double u)
{
    double part = 1.0 / (p->count + 1);
    double all = 1 + part * p->dims[i].choices;
    double hit = log ((part + 1) / all), miss = log (part / all);

    for (int64_t k = 0; k < p->count; k++)
        p->scratch[k] += kernel_at (p, k, i)->mu == u ? hit : miss;
    p->scratch[p->count] -= log (p->dims[i].choices);
}

static double log_cell (const struct kernel *kernel, double low, double high)
{
    double a = (low - kernel->mu) * kernel->inverse;
    double b = (high - kernel->mu) * kernel->inverse;

    return log_mass (a, b) - kernel->log_norm;
}

/* Masses are expensive, and norming adds at most e^2: skip a kernel that cannot
 * come within e^40 of the prior.
 */
static void add_masses (const struct parzen *p, const double *u)
{
    double low[DISCRETE_MAX], high[DISCRETE_MAX], least;
    int64_t dims[DISCRETE_MAX], n = 0;

    for (int64_t i = 0; i < p->n && n < DISCRETE_MAX; i++)
        if (is_discrete_dim (p->dims + i)) {
            space_cell (p->dims + i, u[i], &low[n], &high[n]);
            dims[n++] = i;
        }
    for (int64_t k = 0; k < n; k++)
        p->scratch[p->count] += log_cell (kernel_at (p, p->count, dims[k]), low[k], high[k]);
    least = p->scratch[p->count] - NEGLIGIBLE - 2.0 * n;
    for (int64_t k = 0; k < p->count; k++)
        for (int64_t i = 0; i < n && p->scratch[k] > least; i++)
            p->scratch[k] += log_cell (kernel_at (p, k, dims[i]), low[i], high[i]);
}

double parzen_log (const struct parzen *p, const double *u)
{
    double most = -INFINITY, sum = 0;

    memcpy (p->scratch, p->log_weight, (p->count + 1) * sizeof (double));
    for (int64_t i = 0; i < p->n; i++)
        if (p->dims[i].type == PARAM_CATEGORICAL)
            add_choice (p, i, u[i]);
        else if (!is_discrete_dim (p->dims + i))
            add_density (p, i, u[i]);
    add_masses (p, u);
    for (int64_t k = 0; k <= p->count; k++)
        most = p->scratch[k] > most ? p->scratch[k] : most;
    for (int64_t k = 0; k <= p->count; k++)
        if (p->scratch[k] > most - NEGLIGIBLE)
            sum += exp (p->scratch[k] - most);
    return most + log (sum);
}
