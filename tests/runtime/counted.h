/* SPDX-License-Identifier: Apache-2.0 */
/* Count the checkpoints of a test's run. */
#pragma once

#include "tests/folder.h"

static inline long checkpoints (void)
{
    FILE *f;
    char command[512];
    long n = 0;

    snprintf (command, sizeof (command), "find '%s' -name '*.h5' -path '*/ckpt/*' | wc -l",
              in_dir ("run"));
    f = popen (command, "r");
    if (!f || fscanf (f, "%ld", &n) != 1)
        n = -1;
    if (f)
        pclose (f);
    return n;
}
