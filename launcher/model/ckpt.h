/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl ckpt. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl ckpt. */
struct ckpt_options {
    const char *format;
    const char *output;
    const char *prefix; /* of the names of tensors */
    int64_t step;       /* -1: not given */
    bool trust;
    bool json;
};

/* Print the subcommands of 'dl ckpt', a line each. */
void ckpt_words (void);

/* The command: an exit status of launcher/sys/say.h. */
int cmd_ckpt (const struct command_line *line);
