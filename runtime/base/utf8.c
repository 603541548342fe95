/* SPDX-License-Identifier: Apache-2.0 */
/* Validate UTF-8. */
#include "runtime/base/utf8.h"

size_t utf8_length (const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    static const struct {
        unsigned char first, last, low, high; /* limits of the second byte */
        size_t n;
    } forms[] = {
        { 0x01, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    size_t f = 0;

    while (f < 9 && (*p < forms[f].first || *p > forms[f].last))
        f++;
    if (f == 9)
        return 0;
    for (size_t i = 1; i < forms[f].n; i++)
        if (p[i] < (i == 1 ? forms[f].low : 0x80) || p[i] > (i == 1 ? forms[f].high : 0xbf))
            return 0;
    return forms[f].n;
}

bool is_utf8 (const char *text)
{
    size_t n;

    for (; *text; text += n)
        if ((n = utf8_length (text)) == 0)
            return false;
    return true;
}
