/* SPDX-License-Identifier: Apache-2.0 */
/* Select by the bits of the magnitudes, from the top. */
#include "runtime/comm/engine/topk.h"

#include <math.h>
#include <string.h>

size_t top_k_count (size_t n, double keep)
{
    size_t k = (size_t)ceil (keep * (double)n);

    return k > n ? n : k;
}

static size_t indices_bytes (size_t k)
{
    return (k * sizeof (uint32_t) + 7) / 8 * 8;
}

size_t top_k_bytes (size_t k, enum slurmdl_type type)
{
    return indices_bytes (k) + (k * slurmdl_type_size (type) + 7) / 8 * 8;
}

/* The order of magnitudes is that of these numbers. */
static uint64_t magnitude (const void *a, size_t i, enum slurmdl_type type)
{
    uint64_t wide;
    uint32_t narrow;

    if (type == SLURMDL_F64) {
        memcpy (&wide, (const double *)a + i, sizeof (wide));
        return wide & ~(UINT64_C (1) << 63);
    }
    memcpy (&narrow, (const float *)a + i, sizeof (narrow));
    return narrow & 0x7fffffffu;
}

enum { DIGIT = 11 };

/* The smallest of the 'k' largest, and how many equal to it are among them: a
 * digit a round, of those that have the digits found before.
 */
static uint64_t
threshold (const void *a, size_t n, size_t *k, enum slurmdl_type type)
{
    int shift = type == SLURMDL_F64 ? 66 : 33;
    uint64_t found = 0;

    while (shift > 0) {
        size_t count[1 << DIGIT] = { 0 };
        int digit = (1 << DIGIT) - 1;
        shift -= DIGIT;
        for (size_t i = 0; i < n; i++) {
            uint64_t m = magnitude (a, i, type);
            if (shift + DIGIT >= 64 || m >> (shift + DIGIT) == found)
                count[m >> shift & ((1 << DIGIT) - 1)]++;
        }
        for (; count[digit] < *k; digit--)
            *k -= count[digit];
        found = found << DIGIT | (unsigned)digit;
    }
    return found;
}

static void add_f32 (float *to, const float *in, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += scale * in[i];
}

static void add_f64 (double *to, const double *in, double scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += scale * in[i];
}

/* Move the i-th to the j-th place of what is sent. */
static void
move (void *residual, size_t i, void *values, size_t j, enum slurmdl_type type)
{
    size_t size = slurmdl_type_size (type);
    char *from = (char *)residual + i * size;

    memcpy ((char *)values + j * size, from, size);
    memset (from, 0, size);
}

void top_k_choose (void *residual,
                   const void *in,
                   double scale,
                   size_t n,
                   size_t k,
                   enum slurmdl_type type,
                   void *out)
{
    uint32_t *index = out;
    void *values = (char *)out + indices_bytes (k);
    size_t equal = k;
    size_t j = 0;
    uint64_t least;

    if (type == SLURMDL_F64)
        add_f64 (residual, in, scale, n);
    else
        add_f32 (residual, in, (float)scale, n);
    if (!k)
        return;
    least = threshold (residual, n, &equal, type);
    for (size_t i = 0; i < n && j < k; i++) {
        uint64_t m = magnitude (residual, i, type);
        if (m < least || (m == least && !equal))
            continue;
        equal -= m == least;
        index[j] = (uint32_t)i;
        move (residual, i, values, j++, type);
    }
}

void top_k_blank (size_t k, enum slurmdl_type type, void *out)
{
    memset (out, 0, top_k_bytes (k, type));
}

void top_k_add (
    void *out, const void *chosen, size_t n, size_t k, enum slurmdl_type type)
{
    const uint32_t *index = chosen;
    const void *values = (const char *)chosen + indices_bytes (k);

    for (size_t j = 0; j < k; j++) {
        if (index[j] >= n)
            continue;
        if (type == SLURMDL_F64)
            ((double *)out)[index[j]] += ((const double *)values)[j];
        else
            ((float *)out)[index[j]] += ((const float *)values)[j];
    }
}
