/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce pairs of arrays of integers, booleans, F32, F64 or complex numbers. */
#include "runtime/comm/reduce/kernels.h"

KERNEL_OPTIONS

#define PAIR(name, any, type, expression)                                                          \
    KERNEL static void name (void *out, const void *left, const void *right, size_t n)             \
    {                                                                                              \
        any *o = out;                                                                              \
        const any *l = left, *r = right;                                                           \
                                                                                                   \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            type a = l[i], b = r[i];                                                               \
            o[i] = (expression);                                                                   \
        }                                                                                          \
    }

/* Sums and products wrap around, and are the same for signed and unsigned types. */
#define UNSIGNED(bits, wide)                                                                       \
    PAIR (u##bits##_sum, any_u##bits, wide, a + b)                                                 \
    PAIR (u##bits##_product, any_u##bits, wide, a *b)                                              \
    PAIR (u##bits##_min, any_u##bits, uint##bits##_t, a < b ? a : b)                               \
    PAIR (u##bits##_max, any_u##bits, uint##bits##_t, a > b ? a : b)                               \
    PAIR (i##bits##_min, any_i##bits, int##bits##_t, a < b ? a : b)                                \
    PAIR (i##bits##_max, any_i##bits, int##bits##_t, a > b ? a : b)

UNSIGNED (8, uint32_t)
UNSIGNED (16, uint32_t)
UNSIGNED (32, uint32_t)
UNSIGNED (64, uint64_t)

PAIR (bool_or, any_u8, uint8_t, (a | b) != 0)
PAIR (bool_and, any_u8, uint8_t, (a != 0) & (b != 0))

PAIR (f32_sum, any_f32, float, a + b)
PAIR (f32_product, any_f32, float, a *b)
PAIR (f64_sum, any_f64, double, a + b)
PAIR (f64_product, any_f64, double, a *b)

KERNEL_EXTREME (f32_least, float, uint32_t, <, |)
KERNEL_EXTREME (f32_most, float, uint32_t, >, &)
KERNEL_EXTREME (f64_least, double, uint64_t, <, |)
KERNEL_EXTREME (f64_most, double, uint64_t, >, &)
PAIR (f32_min, any_f32, float, f32_least (a, b))
PAIR (f32_max, any_f32, float, f32_most (a, b))
PAIR (f64_min, any_f64, double, f64_least (a, b))
PAIR (f64_max, any_f64, double, f64_most (a, b))

/* Without KERNEL, because gcc 12 turns this pattern into fused operations
 * (vfmaddsub) even if told not to.
 */
#define COMPLEX(name, any, type)                                                                   \
    static void name##_sum (void *out, const void *left, const void *right, size_t n)              \
    {                                                                                              \
        any##_sum (out, left, right, 2 * n);                                                       \
    }                                                                                              \
    static void name##_product (void *out, const void *left, const void *right, size_t n)          \
    {                                                                                              \
        any_##any *o = out;                                                                        \
        const any_##any *l = left, *r = right;                                                     \
                                                                                                   \
        KERNEL_LOOP                                                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            type a = l[2 * i], b = l[2 * i + 1];                                                   \
            type c = r[2 * i], d = r[2 * i + 1];                                                   \
            o[2 * i] = a * c - b * d;                                                              \
            o[2 * i + 1] = a * d + b * c;                                                          \
        }                                                                                          \
    }

COMPLEX (c64, f32, float)
COMPLEX (c128, f64, double)

#define INTEGERS(kind, bits)                                                                       \
    {                                                                                              \
        [SLURMDL_SUM] = u##bits##_sum, [SLURMDL_PRODUCT] = u##bits##_product,                      \
        [SLURMDL_MIN] = kind##bits##_min, [SLURMDL_MAX] = kind##bits##_max,                        \
    }
#define FLOATS(bits)                                                                               \
    {                                                                                              \
        [SLURMDL_SUM] = f##bits##_sum, [SLURMDL_AVERAGE] = f##bits##_sum,                          \
        [SLURMDL_PRODUCT] = f##bits##_product, [SLURMDL_MIN] = f##bits##_min,                      \
        [SLURMDL_MAX] = f##bits##_max,                                                             \
    }
#define COMPLEXES(name)                                                                            \
    {                                                                                              \
        [SLURMDL_SUM] = name##_sum, [SLURMDL_AVERAGE] = name##_sum,                                \
        [SLURMDL_PRODUCT] = name##_product,                                                        \
    }

static const kernel_pair_f pairs[SLURMDL_F8_E5M2 + 1][KERNEL_OPS] = {
    [SLURMDL_I8]   = INTEGERS (i, 8),
    [SLURMDL_U8]   = INTEGERS (u, 8),
    [SLURMDL_I16]  = INTEGERS (i, 16),
    [SLURMDL_U16]  = INTEGERS (u, 16),
    [SLURMDL_I32]  = INTEGERS (i, 32),
    [SLURMDL_U32]  = INTEGERS (u, 32),
    [SLURMDL_I64]  = INTEGERS (i, 64),
    [SLURMDL_U64]  = INTEGERS (u, 64),
    [SLURMDL_F32]  = FLOATS (32),
    [SLURMDL_F64]  = FLOATS (64),
    [SLURMDL_C64]  = COMPLEXES (c64),
    [SLURMDL_C128] = COMPLEXES (c128),
    [SLURMDL_BOOL] = {
        [SLURMDL_SUM] = bool_or, [SLURMDL_PRODUCT] = bool_and,
        [SLURMDL_MIN] = bool_and, [SLURMDL_MAX] = bool_or,
    },
};

kernel_pair_f kernel_pair (enum slurmdl_type type, enum slurmdl_op op)
{
    return pairs[type][op];
}
