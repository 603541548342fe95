/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of a command, as 'ls' of 'dl ckpt ls'. */
#pragma once

#include <stdbool.h>

#include "launcher/sys/command_line.h"

/* A row of a table that ends with one that is all 0. */
struct subcommand {
    const char *name;
    const char *args; /* for the line about its usage */
    int min, max;     /* arguments behind the word; max -1: any number */
    int (*run) (const struct command_line *line); /* returns the exit status */
    bool hidden;                                  /* not one for a user to type */
};

/* Run the subcommand st->args[0] of 'dl COMMAND'.  Returns the exit status,
 * that of a wrong usage after a line about it; -1: there is no such one.
 */
int subcommand_run (const char *command, const struct subcommand *list,
                    const struct command_line *line);

/* Print the names, one a line, for the completion of command lines. */
void subcommand_words (const struct subcommand *list);
