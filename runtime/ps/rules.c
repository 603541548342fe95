/* SPDX-License-Identifier: Apache-2.0 */
/* Update rules: SGD, momentum, Adagrad and so on, on arrays. */
#include "runtime/ps/rules.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
/* vectors; and the same bits with every processor */
#pragma GCC optimize("O3", "fp-contract=off")
#endif

void ps_add (float *restrict sum, const float *restrict more, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += more[i];
}

static void add (const struct ps_spec *s,
                 uint32_t time,
                 float *const value[1 + PS_SLOTS],
                 const float *gradient,
                 size_t n)
{
    (void)s;
    (void)time;
    ps_add (value[0], gradient, n);
}

static void assign (const struct ps_spec *s,
                    uint32_t time,
                    float *const value[1 + PS_SLOTS],
                    const float *gradient,
                    size_t n)
{
    (void)s;
    (void)time;
    memcpy (value[0], gradient, n * sizeof (float));
}

static void sgd (const struct ps_spec *s,
                 uint32_t time,
                 float *const value[1 + PS_SLOTS],
                 const float *restrict g,
                 size_t n)
{
    float *restrict v = value[0];
    float *restrict m = value[1];
    float rate = (float)s->rate;
    float momentum = (float)s->momentum;
    float decay = (float)s->decay;

    (void)time;
    for (size_t i = 0; i < n; i++) {
        m[i] = momentum * m[i] + (g[i] + decay * v[i]);
        v[i] -= rate * m[i];
    }
}

static void adagrad (const struct ps_spec *s,
                     uint32_t time,
                     float *const value[1 + PS_SLOTS],
                     const float *restrict g,
                     size_t n)
{
    float *restrict v = value[0];
    float *restrict a = value[1];
    float rate = (float)s->rate;
    float decay = (float)s->decay;
    float epsilon = (float)s->epsilon;

    (void)time;
    for (size_t i = 0; i < n; i++) {
        float d = g[i] + decay * v[i];
        a[i] += d * d;
        v[i] -= rate * d / (sqrtf (a[i]) + epsilon);
    }
}

static void adam (const struct ps_spec *s,
                  uint32_t time,
                  float *const value[1 + PS_SLOTS],
                  const float *restrict g,
                  size_t n)
{
    float *restrict v = value[0];
    float *restrict m = value[1];
    float *restrict q = value[2];
    float rate = (float)s->rate;
    float decay = (float)s->decay;
    float epsilon = (float)s->epsilon;
    float b1 = (float)s->beta1;
    float b2 = (float)s->beta2;
    float c1 = (float)(1 / (1 - pow (s->beta1, time)));
    float c2 = (float)(1 / (1 - pow (s->beta2, time)));

    for (size_t i = 0; i < n; i++) {
        float d = g[i] + decay * v[i];
        m[i] = b1 * m[i] + (1 - b1) * d;
        q[i] = b2 * q[i] + (1 - b2) * (d * d);
        v[i] -= rate * (m[i] * c1) / (sqrtf (q[i] * c2) + epsilon);
    }
}

/* clang-format off */
static const struct ps_rule rules[] = {
    [SLURMDL_PS_ADD]     = { "add",     0, false, add },
    [SLURMDL_PS_ASSIGN]  = { "assign",  0, true,  assign },
    [SLURMDL_PS_SGD]     = { "sgd",     1, false, sgd },
    [SLURMDL_PS_ADAGRAD] = { "adagrad", 1, false, adagrad },
    [SLURMDL_PS_ADAM]    = { "adam",    2, false, adam },
};
/* clang-format on */

const struct ps_rule *ps_rule (uint32_t rule)
{
    return rule < sizeof (rules) / sizeof (*rules) ? &rules[rule] : NULL;
}
