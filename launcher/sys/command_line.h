/* SPDX-License-Identifier: Apache-2.0 */
/* The options and arguments of a command. */
#pragma once

/* Only 'options' depends on the command.  The struct owns nothing. */
struct command_line {
    const char *dir;     /* folder that holds the experiments: --dir, DL_DIR, or "." */
    char **args;         /* arguments that are not options, NULL-terminated */
    int nargs;           /* number of these */
    const void *options; /* struct NAME_options of the command NAME */
};
