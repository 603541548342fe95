/* SPDX-License-Identifier: Apache-2.0 */
/* dl report writes one HTML page; its main parts work without a script. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/sys/command_line.h"

/* Options of dl report. */
struct report_options {
    const char *output;
    bool watch;
    double seconds; /* 0: not given */
};

struct report_data;

/* Write sentences about what stands out. */
void notes_put (FILE *f, const struct report_data *d);

/* Returns an exit status from launcher/sys/say.h. */
int cmd_report (const struct command_line *line);
