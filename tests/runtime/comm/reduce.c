/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of all types, compared with plain double precision. */
#include <float.h>

#include "runtime/comm/reduce/reduce.h"
#include "tests/unit.h"

/* ---- small floating-point formats, implemented by definition ---- */

struct format {
    enum slurmdl_type type;
    int e, m, bias;
    double most;
    uint32_t infinity, nan; /* E4M3 has no infinity */
};

static const struct format formats[] = {
    { SLURMDL_F16, 5, 10, 15, 65504, 0x7c00, 0x7e00 },
    { SLURMDL_BF16, 8, 7, 127, 0x1.fep127, 0x7f80, 0x7fc0 },
    { SLURMDL_F8_E4M3, 4, 3, 7, 448, 0x7f, 0x7f },
    { SLURMDL_F8_E5M2, 5, 2, 15, 57344, 0x7c, 0x7e },
};
enum { FORMATS = COUNT (formats) };

static const struct format *format_of (enum slurmdl_type type)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].type == type)
            return &formats[i];
    return NULL;
}

static uint32_t codes (const struct format *f)
{
    return 1u << (f->e + f->m + 1);
}

static double decode (const struct format *f, uint32_t code)
{
    uint32_t bits = code & (codes (f) / 2 - 1);
    int e = (int)(bits >> f->m), m = (int)(bits & ((1u << f->m) - 1));
    double x = e ? ldexp (m + (1 << f->m), e - f->bias - f->m) : ldexp (m, 1 - f->bias - f->m);

    if (bits == f->infinity && f->infinity != f->nan)
        x = INFINITY;
    else if (bits >= f->infinity)
        x = NAN;
    return code & codes (f) / 2 ? -x : x;
}

/* The code nearest to a number, ties to even. */
static uint32_t encode (const struct format *f, double x)
{
    uint32_t sign = signbit (x) ? codes (f) / 2 : 0;
    double size = fabs (x), step, rounded;
    int e;

    if (isnan (x))
        return f->nan | sign;
    if (size == 0)
        return sign;
    frexp (size, &e);
    e = e - 1 < 1 - f->bias ? 1 - f->bias : e - 1;
    step = ldexp (1, e - f->m);
    rounded = rint (size / step);
    if (rounded * step > f->most)
        return f->infinity | sign;
    if (e == 1 - f->bias && rounded < 1 << f->m)
        return (uint32_t)rounded | sign;
    if (rounded >= 2 << f->m) {
        rounded /= 2;
        e++;
    }
    return (((uint32_t)(e + f->bias) << f->m) + ((uint32_t)rounded - (1u << f->m))) | sign;
}

static uint32_t code_at (const struct format *f, const void *data, size_t i)
{
    return codes (f) > 256 ? ((const uint16_t *)data)[i] : ((const uint8_t *)data)[i];
}

static void code_put (const struct format *f, void *data, size_t i, uint32_t x)
{
    if (codes (f) > 256)
        ((uint16_t *)data)[i] = (uint16_t)x;
    else
        ((uint8_t *)data)[i] = (uint8_t)x;
}

static void assert_code (const struct format *f, uint32_t got, uint32_t want, double of)
{
    if (isnan (decode (f, want)) && isnan (decode (f, got)))
        return;
    if (got != want)
        print_message ("# %s: %a: %x for %x\n", slurmdl_type_name (f->type), of, got, want);
    assert_int_equal (got, want);
}

static void same_double (double got, double want)
{
    if (isnan (want) && isnan (got))
        return;
    assert_memory_equal (&got, &want, sizeof (got));
}

static uint64_t draw (uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* ---- conversion ---- */

CASE (every_code_is_widened)
{
    for (size_t k = 0; k < FORMATS; k++) {
        const struct format *f = &formats[k];
        uint32_t n = codes (f);
        uint16_t *in = malloc (2 * n);
        float *out = malloc (n * sizeof (*out));
        double *wide = malloc (n * sizeof (*wide));

        for (uint32_t i = 0; i < n; i++)
            code_put (f, in, i, i);
        reduce_convert (out, SLURMDL_F32, in, f->type, n);
        reduce_convert (wide, SLURMDL_F64, in, f->type, n);
        for (uint32_t i = 0; i < n; i++) {
            same_double (out[i], decode (f, i));
            same_double (wide[i], decode (f, i));
        }
        free (in);
        free (out);
        free (wide);
    }
}

/* All numbers of the format, the halfway points between neighbours, and the F32
 * or F64 numbers next to those.
 */
static size_t near (const struct format *f, double *x, bool as_float)
{
    size_t n = 0;

    for (uint32_t i = 0; i < f->infinity; i++) {
        double low = decode (f, i), high = decode (f, i + 1), half;

        if (i + 1 == f->infinity)
            high = low + (low - decode (f, i - 1));
        half = low + (high - low) / 2;
        x[n++] = low;
        x[n++] = half;
        if (as_float) {
            x[n++] = nextafterf ((float)half, INFINITY);
            x[n++] = nextafterf ((float)half, 0);
        } else {
            x[n++] = nextafter (half, INFINITY);
            x[n++] = nextafter (half, 0);
        }
    }
    x[n++] = INFINITY;
    x[n++] = NAN;
    x[n++] = FLT_MAX;
    x[n++] = as_float ? FLT_TRUE_MIN : DBL_TRUE_MIN;
    if (!as_float)
        x[n++] = DBL_MAX;
    for (size_t i = 0; i < n; i++)
        x[n + i] = -x[i];
    return 2 * n;
}

CASE (values_between_are_rounded_to_even)
{
    double *x = malloc ((8 * 32768 + 16) * sizeof (*x));
    float *single = malloc ((8 * 32768 + 16) * sizeof (*single));
    uint16_t *out = malloc ((8 * 32768 + 16) * sizeof (*out));

    for (size_t k = 0; k < FORMATS; k++) {
        const struct format *f = &formats[k];
        size_t n = near (f, x, true);

        for (size_t i = 0; i < n; i++)
            single[i] = (float)x[i];
        reduce_convert (out, f->type, single, SLURMDL_F32, n);
        for (size_t i = 0; i < n; i++)
            assert_code (f, code_at (f, out, i), encode (f, x[i]), x[i]);
        n = near (f, x, false);
        reduce_convert (out, f->type, x, SLURMDL_F64, n);
        for (size_t i = 0; i < n; i++)
            assert_code (f, code_at (f, out, i), encode (f, x[i]), x[i]);
        reduce_convert (single, SLURMDL_F32, x, SLURMDL_F64, n);
        for (size_t i = 0; i < n; i++)
            same_double (single[i], (float)x[i]);
    }
    free (x);
    free (single);
    free (out);
}

/* ---- two arrays of any type, compared with plain arithmetic ---- */

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

CASE (all_pairs_of_bytes)
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
CASE (pairs_of_halves)
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
    CASE (pairs_of_##type)                                                                         \
    {                                                                                              \
        static type a[RANDOM], b[RANDOM], out[RANDOM];                                             \
        uint64_t seed = 2;                                                                         \
                                                                                                   \
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

CASE (truth_values)
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

CASE (pairs_of_floats)
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

CASE (pairs_of_complex_numbers)
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

/* ---- several arrays ---- */

enum { MANY = 5, MANY_MAX = 2500 };

/* the sum of element i, computed in the type's own arithmetic */
static void plain_many (void *out, const void *const *in, size_t k, size_t i,
                        enum slurmdl_type type)
{
    const struct format *f = format_of (type);

    if (f) {
        double sum = decode (f, code_at (f, in[0], i));

        for (size_t j = 1; j < k; j++)
            sum = (float)(sum + decode (f, code_at (f, in[j], i)));
        code_put (f, out, 0, encode (f, sum));
    } else if (type == SLURMDL_F32) {
        float sum = ((const float *)in[0])[i];

        for (size_t j = 1; j < k; j++)
            sum += ((const float *)in[j])[i];
        memcpy (out, &sum, sizeof (sum));
    } else {
        uint16_t sum = 0;

        for (size_t j = 0; j < k; j++)
            sum = (uint16_t)(sum + ((const uint16_t *)in[j])[i]);
        memcpy (out, &sum, sizeof (sum));
    }
}

static void fill (void *data, size_t n, enum slurmdl_type type, uint64_t *seed)
{
    const struct format *f = format_of (type);

    for (size_t i = 0; i < n; i++) {
        double x = ldexp ((double)(int64_t)draw (seed), -60);

        if (f)
            code_put (f, data, i, encode (f, x));
        else if (type == SLURMDL_F32)
            ((float *)data)[i] = (float)x;
        else
            ((uint16_t *)data)[i] = (uint16_t)draw (seed);
    }
}

/* 'place': which array is also the output; 'k': none of them */
static void check_many (enum slurmdl_type type, size_t k, size_t n, size_t place)
{
    static uint64_t data[MANY + 1][MANY_MAX], want[MANY_MAX];
    size_t size = slurmdl_type_size (type);
    const void *in[MANY];
    uint64_t seed = n * MANY + k;
    char *out = (char *)data[place];

    for (size_t j = 0; j < k; j++) {
        fill (data[j], n, type, &seed);
        in[j] = data[j];
    }
    for (size_t i = 0; i < n; i++)
        plain_many ((char *)want + i * size, in, k, i, type);
    out[n * size] = 77;
    reduce_many (out, in, k, n, type, SLURMDL_SUM);
    assert_memory_equal (out, want, n * size);
    assert_int_equal (out[n * size], 77);
}

CASE (several_arrays_are_rounded_once)
{
    static const enum slurmdl_type kinds[] = { SLURMDL_F16,     SLURMDL_BF16, SLURMDL_F8_E4M3,
                                               SLURMDL_F8_E5M2, SLURMDL_F32,  SLURMDL_U16 };
    static const size_t sizes[] = { 0, 1, 7, 31, 1023, 1024, 1025, 2499 };

    for (size_t t = 0; t < COUNT (kinds); t++)
        for (size_t k = 1; k <= MANY; k++)
            for (size_t s = 0; s < COUNT (sizes); s++)
                for (size_t place = 0; place <= k; place++)
                    check_many (kinds[t], k, sizes[s], place);
}

CASE (any_address_will_do)
{
    static char a[4 * 64 + 1], b[4 * 64 + 1], out[4 * 64 + 1];
    float x = 1.5, y = 2.25, z;

    for (int i = 0; i < 64; i++) {
        memcpy (a + 1 + 4 * i, &x, 4);
        memcpy (b + 1 + 4 * i, &y, 4);
    }
    reduce_pair (out + 1, a + 1, b + 1, 64, SLURMDL_F32, SLURMDL_SUM);
    reduce_scale (out + 1, 64, SLURMDL_F32, 2);
    for (int i = 0; i < 64; i++) {
        memcpy (&z, out + 1 + 4 * i, 4);
        assert_true (z == 7.5f);
    }
}

CASE (a_third_three_times_is_the_same)
{
    static float x[1000], y[1000];
    static double d[4] = { 3, -6, INFINITY, 0 };
    uint64_t seed = 5;

    for (int i = 0; i < 1000; i++) {
        y[i] = (float)ldexp ((double)(draw (&seed) >> 42), -30);
        x[i] = 3 * y[i];
    }
    reduce_scale (x, 1000, SLURMDL_F32, 1 / 3.);
    assert_memory_equal (x, y, sizeof (x));
    reduce_scale (d, 2, SLURMDL_C128, 0.5);
    assert_true (d[0] == 1.5 && d[1] == -3 && isinf (d[2]) && d[3] == 0);
    for (size_t k = 0; k < FORMATS; k++) {
        const struct format *f = &formats[k];
        uint16_t data[256];

        for (uint32_t i = 0; i < 256; i++)
            code_put (f, data, i, i * (codes (f) / 256));
        reduce_scale (data, 256, f->type, 0.3);
        for (uint32_t i = 0; i < 256; i++) {
            double v = (float)(decode (f, i * (codes (f) / 256)) * 0.3);

            assert_code (f, code_at (f, data, i), encode (f, v), v);
        }
    }
}

RUN_CASES ()
