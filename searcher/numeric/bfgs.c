/* SPDX-License-Identifier: Apache-2.0 */
/* Minimise a smooth function within bounds, by BFGS. */
#include "searcher/numeric/numeric.h"

#include <math.h>
#include <string.h>

#include "searcher/numeric/row.h"

enum { HALVINGS = 8, STEP_MAX = 2 };

struct vectors {
    double *g, *next, *g_next, *step, *hy, *y, *h; /* h: n x n */
};

static struct vectors vectors (const struct bfgs *b)
{
    double *at = b->room;
    int64_t n = b->n;

    return (
        struct vectors){ at, at + n, at + 2 * n, at + 3 * n, at + 4 * n, at + 5 * n, at + 6 * n };
}

int64_t bfgs_room (int64_t n)
{
    return n * (n + 6);
}

void bfgs_reset (const struct bfgs *b)
{
    double *h = vectors (b).h;

    memset (h, 0, b->n * b->n * sizeof (*h));
    for (int64_t i = 0; i < b->n; i++)
        h[i * b->n + i] = 1;
}

void bfgs_scale (const struct bfgs *b, double scale)
{
    double *h = vectors (b).h;

    for (int64_t i = 0; i < b->n * b->n; i++)
        h[i] /= scale;
}

/* Set a downhill step of at most STEP_MAX in any direction.  Returns the slope. */
static double set_step (const struct bfgs *b, const struct vectors *v)
{
    double most = 0, slope = 0;

    for (int64_t i = 0; i < b->n; i++) {
        v->step[i] = -row_dot (v->h + i * b->n, v->g, b->n);
        most = fmax (most, fabs (v->step[i]));
    }
    for (int64_t i = 0; i < b->n; i++) {
        if (most > STEP_MAX)
            v->step[i] *= STEP_MAX / most;
        slope += v->step[i] * v->g[i];
    }
    return slope;
}

/* H = (1 - r s y')H(1 - r y s') + r s s', r = 1/y's (6.17 of Nocedal and Wright) */
static void update (const struct bfgs *b, const struct vectors *v, const double *x)
{
    double sy, yhy;

    for (int64_t i = 0; i < b->n; i++) {
        v->step[i] = v->next[i] - x[i];
        v->y[i] = v->g_next[i] - v->g[i];
    }
    if ((sy = row_dot (v->step, v->y, b->n)) <= 1e-10)
        return;
    for (int64_t i = 0; i < b->n; i++)
        v->hy[i] = row_dot (v->h + i * b->n, v->y, b->n);
    yhy = row_dot (v->hy, v->y, b->n);
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t j = 0; j < b->n; j++)
            v->h[i * b->n + j] += (1 + yhy / sy) * v->step[i] * v->step[j] / sy
                                  - (v->hy[i] * v->step[j] + v->step[i] * v->hy[j]) / sy;
}

/* Try ever shorter steps.  Returns the new value, or the old one. */
static double line_search (const struct bfgs *b, const struct vectors *v, const double *x, double f,
                           double slope)
{
    double t = 1;

    for (int i = 0; i < HALVINGS; i++, t /= 2) {
        double now;
        for (int64_t k = 0; k < b->n; k++)
            v->next[k] = fmin (fmax (x[k] + t * v->step[k], b->low[k]), b->high[k]);
        now = b->f (b->arg, v->next, v->g_next);
        if (now <= f + 1e-4 * t * slope)
            return now;
    }
    return f;
}

void bfgs_minimise (const struct bfgs *b, double *x, int steps)
{
    const struct vectors v = vectors (b);
    double f = b->f (b->arg, x, v.g), now, slope;

    for (int i = 0; i < steps && isfinite (f); i++) {
        if ((slope = set_step (b, &v)) > -1e-9)
            return;
        now = line_search (b, &v, x, f, slope);
        if (!(now < f))
            return;
        update (b, &v, x);
        memcpy (x, v.next, b->n * sizeof (*x));
        memcpy (v.g, v.g_next, b->n * sizeof (*x));
        if (f - now < b->tolerance)
            return;
        f = now;
    }
}
