/* SPDX-License-Identifier: Apache-2.0 */
/* dl search-server: a search for programs that ask by lines of JSON. */
#pragma once

#include "launcher/sys/command_line.h"

/* Options of dl search-server. */
struct search_server_options {
    const char *searcher;
};

/* The command: an exit status of launcher/sys/say.h. */
int cmd_search_server (const struct command_line *line);
