/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over arrays that compilers vectorise. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "runtime/comm/reduce/reduce.h"

/* A function with KERNEL is compiled with and without AVX2, and the program uses what its processor
 * supports (memory is too slow for wider vectors to help).  A file with such functions begins with
 * KERNEL_OPTIONS, which forbids fused operations, so that all processors compute the same.  Arrays
 * may begin at any address, like buffers of the network and of Python.
 */
#if !defined(KERNEL_GENERIC) && !defined(__SANITIZE_THREAD__) && defined(__x86_64__)               \
    && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define KERNEL __attribute__ ((target_clones ("default", "avx2")))
#else
#define KERNEL
#endif

#ifdef __clang__
#define KERNEL_OPTIONS _Pragma ("STDC FP_CONTRACT OFF")
#define KERNEL_LOOP    _Pragma ("clang loop vectorize(assume_safety)")
#else
/* clang-format off */
#define KERNEL_OPTIONS \
    _Pragma ("GCC optimize (\"O3\", \"no-trapping-math\", \"fp-contract=off\")")
/* clang-format on */
#define KERNEL_LOOP _Pragma ("GCC ivdep")
#endif

/* The smaller or the greater of two numbers; NaN if one of them is NaN, which a comparison does not
 * show; -0 is below +0.  'unsigned' is the type of the bits.
 */
#define KERNEL_EXTREME(name, type, unsigned, before, join)                                         \
    static inline type name (type a, type b)                                                       \
    {                                                                                              \
        type sum = a + b, least;                                                                   \
        unsigned x, y, z, first, second, none;                                                     \
                                                                                                   \
        memcpy (&x, &a, sizeof (x));                                                               \
        memcpy (&y, &b, sizeof (y));                                                               \
        memcpy (&z, &sum, sizeof (z));                                                             \
        first = -(unsigned)(a before b);                                                           \
        second = -(unsigned)(b before a);                                                          \
        none = -(unsigned)((a != a) | (b != b));                                                   \
        x = (x & first) | (y & second) | ((x join y) & ~(first | second));                         \
        x = (x & ~none) | (z & none);                                                              \
        memcpy (&least, &x, sizeof (least));                                                       \
        return least;                                                                              \
    }

#define KERNEL_TYPE(name, type) typedef type name __attribute__ ((aligned (1), may_alias))

KERNEL_TYPE (any_i8, int8_t);
KERNEL_TYPE (any_u8, uint8_t);
KERNEL_TYPE (any_i16, int16_t);
KERNEL_TYPE (any_u16, uint16_t);
KERNEL_TYPE (any_i32, int32_t);
KERNEL_TYPE (any_u32, uint32_t);
KERNEL_TYPE (any_i64, int64_t);
KERNEL_TYPE (any_u64, uint64_t);
KERNEL_TYPE (any_f32, float);
KERNEL_TYPE (any_f64, double);

enum { KERNEL_OPS = SLURMDL_PRODUCT + 1 };

/* out[i] = a[i] op b[i]; 'out' may be 'a' or 'b'. */
typedef void (*kernel_pair_f) (void *out, const void *a, const void *b, size_t n);
/* Convert one array to another, which must not overlap. */
typedef void (*kernel_map_f) (void *out, const void *in, size_t n);
/* acc[i] = acc[i] op in[i], with 'acc' in F32. */
typedef void (*kernel_fold_f) (float *acc, const void *in, size_t n);

/* A type whose arithmetic is done in F32. */
struct kernel_narrow {
    kernel_map_f widen, narrow; /* to and from F32 */
    kernel_fold_f fold[KERNEL_OPS];
};

/* NULL if the operation is not defined for the type, and for types with kernel_narrow(). */
kernel_pair_f kernel_pair (enum slurmdl_type type, enum slurmdl_op op);

/* NULL unless the type is F16, BF16 or F8. */
const struct kernel_narrow *kernel_narrow (enum slurmdl_type type);
