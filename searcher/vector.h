/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that are compiled for several vector units. */
#ifndef SEARCHER_VECTOR_H
#define SEARCHER_VECTOR_H

#include <features.h>
#include <stdint.h>

/* Each number is calculated by the same operations in the same order by all of
 * them, so that the results are the same.
 */

/* An instrumented program cannot choose a function before it has begun, and
 * clang's clones cannot be called from other files.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__)         \
    && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__ ((target_clones ("avx2", "default")))
#else
#define CLONES
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define VECTOR                                                                 \
    CLONES __attribute__ ((                                                    \
        optimize ("tree-vectorize", "vect-cost-model=dynamic")))
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

#endif
