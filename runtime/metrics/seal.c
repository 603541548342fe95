/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of rows and records. */
#include <string.h>

#include "runtime/metrics/file.h"
#include "runtime/storage/crc32c.h"

void rows_seal (struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rows[i].crc = crc32c (0, &rows[i], offsetof (struct row, crc));
}

static size_t rows_check_plain (const struct row *rows, size_t n)
{
    size_t i = 0;

    while (i < n && rows[i].crc == crc32c (0, &rows[i], 28))
        i++;
    return i;
}

#if defined(__x86_64__)
__attribute__ ((target ("sse4.2"))) static size_t rows_check_sse (const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t w[4];
        uint64_t c = 0xffffffff;
        memcpy (w, &rows[i], sizeof (w));
        c = __builtin_ia32_crc32di (c, w[0]);
        c = __builtin_ia32_crc32di (c, w[1]);
        c = __builtin_ia32_crc32di (c, w[2]);
        c = __builtin_ia32_crc32si ((uint32_t)c, (uint32_t)w[3]);
        if (~(uint32_t)c != (uint32_t)(w[3] >> 32))
            return i;
    }
    return n;
}
#endif

size_t rows_check (const struct row *rows, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports ("sse4.2"))
        return rows_check_sse (rows, n);
#endif
    return rows_check_plain (rows, n);
}

uint32_t record_crc (const struct record *r)
{
    return crc32c (0, r, offsetof (struct record, crc));
}
