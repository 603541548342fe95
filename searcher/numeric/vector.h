/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that are compiled for several vector units. */
#pragma once

#include <features.h>
#include <stdint.h>
#include <string.h>

/* Every version computes each number by the same operations in the same order,
 * so that the results are equal.
 */

/* An instrumented program cannot select a function before it starts, and
 * clang's clones cannot be called from other files.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) && !defined(__clang__)      \
    && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__ ((target_clones ("avx2", "default")))
#else
#define CLONES
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define VECTOR CLONES __attribute__ ((optimize ("tree-vectorize", "vect-cost-model=dynamic")))
#else
#define VECTOR CLONES
#endif
#define INLINE static inline __attribute__ ((always_inline))

/* Sum of a[i] * b[i], in four parts. */
INLINE double vector_dot (const double *a, const double *b, int64_t n)
{
    double s[4] = { 0 };
    int64_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            s[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        s[0] += a[i] * b[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* e^-a for 0 <= a <= 700: 2^k e^f, |f| <= ln(2)/2, where the series for e^f
 * ends with f^13/13! < 1e-16. libm's exp() is a call, and its results differ
 * between machines.
 */
INLINE double exp_minus (double a)
{
    const double round = 0x1.8p52;
    double k = -a * 0x1.71547652b82fep+0 + round;
    double f = -a - (k - round) * 0x1.62e42fefa39efp-1 - (k - round) * 0x1.abc9e3b39803fp-56;
    double p = 1.0 / 6227020800;
    uint64_t bits;

    /* unrolled: otherwise the surrounding loop cannot be vectorised */
    p = p * f + 1.0 / 479001600;
    p = p * f + 1.0 / 39916800;
    p = p * f + 1.0 / 3628800;
    p = p * f + 1.0 / 362880;
    p = p * f + 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 0.5;
    p = p * f + 1;
    p = p * f + 1;
    memcpy (&bits, &k, sizeof (bits));
    bits = (bits + 1023) << 52;
    memcpy (&k, &bits, sizeof (k));
    return p * k;
}

/* -log u for 0 < u < 1, not subnormal: u = 2^k r with r >= sqrt(1/2), and log r
 * = 2 atanh s, s = (r - 1)/(r + 1), |s| < 0.172; the series ends with s^23/23 <
 * 1e-18.
 */
INLINE double minus_log (double u)
{
    const uint64_t root_half = UINT64_C (0x3fe6a09e667f3bcd);
    uint64_t bits, power;
    double r, k, s, t, p;

    memcpy (&bits, &u, sizeof (bits));
    /* k + 1024, as an integer and as a number */
    power = (bits - root_half + (UINT64_C (1024) << 52)) >> 52;
    bits -= (power - 1024) << 52;
    memcpy (&r, &bits, sizeof (r));
    power |= UINT64_C (0x4330000000000000);
    memcpy (&k, &power, sizeof (k));
    k -= 0x1p52 + 1024;
    s = (r - 1) / (r + 1);
    t = s * s;
    p = 1.0 / 21;
    p = p * t + 1.0 / 19;
    p = p * t + 1.0 / 17;
    p = p * t + 1.0 / 15;
    p = p * t + 1.0 / 13;
    p = p * t + 1.0 / 11;
    p = p * t + 1.0 / 9;
    p = p * t + 1.0 / 7;
    p = p * t + 1.0 / 5;
    p = p * t + 1.0 / 3;
    p = p * t + 1;
    return -k * 0x1.62e42fefa39efp-1 - (k * 0x1.abc9e3b39803fp-56 + 2 * s * p);
}
