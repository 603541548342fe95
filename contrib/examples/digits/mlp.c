/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward pass of a small perceptron. */
#include "mlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood, 2014) */
static uint64_t next (uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform (uint64_t *state)
{
    return ((double)(next (state) >> 11) + 0.5) / 9007199254740992.0;
}

static float gauss (uint64_t *state)
{
    double r = sqrt (-2 * log (uniform (state)));

    return (float)(r * cos (6.283185307179586 * uniform (state)));
}

/* ---- the layers' places in the one array of weights ---- */

static float *in_weights (const struct mlp *m, float *base)
{
    (void)m;
    return base;
}

static float *in_bias (const struct mlp *m, float *base)
{
    return base + (size_t)PIXELS * (size_t)m->hidden;
}

static float *out_weights (const struct mlp *m, float *base)
{
    return in_bias (m, base) + m->hidden;
}

static float *out_bias (const struct mlp *m, float *base)
{
    return out_weights (m, base) + (size_t)m->hidden * CLASSES;
}

int mlp_init (struct mlp *m, int hidden, enum activation a, uint64_t seed)
{
    size_t h = (size_t)hidden;
    size_t n = PIXELS * h + h + h * CLASSES + CLASSES;

    *m = (struct mlp){ .hidden = hidden, .activation = a, .n = n };
    m->weights = calloc (n, sizeof (float));
    m->velocity = calloc (n, sizeof (float));
    m->gradient = calloc (n, sizeof (float));
    if (!m->weights || !m->velocity || !m->gradient) {
        mlp_free (m);
        return -1;
    }
    for (size_t i = 0; i < PIXELS * h; i++)
        m->weights[i] = sqrtf (2.0f / PIXELS) * gauss (&seed);
    for (size_t i = 0; i < h * CLASSES; i++)
        out_weights (m, m->weights)[i] = sqrtf (2.0f / (float)h) * gauss (&seed);
    return 0;
}

void mlp_free (struct mlp *m)
{
    free (m->weights);
    free (m->velocity);
    free (m->gradient);
    *m = (struct mlp){ 0 };
}

/* ---- forward ---- */

/* y[o] = b[o] + sum over i of x[i] w[i][o] */
static void affine (const float *w, const float *b, const float *x, int in, int out, float *y)
{
    memcpy (y, b, (size_t)out * sizeof (float));
    for (int i = 0; i < in; i++)
        for (int o = 0; o < out; o++)
            y[o] += x[i] * w[(size_t)i * (size_t)out + (size_t)o];
}

static void activate (const struct mlp *m, float *h)
{
    for (int i = 0; i < m->hidden; i++)
        h[i] = m->activation == TANH ? tanhf (h[i]) : fmaxf (h[i], 0);
}

static void forward (const struct mlp *m, const float *x, float *h, float *out)
{
    affine (m->weights, in_bias (m, m->weights), x, PIXELS, m->hidden, h);
    activate (m, h);
    affine (out_weights (m, m->weights), out_bias (m, m->weights), h, m->hidden, CLASSES, out);
}

/* Scores to probabilities; returns the cross-entropy of class y. */
static double softmax (float *out, int y)
{
    float top = out[0];
    float sum = 0;

    for (int o = 1; o < CLASSES; o++)
        top = fmaxf (top, out[o]);
    for (int o = 0; o < CLASSES; o++)
        sum += out[o] = expf (out[o] - top);
    for (int o = 0; o < CLASSES; o++)
        out[o] /= sum;
    return -log ((double)out[y] + 1e-30);
}

double mlp_accuracy (const struct mlp *m, const struct data *d)
{
    float *h = calloc ((size_t)m->hidden, sizeof (*h));
    float out[CLASSES];
    size_t right = 0;

    for (size_t i = 0; h && i < d->n; i++) {
        int best = 0;
        forward (m, d->x[i], h, out);
        for (int o = 1; o < CLASSES; o++)
            if (out[o] > out[best])
                best = o;
        right += best == d->y[i];
    }
    free (h);
    /* weights that are no numbers classify nothing */
    return isfinite (m->weights[0]) ? (double)right / (double)d->n : NAN;
}

/* ---- backward ---- */

static void add_outer (float *g, const float *x, const float *d, int in, int out)
{
    for (int i = 0; i < in; i++)
        for (int o = 0; o < out; o++)
            g[(size_t)i * (size_t)out + (size_t)o] += x[i] * d[o];
}

static void add (float *g, const float *d, int n)
{
    for (int i = 0; i < n; i++)
        g[i] += d[i];
}

static void hidden_delta (const struct mlp *m, const float *h, const float *out, float *delta)
{
    const float *w = out_weights (m, m->weights);

    for (int i = 0; i < m->hidden; i++) {
        float s = 0;
        for (int o = 0; o < CLASSES; o++)
            s += w[i * CLASSES + o] * out[o];
        delta[i] = s * (m->activation == TANH ? 1 - h[i] * h[i] : h[i] > 0);
    }
}

double mlp_gradient (struct mlp *m, const struct data *d, size_t i, float *h)
{
    const float *x = d->x[i];
    float *delta = h + m->hidden;
    float out[CLASSES];
    int y = d->y[i];
    double loss;

    forward (m, x, h, out);
    loss = softmax (out, y);
    out[y] -= 1;
    hidden_delta (m, h, out, delta);
    add_outer (out_weights (m, m->gradient), h, out, m->hidden, CLASSES);
    add (out_bias (m, m->gradient), out, CLASSES);
    add_outer (in_weights (m, m->gradient), x, delta, PIXELS, m->hidden);
    add (in_bias (m, m->gradient), delta, m->hidden);
    return loss;
}

void mlp_update (struct mlp *m, const struct sgd *sgd, size_t batch, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        float g = m->gradient[i] / (float)batch + sgd->weight_decay * m->weights[i];
        m->velocity[i] = sgd->momentum * m->velocity[i] + g;
        m->weights[i] -= sgd->lr * m->velocity[i];
    }
}

void mlp_order (size_t *order, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = (size_t)(next (&seed) % (i + 1));
        size_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

int mlp_epoch (struct mlp *m, const struct data *d, const struct sgd *sgd, uint64_t seed,
               int (*stop) (void *arg), void *arg, double *loss)
{
    size_t *order = calloc (d->n, sizeof (*order));
    float *h = calloc ((size_t)m->hidden * 2, sizeof (*h));
    size_t stride = sgd->size ? sgd->size : 1;
    size_t taken = 0;
    int stopped = !order || !h;

    *loss = 0;
    if (!stopped)
        mlp_order (order, d->n, seed);
    for (size_t at = 0; at < d->n && !stopped; at += sgd->batch) {
        size_t end = at + sgd->batch < d->n ? at + sgd->batch : d->n;
        if ((stopped = stop (arg)))
            break;
        memset (m->gradient, 0, m->n * sizeof (float));
        for (size_t i = at + sgd->rank; i < end; i += stride, taken++)
            *loss += mlp_gradient (m, d, order[i], h);
        if (sgd->sum && (stopped = sgd->sum (arg, m->gradient, m->n) < 0))
            break;
        mlp_update (m, sgd, end - at, 0, m->n);
    }
    *loss /= taken ? (double)taken : 1;
    free (order);
    free (h);
    return stopped;
}
