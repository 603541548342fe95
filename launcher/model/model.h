/* SPDX-License-Identifier: Apache-2.0 */
/* dl model: a registry of named, versioned checkpoints. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl model. */
struct model_options {
    const char *models; /* folder of the registry, NULL: beside the experiments */
    int64_t step;       /* -1: not given */
    bool force;
    bool trust;
    bool json;
};

/* The command, which returns an exit status, and its words for completion. */
int cmd_model (const struct command_line *line);

/* Print the words that may follow, for completion. */
void model_words (void);
