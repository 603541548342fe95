/* SPDX-License-Identifier: Apache-2.0 */
/* Where a {name} stands in a command. */
#include "launcher/config/placeholder.h"

#include <ctype.h>
#include <string.h>

size_t placeholder_length (const char *start, const char *text)
{
    size_t n = 1;

    if (*text != '{' || (text > start && text[-1] == '$')
        || !(isalpha ((unsigned char)text[1]) || text[1] == '_'))
        return 0;
    while (isalnum ((unsigned char)text[n]) || strchr ("_.-", text[n])) {
        if (!text[n])
            return 0;
        n++;
    }
    return text[n] == '}' ? n + 1 : 0;
}
