/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl search-server. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl search-server. */
struct search_server_options {
    const char *searcher;
};

/* The command: an exit status of launcher/sys/say.h. */
int cmd_search_server (const struct command_line *line);
