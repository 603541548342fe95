/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow: steps that wait for each other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct command_line;

/* Options of dl flow. */
struct flow_options {
    bool local;
    int64_t workers;   /* 0: not given */
    const char *every; /* how often it recurs */
    const char *output;
    bool dry_run;
    bool json;
};

/* The command, which returns an exit status, and its words for completion. */
int cmd_flow (const struct command_line *line);
void flow_words (void);
