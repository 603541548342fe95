/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce arrays of F16, BF16 and F8 in F32. */
#include "runtime/comm/reduce/kernels.h"

KERNEL_OPTIONS

static inline float as_float (uint32_t bits)
{
    float f;

    memcpy (&f, &bits, sizeof (f));
    return f;
}

static inline uint32_t as_bits (float f)
{
    uint32_t bits;

    memcpy (&bits, &f, sizeof (bits));
    return bits;
}

/* Select without a branch, which could not be vectorized. */
static inline uint32_t select_bits (bool first, uint32_t a, uint32_t b)
{
    return b ^ ((a ^ b) & -(uint32_t)first);
}

/* A sign, 'e' bits of exponent and 'm' of mantissa.  As in IEEE 754, the highest
 * exponent stands for infinity and NaN.  E4M3 has only NaN, with all bits set (OCP
 * 8-bit Floating Point Specification 1.0).
 */
struct narrow_format {
    unsigned e, m;
    uint32_t infinity; /* first pattern above the largest number */
    uint32_t nan;
};

#define F16  ((struct narrow_format){ 5, 10, 0x7c00, 0x7e00 })
#define BF16 ((struct narrow_format){ 8, 7, 0x7f80, 0x7fc0 })
#define E4M3 ((struct narrow_format){ 4, 3, 0x7f, 0x7f })
#define E5M2 ((struct narrow_format){ 5, 2, 0x7c, 0x7e })

/* Compute subnormal numbers by adding and subtracting powers of two, which are
 * normal in F32.  So the result is right even in a program that flushes subnormal
 * numbers to zero.
 */
static inline float widen_one (uint32_t x, struct narrow_format f)
{
    uint32_t sign = x >> (f.e + f.m) << 31, bits = x & ((1u << (f.e + f.m)) - 1);
    uint32_t up = (128u - (1u << (f.e - 1))) << 23, shift = 23 - f.m;
    uint32_t number = (bits << shift) + up;
    uint32_t special = (bits << shift) | 0x7f800000;
    float one = as_float (up + (1u << 23));
    uint32_t small = as_bits (as_float (number + (1u << 23)) - one);

    if (f.e < 8) {
        number = select_bits (bits < 1u << f.m, small, number);
        special = f.infinity == f.nan ? 0x7fc00000 : special;
        number = select_bits (bits >= f.infinity, special, number);
    }
    return as_float (number | sign);
}

static inline uint32_t narrow_one (float x, struct narrow_format f)
{
    uint32_t all = as_bits (x), bits = all & 0x7fffffff;
    uint32_t sign = all >> 31 << (f.e + f.m), shift = 23 - f.m;
    uint32_t down = (128u - (1u << (f.e - 1))) << 23;
    uint32_t even = bits >> shift & 1;
    uint32_t number = (bits - down + (1u << (shift - 1)) - 1 + even) >> shift;
    /* the last bit of this power of two has the value of the smallest number */
    uint32_t one = down + ((shift + 1) << 23);
    uint32_t small = as_bits (as_float (bits) + as_float (one)) - one;

    if (f.e < 8) {
        number = select_bits (number > f.infinity, f.infinity, number);
        number = select_bits (bits < down + (1u << 23), small, number);
    }
    return select_bits (bits > 0x7f800000, f.nan, number) | sign;
}

#define float_sum(a, b)     ((a) + (b))
#define float_product(a, b) ((a) * (b))

KERNEL_EXTREME (float_min, float, uint32_t, <, |)
KERNEL_EXTREME (float_max, float, uint32_t, >, &)

#define FOLD(name, any, format, op)                                                                \
    KERNEL static void name##_##op (float *acc, const void *in, size_t n)                          \
    {                                                                                              \
        const any *r = in;                                                                         \
                                                                                                   \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            float a = acc[i], b = widen_one (r[i], format);                                        \
            acc[i] = float_##op (a, b);                                                            \
        }                                                                                          \
    }

#define TYPE(name, any, format)                                                                    \
    FOLD (name, any, format, sum)                                                                  \
    FOLD (name, any, format, product)                                                              \
    FOLD (name, any, format, min)                                                                  \
    FOLD (name, any, format, max)                                                                  \
    KERNEL static void name##_widen (void *out, const void *in, size_t n)                          \
    {                                                                                              \
        any_f32 *o = out;                                                                          \
        const any *l = in;                                                                         \
                                                                                                   \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            o[i] = widen_one (l[i], format);                                                       \
    }                                                                                              \
    KERNEL static void name##_narrow (void *out, const void *in, size_t n)                         \
    {                                                                                              \
        any *o = out;                                                                              \
        const any_f32 *l = in;                                                                     \
                                                                                                   \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++)                                                             \
            o[i] = narrow_one (l[i], format);                                                      \
    }                                                                                              \
    static const struct kernel_narrow name##_kernels = {                                           \
        .widen = name##_widen,                                                                     \
        .narrow = name##_narrow,                                                                   \
        .fold = { [SLURMDL_SUM] = name##_sum,                                                      \
                  [SLURMDL_AVERAGE] = name##_sum,                                                  \
                  [SLURMDL_PRODUCT] = name##_product,                                              \
                  [SLURMDL_MIN] = name##_min,                                                      \
                  [SLURMDL_MAX] = name##_max },                                                    \
    };

TYPE (f16, any_u16, F16)
TYPE (bf16, any_u16, BF16)
TYPE (e4m3, any_u8, E4M3)
TYPE (e5m2, any_u8, E5M2)

static const struct kernel_narrow *const narrow_types[SLURMDL_F8_E5M2 + 1] = {
    [SLURMDL_F16] = &f16_kernels,
    [SLURMDL_BF16] = &bf16_kernels,
    [SLURMDL_F8_E4M3] = &e4m3_kernels,
    [SLURMDL_F8_E5M2] = &e5m2_kernels,
};

const struct kernel_narrow *kernel_narrow (enum slurmdl_type type)
{
    return narrow_types[type];
}
