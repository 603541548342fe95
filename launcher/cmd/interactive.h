/* SPDX-License-Identifier: Apache-2.0 */
/* The commands dl shell, dl notebook and dl tensorboard. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl notebook. */
struct notebook_options {
    int64_t idle; /* minutes; -1: not given, 0: never */
    const char *jupyter;
    bool network;
};

/* Each returns an exit status of launcher/sys/say.h. */
int cmd_shell (const struct command_line *line);
int cmd_notebook (const struct command_line *line);
int cmd_tensorboard (const struct command_line *line);

/* Print the words that may follow 'dl notebook', for completion. */
void notebook_words (void);
