/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl report. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl report. */
struct report_options {
    const char *output;
    bool watch;
    double seconds; /* 0: not given */
};

/* Returns an exit status of launcher/sys/say.h. */
int cmd_report (const struct command_line *line);
