/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on two arrays of any type, compared with plain arithmetic. */
#include "tests/runtime/comm/pairs.h"

#include "runtime/comm/reduce/reduce.h"
#include "tests/runtime/comm/format.h"
#include "tests/unit.h"

static double least (double a, double b)
{
    if (isnan (a) || isnan (b))
        return NAN;
    if (a == b)
        return signbit (a) ? a : b;
    return a < b ? a : b;
}

static double most (double a, double b)
{
    return -least (-a, -b);
}

/* As F32 does: the double result of two F32 numbers rounds to the right float. */
static double compute (enum slurmdl_op op, double a, double b)
{
    switch (op) {
    case SLURMDL_SUM:
    case SLURMDL_AVERAGE:
        return (float)(a + b);
    case SLURMDL_PRODUCT:
        return (float)(a * b);
    case SLURMDL_MIN:
        return least (a, b);
    case SLURMDL_MAX:
        return most (a, b);
    }
    return NAN;
}

static const enum slurmdl_op ops[] = { SLURMDL_SUM, SLURMDL_AVERAGE, SLURMDL_MIN, SLURMDL_MAX,
                                       SLURMDL_PRODUCT };
enum { OPS = COUNT (ops) };

static void check_pairs (const struct format *f, const void *a, const void *b, void *out, size_t n)
{
    for (int k = 0; k < OPS; k++) {
        reduce_pair (out, a, b, n, f->type, ops[k]);
        for (size_t i = 0; i < n; i++) {
            double x = decode (f, code_at (f, a, i));
            double y = decode (f, code_at (f, b, i));
            double want = compute (ops[k], x, y);

            assert_code (f, code_at (f, out, i), encode (f, want), want);
        }
    }
}

void all_pairs_of_bytes (void **state)
{
    uint8_t *a = malloc (65536), *b = malloc (65536), *out = malloc (65536);

    for (int i = 0; i < 65536; i++) {
        a[i] = (uint8_t)i;
        b[i] = (uint8_t)(i >> 8);
    }
    for (size_t k = 0; k < FORMATS; k++)
        if (codes (&formats[k]) == 256)
            check_pairs (&formats[k], a, b, out, 65536);
    free (a);
    free (b);
    free (out);
}

/* all codes with special values, and with random ones */
void pairs_of_halves (void **state)
{
    static const double special[] = {
        0,           -0.0,  1,        -1,         INFINITY,     -INFINITY,
        NAN,         65504, -65504,   0x1p-24,    -0x1p-24,     0x1p-14,
        0x1.ffcp-15, 3,     0x1p-133, 0x1.fep127, 1.0009765625, 1 / 3.,
    };
    uint16_t *a = malloc (131072), *b = malloc (131072), *out = malloc (131072);
    uint64_t seed = 1;

    for (size_t k = 0; k < FORMATS; k++) {
        const struct format *f = &formats[k];

        if (codes (f) == 256)
            continue;
        for (int i = 0; i < 65536; i++)
            a[i] = (uint16_t)i;
        for (size_t s = 0; s < COUNT (special); s++) {
            for (int i = 0; i < 65536; i++)
                b[i] = (uint16_t)encode (f, special[s]);
            check_pairs (f, a, b, out, 65536);
        }
        for (int round = 0; round < 8; round++) {
            for (int i = 0; i < 65536; i++) /* often of similar size, so that sums are rounded */
                b[i] = (uint16_t)(a[i] ^ (draw (&seed) & (round % 2 ? 0xffff : 0xfff)));
            check_pairs (f, a, b, out, 65536);
        }
    }
    free (a);
    free (b);
    free (out);
}

#define RANDOM 4001

#define INTEGERS(type, wide, name)                                                                 \
    void pairs_of_##type (void **state)                                                            \
    {                                                                                              \
        static type a[RANDOM], b[RANDOM], out[RANDOM];                                             \
        uint64_t seed = 2;                                                                         \
                                                                                                   \
        (void)state;                                                                               \
        for (int i = 0; i < RANDOM; i++) {                                                         \
            a[i] = (type)draw (&seed);                                                             \
            b[i] = i % 7 ? (type)draw (&seed) : a[i];                                              \
        }                                                                                          \
        for (int k = 0; k < OPS; k++) {                                                            \
            if (ops[k] == SLURMDL_AVERAGE) {                                                       \
                assert_false (reduce_defined (name, ops[k]));                                      \
                continue;                                                                          \
            }                                                                                      \
            assert_true (reduce_defined (name, ops[k]));                                           \
            reduce_pair (out, a, b, RANDOM, name, ops[k]);                                         \
            for (int i = 0; i < RANDOM; i++) {                                                     \
                type x = a[i], y = b[i], want = 0;                                                 \
                                                                                                   \
                if (ops[k] == SLURMDL_SUM)                                                         \
                    want = (type)((wide)x + (wide)y);                                              \
                else if (ops[k] == SLURMDL_PRODUCT)                                                \
                    want = (type)((wide)x * (wide)y);                                              \
                else if (ops[k] == SLURMDL_MIN)                                                    \
                    want = x < y ? x : y;                                                          \
                else                                                                               \
                    want = x > y ? x : y;                                                          \
                assert_true (out[i] == want);                                                      \
            }                                                                                      \
        }                                                                                          \
    }

INTEGERS (int8_t, uint64_t, SLURMDL_I8)
INTEGERS (uint8_t, uint64_t, SLURMDL_U8)
INTEGERS (int16_t, uint64_t, SLURMDL_I16)
INTEGERS (uint16_t, uint64_t, SLURMDL_U16)
INTEGERS (int32_t, uint64_t, SLURMDL_I32)
INTEGERS (uint32_t, uint64_t, SLURMDL_U32)
INTEGERS (int64_t, uint64_t, SLURMDL_I64)
INTEGERS (uint64_t, uint64_t, SLURMDL_U64)

void truth_values (void **state)
{
    static const uint8_t a[] = { 0, 0, 1, 1, 2 }, b[] = { 0, 1, 0, 1, 0 };
    static const uint8_t any[] = { 0, 1, 1, 1, 1 }, all[] = { 0, 0, 0, 1, 0 };
    uint8_t out[5];

    reduce_pair (out, a, b, 5, SLURMDL_BOOL, SLURMDL_SUM);
    assert_memory_equal (out, any, 5);
    reduce_pair (out, a, b, 5, SLURMDL_BOOL, SLURMDL_MAX);
    assert_memory_equal (out, any, 5);
    reduce_pair (out, a, b, 5, SLURMDL_BOOL, SLURMDL_PRODUCT);
    assert_memory_equal (out, all, 5);
    reduce_pair (out, a, b, 5, SLURMDL_BOOL, SLURMDL_MIN);
    assert_memory_equal (out, all, 5);
    assert_false (reduce_defined (SLURMDL_BOOL, SLURMDL_AVERAGE));
}

/* a random number of any size, or zero, infinity or NaN */
static double any_double (uint64_t *seed)
{
    static const double special[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1 };
    uint64_t lot = draw (seed);

    if (lot % 8 == 0)
        return special[lot / 8 % 6];
    return ldexp ((double)(int64_t)draw (seed), (int)(lot / 8 % 60) - 90);
}

void pairs_of_floats (void **state)
{
    static double a[RANDOM], b[RANDOM], out[RANDOM];
    static float x[RANDOM], y[RANDOM], z[RANDOM];
    uint64_t seed = 3;

    for (int i = 0; i < RANDOM; i++) {
        a[i] = any_double (&seed);
        b[i] = any_double (&seed);
        x[i] = (float)a[i];
        y[i] = (float)b[i];
    }
    for (int k = 0; k < OPS; k++) {
        reduce_pair (out, a, b, RANDOM, SLURMDL_F64, ops[k]);
        reduce_pair (z, x, y, RANDOM, SLURMDL_F32, ops[k]);
        for (int i = 0; i < RANDOM; i++) {
            double want = compute (ops[k], a[i], b[i]);

            if (ops[k] == SLURMDL_PRODUCT)
                want = a[i] * b[i];
            else if (ops[k] == SLURMDL_SUM || ops[k] == SLURMDL_AVERAGE)
                want = a[i] + b[i];
            same_double (out[i], want);
            same_double (z[i], (float)compute (ops[k], x[i], y[i]));
        }
    }
}

void pairs_of_complex_numbers (void **state)
{
    static double a[2 * RANDOM], b[2 * RANDOM], out[2 * RANDOM];
    static float x[2 * RANDOM], y[2 * RANDOM], z[2 * RANDOM];
    uint64_t seed = 4;

    for (int i = 0; i < 2 * RANDOM; i++) {
        x[i] = (float)(a[i] = (double)(int64_t)draw (&seed) * 0x1p-40);
        y[i] = (float)(b[i] = (double)(int64_t)draw (&seed) * 0x1p-50);
    }
    reduce_pair (out, a, b, RANDOM, SLURMDL_C128, SLURMDL_SUM);
    reduce_pair (z, x, y, RANDOM, SLURMDL_C64, SLURMDL_AVERAGE);
    for (int i = 0; i < 2 * RANDOM; i++) {
        same_double (out[i], a[i] + b[i]);
        same_double (z[i], (float)((double)x[i] + y[i]));
    }
    reduce_pair (out, a, b, RANDOM, SLURMDL_C128, SLURMDL_PRODUCT);
    reduce_pair (z, x, y, RANDOM, SLURMDL_C64, SLURMDL_PRODUCT);
    for (int i = 0; i < 2 * RANDOM; i += 2) {
        volatile double ac = a[i] * b[i], bd = a[i + 1] * b[i + 1];
        volatile double ad = a[i] * b[i + 1], bc = a[i + 1] * b[i];
        volatile float fac = x[i] * y[i], fbd = x[i + 1] * y[i + 1];
        volatile float fad = x[i] * y[i + 1], fbc = x[i + 1] * y[i];

        same_double (out[i], ac - bd);
        same_double (out[i + 1], ad + bc);
        same_double (z[i], fac - fbd);
        same_double (z[i + 1], fad + fbc);
    }
    assert_false (reduce_defined (SLURMDL_C64, SLURMDL_MIN));
    assert_false (reduce_defined (SLURMDL_C128, SLURMDL_MAX));
    assert_false (reduce_defined ((enum slurmdl_type)99, SLURMDL_SUM));
    assert_false (reduce_defined (SLURMDL_F32, (enum slurmdl_op)9));
}
