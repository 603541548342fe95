/* SPDX-License-Identifier: Apache-2.0 */
/* Copy much memory that is not read again soon. */
#include "runtime/checkpoint/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64, ROUND = 128, FAR = 1024, MANY = 64 << 10 };

__attribute__ ((target ("avx2"))) static void stream (unsigned char *to, const unsigned char *from,
                                                      size_t rounds)
{
    for (; rounds > 0; rounds--, to += ROUND, from += ROUND) {
        const __m256i *x = (const __m256i *)from;
        __m256i *y = (__m256i *)to;
        _mm_prefetch (from + FAR, _MM_HINT_NTA);
        _mm_prefetch (from + FAR + LINE, _MM_HINT_NTA);
        __m256i a = _mm256_loadu_si256 (x);
        __m256i b = _mm256_loadu_si256 (x + 1);
        __m256i c = _mm256_loadu_si256 (x + 2);
        __m256i d = _mm256_loadu_si256 (x + 3);
        _mm256_stream_si256 (y, a);
        _mm256_stream_si256 (y + 1, b);
        _mm256_stream_si256 (y + 2, c);
        _mm256_stream_si256 (y + 3, d);
    }
    _mm_sfence ();
}
#endif

void copy_past_caches (void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
    unsigned char *y = to;
    const unsigned char *x = from;
    size_t first = -(uintptr_t)y % LINE;

    if (n >= MANY && __builtin_cpu_supports ("avx2")) {
        size_t most = (n - first) / ROUND * ROUND;
        memcpy (y, x, first);
        stream (y + first, x + first, most / ROUND);
        memcpy (y + first + most, x + first + most, n - first - most);
        return;
    }
#endif
    memcpy (to, from, n);
}
