/* SPDX-License-Identifier: Apache-2.0 */
/* dl report: one page of HTML, with the parts that need no script. */
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

/* What stands out, in sentences. */
void notes_put (FILE *f, const struct report_data *d);

/* Returns an exit status of launcher/sys/say.h. */
int cmd_report (const struct command_line *line);
