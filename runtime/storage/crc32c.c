/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C with the SSE 4.2 instruction, or byte by byte through a table. */
#include "runtime/storage/crc32c.h"

#include <pthread.h>
#include <string.h>

enum { POLYNOMIAL = 0x82f63b78 }; /* reflected */

static uint32_t crc_table_entry (uint32_t i)
{
    for (int k = 0; k < 8; k++)
        i = (i >> 1) ^ (i & 1 ? POLYNOMIAL : 0);
    return i;
}

static uint32_t crc32c_plain (uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t table[256];

    for (uint32_t i = 0; i < 256; i++)
        table[i] = crc_table_entry (i);
    crc = ~crc;
    for (; n > 0; n--)
        crc = (crc >> 8) ^ table[(crc ^ *p++) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
/* The instruction takes three cycles, but one can start in every cycle: compute
 * three streams side by side.  A CRC is linear in its bits, so a table of what
 * BLOCK zero bytes do to it is enough to join the three.
 */
enum { BLOCK = 2048 };

static uint32_t zeros[4][256];
static pthread_once_t crc32c_once = PTHREAD_ONCE_INIT;

__attribute__ ((target ("sse4.2"))) static uint64_t crc_run (uint64_t c, const unsigned char *p,
                                                             size_t words)
{
    uint64_t word;

    for (; words > 0; words--, p += 8) {
        memcpy (&word, p, 8);
        c = __builtin_ia32_crc32di (c, word);
    }
    return c;
}

static void make_zeros (void)
{
    static const unsigned char none[BLOCK];

    for (int k = 0; k < 4; k++)
        for (uint32_t bit = 1; bit < 256; bit <<= 1) {
            uint32_t c = (uint32_t)crc_run (bit << 8 * k, none, BLOCK / 8);
            for (uint32_t i = 0; i < bit; i++)
                zeros[k][bit + i] = zeros[k][i] ^ c;
        }
}

static uint32_t crc_shift (uint64_t c)
{
    return zeros[0][c & 0xff] ^ zeros[1][c >> 8 & 0xff] ^ zeros[2][c >> 16 & 0xff]
           ^ zeros[3][c >> 24 & 0xff];
}

__attribute__ ((target ("sse4.2"))) static uint64_t run_three (uint64_t c, const unsigned char *p)
{
    uint64_t d = 0;
    uint64_t e = 0;
    uint64_t x, y, z;

    for (size_t i = 0; i < BLOCK; i += 8) {
        memcpy (&x, p + i, 8);
        memcpy (&y, p + BLOCK + i, 8);
        memcpy (&z, p + 2 * BLOCK + i, 8);
        c = __builtin_ia32_crc32di (c, x);
        d = __builtin_ia32_crc32di (d, y);
        e = __builtin_ia32_crc32di (e, z);
    }
    return crc_shift (crc_shift (c) ^ d) ^ e;
}

__attribute__ ((target ("sse4.2"))) static uint32_t crc32c_sse (uint32_t crc, const void *data,
                                                                size_t n)
{
    const unsigned char *p = data;
    uint64_t c = ~crc;

    if (n >= 3 * BLOCK)
        pthread_once (&crc32c_once, make_zeros);
    for (; n >= 3 * BLOCK; n -= 3 * BLOCK, p += 3 * BLOCK)
        c = run_three (c, p);
    c = crc_run (c, p, n / 8);
    p += n / 8 * 8;
    for (n %= 8; n > 0; n--)
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

/* Multiply modulo the polynomial.  The highest bit is x^0. */
static uint32_t multiply_modulo (uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (uint32_t bit = 0x80000000; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = (b >> 1) ^ (b & 1 ? POLYNOMIAL : 0);
    }
    return product;
}

/* Appending n bytes multiplies the first CRC by x^8n. */
uint32_t crc32c_join (uint32_t first, uint32_t second, uint64_t n)
{
    uint32_t square = 0x80000000 >> 8;

    if (first == 0)
        return second;
    for (; n > 0; n >>= 1, square = multiply_modulo (square, square))
        if (n & 1)
            first = multiply_modulo (first, square);
    return first ^ second;
}
