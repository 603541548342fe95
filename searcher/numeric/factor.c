/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factorisation of a covariance, and solving with it. */
#include "searcher/numeric/numeric.h"

#include <math.h>

#include "searcher/numeric/vector.h"

VECTOR double factor_dot (const double *a, const double *b, int64_t n)
{
    return vector_dot (a, b, n);
}

VECTOR int factor_make (const struct factor *f, int64_t from)
{
    for (int64_t i = from; i < f->n; i++) {
        double *li = f->l + i * f->stride, v;
        for (int64_t j = 0; j < i; j++) {
            const double *lj = f->l + j * f->stride;
            li[j] = (li[j] - vector_dot (li, lj, j)) / lj[j];
        }
        v = li[i] - vector_dot (li, li, i);
        if (!(v > 0))
            return -1;
        li[i] = sqrt (v);
    }
    return 0;
}

VECTOR void factor_solve (const struct factor *f, const double *b, double *x)
{
    for (int64_t i = 0; i < f->n; i++) {
        const double *li = f->l + i * f->stride;
        x[i] = (b[i] - vector_dot (li, x, i)) / li[i];
    }
}

VECTOR void factor_solve_back (const struct factor *f, double *x)
{
    for (int64_t i = f->n - 1; i >= 0; i--) {
        const double *li = f->l + i * f->stride;
        x[i] /= li[i];
        for (int64_t j = 0; j < i; j++)
            x[j] -= li[j] * x[i];
    }
}

VECTOR void factor_invert (const struct factor *f, double *inv)
{
    for (int64_t i = 0; i < f->n; i++) {
        double *x = inv + i * f->stride;
        x[i] = 1 / f->l[i * f->stride + i];
        for (int64_t k = i + 1; k < f->n; k++) {
            const double *lk = f->l + k * f->stride;
            x[k] = -vector_dot (lk + i, x + i, k - i) / lk[k];
        }
    }
}

VECTOR double factor_inverse (const struct factor *f, const double *inv, int64_t i, int64_t j)
{
    return vector_dot (inv + i * f->stride + i, inv + j * f->stride + i, f->n - i);
}

VECTOR double factor_weigh (const struct factor *f, const double *inv, const double *a,
                            double scale, double *w)
{
    double trace = 0;

    for (int64_t i = 0; i < f->n; i++) {
        const double *x = inv + i * f->stride + i;
        for (int64_t j = 0; j < i; j++, w++)
            *w *= scale * (vector_dot (x, inv + j * f->stride + i, f->n - i) - a[i] * a[j]);
        trace += vector_dot (x, x, f->n - i) - a[i] * a[i];
    }
    return trace;
}
