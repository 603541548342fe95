/* SPDX-License-Identifier: Apache-2.0 */
/* Read the variables of a task. */
#include "spank/variable.h"

#include <stdlib.h>

int variable_text (spank_t sp, const char *name, char *buf, int size)
{
    *buf = '\0';
    if (spank_getenv (sp, name, buf, size) == ESPANK_SUCCESS)
        return 0;
    *buf = '\0';
    return -1;
}

long variable_number (spank_t sp, const char *name)
{
    char text[32];
    char *end;
    long n;

    if (variable_text (sp, name, text, sizeof (text)) < 0 || !*text)
        return -1;
    n = strtol (text, &end, 10);
    return *end ? -1 : n;
}
