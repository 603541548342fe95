/* SPDX-License-Identifier: Apache-2.0 */
/* What the user has typed behind the name of a command. */
#pragma once

/* All but 'options' is the same for each command; nothing of it is to be freed. */
struct command_line {
    const char *dir;     /* folder that holds the experiments: --dir, DL_DIR, or "." */
    char **args;         /* what is no option, NULL-ended */
    int nargs;           /* how many */
    const void *options; /* struct NAME_options of the command NAME */
};
