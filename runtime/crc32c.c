/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C by the SSE 4.2 instruction, else bit by bit through a table. */
#include "runtime/crc32c.h"

#include <string.h>

enum { POLYNOMIAL = 0x82f63b78 }; /* reflected */

static uint32_t entry (uint32_t i)
{
    for (int k = 0; k < 8; k++)
        i = (i >> 1) ^ (i & 1 ? POLYNOMIAL : 0);
    return i;
}

uint32_t crc32c_plain (uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t table[256];

    for (uint32_t i = 0; i < 256; i++)
        table[i] = entry (i);
    crc = ~crc;
    for (; n > 0; n--)
        crc = (crc >> 8) ^ table[(crc ^ *p++) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__ ((target ("sse4.2"))) static uint32_t
crc32c_sse (uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t c = ~crc;
    uint64_t word;

    for (; n >= 8; n -= 8, p += 8) {
        memcpy (&word, p, 8);
        c = __builtin_ia32_crc32di (c, word);
    }
    for (; n > 0; n--)
        c = __builtin_ia32_crc32qi ((uint32_t)c, *p++);
    return ~(uint32_t)c;
}
#endif

uint32_t crc32c (uint32_t crc, const void *data, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports ("sse4.2"))
        return crc32c_sse (crc, data, n);
#endif
    return crc32c_plain (crc, data, n);
}
