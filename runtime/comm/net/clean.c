/* SPDX-License-Identifier: Apache-2.0 */
/* Clean text from other processes before it is printed. */
#include "runtime/comm/net/clean.h"

/* U+0080 to U+009F are control characters too, both in UTF-8 and as single bytes. */
static int is_control_character (const unsigned char *c, unsigned char before)
{
    return *c < 0x20 || *c == 0x7f
           || (*c >= 0x80 && *c <= 0x9f && (before < 0x80 || before == 0xc2));
}

char *clean_text (char *text)
{
    unsigned char before = 0;

    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        unsigned char now = *c;
        if (is_control_character (c, before))
            *c = '?';
        before = now;
    }
    return text;
}
