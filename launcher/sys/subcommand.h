/* SPDX-License-Identifier: Apache-2.0 */
/* Subcommands, such as 'ls' in 'dl ckpt ls'. */
#pragma once

#include <stdbool.h>

struct command_line;

/* A row of a table of subcommands.  The last row is all 0. */
struct subcommand {
    const char *name;
    const char *args;                             /* for the usage message */
    int min, max;                                 /* number of its arguments; max -1: no limit */
    int (*run) (const struct command_line *line); /* returns the exit status */
    bool hidden;                                  /* not meant for users */
};

/* Run the subcommand line->args[0] of 'dl COMMAND'.  Returns its exit status, EXIT_USAGE after
 * printing its usage if the number of arguments is wrong, or -1 if there is no such subcommand.
 */
int subcommand_run (const char *command, const struct subcommand *list,
                    const struct command_line *line);

/* Print the names, one per line, for shell completion. */
void subcommand_words (const struct subcommand *list);
