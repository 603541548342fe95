/* SPDX-License-Identifier: Apache-2.0 */
/* The depth of a check, and its limits of time. */
#include "launcher/node/depth.h"

#include <string.h>

const struct gather_times gather_times[3] = {
    [LEVEL_NONE] = { 4, 6, 1, 8 },
    [LEVEL_QUICK] = { 8, 10, 3, 15 },
    [LEVEL_FULL] = { 80, 95, 15, 120 },
};

int gather_level (const char *word)
{
    static const char *const words[] = { "none", "quick", "full" };

    for (int i = 0; i < 3; i++)
        if (!strcmp (word, words[i]))
            return i;
    return -1;
}
