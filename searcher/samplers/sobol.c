/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a scrambled Sobol sequence. */
#include "searcher/numeric/rng.h"
#include "searcher/samplers/samplers.h"

enum { BITS = 32, DIMS = 64, DEGREE_MAX = 9 };

/* Primitive polynomials over GF(2), including the leading bit, and initial
 * direction numbers of dimensions 2 to 64: S. Joe and F. Y. Kuo, Constructing
 * Sobol sequences with better two-dimensional projections, SIAM J. Sci. Comput.
 * 30 (2008), file new-joe-kuo-6.21201.  Dimension 1 is van der Corput's.
 */
/* clang-format off */
static const struct {
    uint16_t polynomial;
    uint16_t initial[DEGREE_MAX];
} table[DIMS - 1] = {
    { 3, { 1 } }, { 7, { 1, 3 } },
    { 11, { 1, 3, 1 } }, { 13, { 1, 1, 1 } },
    { 19, { 1, 1, 3, 3 } }, { 25, { 1, 3, 5, 13 } },
    { 37, { 1, 1, 5, 5, 17 } }, { 41, { 1, 1, 5, 5, 5 } },
    { 47, { 1, 1, 7, 11, 19 } }, { 55, { 1, 1, 5, 1, 1 } },
    { 59, { 1, 1, 1, 3, 11 } }, { 61, { 1, 3, 5, 5, 31 } },
    { 67, { 1, 3, 3, 9, 7, 49 } }, { 91, { 1, 1, 1, 15, 21, 21 } },
    { 97, { 1, 3, 1, 13, 27, 49 } }, { 103, { 1, 1, 1, 15, 7, 5 } },
    { 109, { 1, 3, 1, 15, 13, 25 } }, { 115, { 1, 1, 5, 5, 19, 61 } },
    { 131, { 1, 3, 7, 11, 23, 15, 103 } }, { 137, { 1, 3, 7, 13, 13, 15, 69 } },
    { 143, { 1, 1, 3, 13, 7, 35, 63 } }, { 145, { 1, 3, 5, 9, 1, 25, 53 } },
    { 157, { 1, 3, 1, 13, 9, 35, 107 } }, { 167, { 1, 3, 1, 5, 27, 61, 31 } },
    { 171, { 1, 1, 5, 11, 19, 41, 61 } }, { 185, { 1, 3, 5, 3, 3, 13, 69 } },
    { 191, { 1, 1, 7, 13, 1, 19, 1 } }, { 193, { 1, 3, 7, 5, 13, 19, 59 } },
    { 203, { 1, 1, 3, 9, 25, 29, 41 } }, { 211, { 1, 3, 5, 13, 23, 1, 55 } },
    { 213, { 1, 3, 7, 3, 13, 59, 17 } }, { 229, { 1, 3, 1, 3, 5, 53, 69 } },
    { 239, { 1, 1, 5, 5, 23, 33, 13 } }, { 241, { 1, 1, 7, 7, 1, 61, 123 } },
    { 247, { 1, 1, 7, 9, 13, 61, 49 } }, { 253, { 1, 3, 3, 5, 3, 55, 33 } },
    { 285, { 1, 3, 1, 15, 31, 13, 49, 245 } }, { 299, { 1, 3, 5, 15, 31, 59, 63, 97 } },
    { 301, { 1, 3, 1, 11, 11, 11, 77, 249 } }, { 333, { 1, 3, 1, 11, 27, 43, 71, 9 } },
    { 351, { 1, 1, 7, 15, 21, 11, 81, 45 } }, { 355, { 1, 3, 7, 3, 25, 31, 65, 79 } },
    { 357, { 1, 3, 1, 1, 19, 11, 3, 205 } }, { 361, { 1, 1, 5, 9, 19, 21, 29, 157 } },
    { 369, { 1, 3, 7, 11, 1, 33, 89, 185 } }, { 391, { 1, 3, 3, 3, 15, 9, 79, 71 } },
    { 397, { 1, 3, 7, 11, 15, 39, 119, 27 } }, { 425, { 1, 1, 3, 1, 11, 31, 97, 225 } },
    { 451, { 1, 1, 1, 3, 23, 43, 57, 177 } }, { 463, { 1, 3, 7, 7, 17, 17, 37, 71 } },
    { 487, { 1, 3, 1, 5, 27, 63, 123, 213 } }, { 501, { 1, 1, 3, 5, 11, 43, 53, 133 } },
    { 529, { 1, 3, 5, 5, 29, 17, 47, 173, 479 } }, { 539, { 1, 3, 3, 11, 3, 1, 109, 9, 69 } },
    { 545, { 1, 1, 1, 5, 17, 39, 23, 5, 343 } }, { 557, { 1, 3, 1, 5, 25, 15, 31, 103, 499 } },
    { 563, { 1, 1, 1, 11, 11, 17, 63, 105, 183 } }, { 601, { 1, 1, 5, 11, 9, 29, 97, 231, 363 } },
    { 607, { 1, 1, 5, 15, 19, 45, 41, 7, 383 } }, { 617, { 1, 3, 7, 7, 31, 19, 83, 137, 221 } },
    { 623, { 1, 1, 1, 3, 23, 15, 111, 223, 83 } }, { 631, { 1, 1, 5, 13, 31, 15, 55, 25, 161 } },
    { 637, { 1, 1, 3, 13, 25, 47, 39, 87, 257 } },
};
/* clang-format on */

static int degree (uint32_t polynomial)
{
    int n = -1;

    for (; polynomial; polynomial >>= 1)
        n++;
    return n;
}

/* Direction numbers of dimension 'd', the first bit in the highest position. */
static void directions (int64_t d, uint32_t v[BITS])
{
    uint32_t p = d ? table[d - 1].polynomial : 0;
    int n = degree (p);

    for (int i = 0; i < BITS; i++) {
        if (d == 0)
            v[i] = UINT32_C (1) << (BITS - 1 - i);
        else if (i < n)
            v[i] = (uint32_t)table[d - 1].initial[i] << (BITS - 1 - i);
        else {
            v[i] = v[i - n] ^ (v[i - n] >> n);
            for (int k = 1; k < n; k++)
                if (p >> (n - k) & 1)
                    v[i] ^= v[i - k];
        }
    }
}

static uint32_t reverse (uint32_t x)
{
    uint32_t y = 0;

    for (int i = 0; i < BITS; i++)
        y |= (x >> i & 1) << (BITS - 1 - i);
    return y;
}

/* Owen's nested uniform scrambling, by a hash in which each bit depends only on
 * the bits below it (S. Laine and T. Karras, 2011; constants of B. Burley, JCGT
 * 9(4), 2020).
 */
static uint32_t scramble (uint32_t x, uint32_t seed)
{
    x = reverse (x);
    x += seed;
    x ^= x * UINT32_C (0x6c50b47c);
    x ^= x * UINT32_C (0xb82f1e52);
    x ^= x * UINT32_C (0xc7afe638);
    x ^= x * UINT32_C (0x8d22f6e6);
    return reverse (x);
}

static double coordinate (const struct dim *d, int64_t i, uint64_t seed, long trial)
{
    uint32_t n = (uint32_t)trial - 1;
    uint32_t v[BITS];
    uint32_t x = 0;

    /* dimensions beyond the table are random */
    if (i >= DIMS)
        return rng_unit (seed, trial, d->key);
    directions (i, v);
    for (int k = 0; n >> k; k++)
        if (n >> k & 1)
            x ^= v[k];
    x = scramble (x, (uint32_t)(rng_bits (seed, 0, d->key, 0) >> 32));
    return (x + 0.5) * 0x1p-32;
}

void sobol_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);

    for (int64_t i = 0; i < s->n; i++)
        x[i] = space_at (dims + i, coordinate (dims + i, i, s->seed, trial));
}

const struct search_sampler sample_sobol = {
    .point = sobol_point,
};
