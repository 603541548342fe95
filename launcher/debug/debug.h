/* SPDX-License-Identifier: Apache-2.0 */
/* dl debug, and dl watch-ranks, which the plugin starts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl debug. */
struct debug_options {
    bool last;
};

/* Each command returns an exit status from launcher/sys/say.h. */
int cmd_debug (const struct command_line *line);
int cmd_watch_ranks (const struct command_line *line);
