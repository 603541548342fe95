/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of all types, compared with plain double precision. */
#include <float.h>

#include "runtime/comm/reduce/reduce.h"
#include "tests/runtime/comm/format.h"
#include "tests/runtime/comm/pairs.h"
#include "tests/unit.h"

static void every_code_is_widened (void **state)
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

static void values_between_are_rounded_to_even (void **state)
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

static void several_arrays_are_rounded_once (void **state)
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

static void any_address_will_do (void **state)
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

static void a_third_three_times_is_the_same (void **state)
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test (every_code_is_widened),
    cmocka_unit_test (values_between_are_rounded_to_even),
    cmocka_unit_test (all_pairs_of_bytes),
    cmocka_unit_test (pairs_of_halves),
    cmocka_unit_test (pairs_of_int8_t),
    cmocka_unit_test (pairs_of_uint8_t),
    cmocka_unit_test (pairs_of_int16_t),
    cmocka_unit_test (pairs_of_uint16_t),
    cmocka_unit_test (pairs_of_int32_t),
    cmocka_unit_test (pairs_of_uint32_t),
    cmocka_unit_test (pairs_of_int64_t),
    cmocka_unit_test (pairs_of_uint64_t),
    cmocka_unit_test (truth_values),
    cmocka_unit_test (pairs_of_floats),
    cmocka_unit_test (pairs_of_complex_numbers),
    cmocka_unit_test (several_arrays_are_rounded_once),
    cmocka_unit_test (any_address_will_do),
    cmocka_unit_test (a_third_three_times_is_the_same),
};

RUN_TESTS (tests)
