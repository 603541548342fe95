/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl elastic. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sys/command_line.h"

/* Options of dl elastic. */
struct elastic_options {
    int64_t min; /* nodes, like the next three; 0: not given */
    int64_t max;
    int64_t nodes;
    int64_t spares;
    int64_t ranks_per_node; /* 0: one */
    int64_t restarts;       /* most failures in a row after which a node is tried again */
    char **srun_options;    /* NULL-ended, or NULL */
    bool local;             /* run all ranks on this machine */
};

/* Run the command; returns an exit status of launcher/sys/say.h. */
int cmd_elastic (const struct command_line *line);
