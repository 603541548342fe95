/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, and their command lines. */
#pragma once

#include <stdbool.h>

#include "launcher/cmd/option_table.h"
#include "launcher/sys/command_line.h"

/* More than a command has, and than resources.workers may be. */
enum { OPTIONS_MAX = 30, WORKERS_MAX = 1000000 };

/* What one wants with a command: the groups of `dl --help`. */
enum cmd_group {
    CMD_HIDDEN, /* not for users */
    CMD_START,
    CMD_LOOK,
    CMD_STEER,
    CMD_KEEP,
    CMD_CLUSTER,
};

/* A command; main() has the table of all, which a row without a name ends. */
struct cmd {
    enum cmd_group group;
    const char *name;
    const char *args;
    const char *help;
    const struct option_set *options;             /* NULL: it has none */
    int min_args, max_args;                       /* -1: any number */
    int (*run) (const struct command_line *line); /* returns an enum dl_exit */
    bool takes_program;                           /* what follows the first argument is for that */
    void (*words) (void);                         /* print what may follow its name, or NULL */
};

/* Parse what follows the command's name.  Returns 0; 1 if --help was given;
 * -1 after a line on stderr.  command_line_free() in any case.  The texts in
 * 'line' and its options are those of 'argv' and the environment.
 */
int command_line_parse (const struct cmd *cmd, int argc, char **argv, struct command_line *line);
void command_line_free (const struct cmd *cmd, struct command_line *line);

/* The options of a command; a row without a name ends them. */
const struct opt *command_rows (const struct cmd *cmd);
