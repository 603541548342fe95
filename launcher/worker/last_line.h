/* SPDX-License-Identifier: Apache-2.0 */
/* The last line that an attempt printed. */
#pragma once

#include <stdbool.h>

enum { LAST_LINE = 200 };

/* The last line of the log in the attempt's folder 'dir' that is not blank and
 * not Slurm's own word of the end of its step.  It may have any bytes.
 *
 * Returns 0, or -1 if there is none.
 */
int last_line (const char *dir, char line[LAST_LINE]);

/* Whether one of the texts, NULL-ended, is in the last 16 KiB of the log. */
bool last_lines_have (const char *dir, const char *const *texts);
