/* SPDX-License-Identifier: Apache-2.0 */
/* Commands, and their command lines. */
#pragma once

#include "launcher/cmd/option_table.h"
#include "launcher/sys/settings.h"

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
    const struct opt *const *options;       /* groups, NULL-ended, or NULL */
    int min_args, max_args;                 /* -1: any number */
    int (*run) (const struct settings *st); /* returns an enum dl_exit */
    bool takes_program;                     /* what follows the first argument is for that */
    void (*words) (void);                   /* print what may follow its name, or NULL */
};

/* Parse what follows the command's name.  Returns 0; 1 if --help was given;
 * -1 after a line on stderr.  settings_free() in any case.
 */
int settings_parse (const struct cmd *cmd, int argc, char **argv, struct settings *st);
void settings_free (struct settings *st);

/* The options of a command, NULL-ended, into an array of OPTIONS_MAX + 1.
 * Returns how many.
 */
int options_list (const struct cmd *cmd, const struct opt **rows);
