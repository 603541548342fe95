/* SPDX-License-Identifier: Apache-2.0 */
/* dl: run deep-learning experiments on Slurm. */
#include <errno.h>
#include <hdf5.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "launcher/cmd/options.h"

static int unknown_command (const char *name)
{
    const char *words[32] = { 0 };
    const char *meant;
    int n = 0;

    for (const struct cmd *c = cmd_table; c->name && n < 31; c++)
        words[n++] = c->name;
    meant = nearest_word (name, words);
    complain ("unknown command '%s'%s%s%s",
              name,
              meant ? "; did you mean '" : "; see dl --help",
              meant ? meant : "",
              meant ? "'?" : "");
    return EXIT_USAGE;
}

/* A full disk under stdout must not pass for success, also where it was full
 * before the last of it.
 */
static int check_output (void)
{
    bool failed = ferror (stdout);

    errno = 0;
    if (fflush (stdout) == 0 && !failed)
        return EXIT_OK;
    complain ("cannot write standard output%s%s",
              errno ? ": " : "",
              errno ? strerror (errno) : "");
    return EXIT_IO;
}

static int run_command (const struct cmd *cmd, int argc, char **argv)
{
    struct settings st;
    int rv = EXIT_USAGE;

    switch (settings_parse (cmd, argc, argv, &st)) {
    case 0:
        rv = cmd->run (&st);
        break;
    case 1:
        help_cmd (cmd);
        rv = EXIT_OK;
        break;
    }
    settings_free (&st);
    return rv == EXIT_OK ? check_output () : rv;
}

int main (int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";

    setlocale (LC_CTYPE, "");
    /* it crashes where a file could not be closed, on a full disk say */
    H5dont_atexit ();
    if (!strcmp (name, "--help") || !strcmp (name, "help")) {
        help_all ();
        return argc > 1 ? EXIT_OK : EXIT_USAGE;
    }
    if (!strcmp (name, "--version")) {
        puts ("dl " PACKAGE_VERSION);
        return EXIT_OK;
    }
    if (!strcmp (name, "--complete")) {
        complete (argc - 2, argv + 2);
        return EXIT_OK;
    }
    for (const struct cmd *c = cmd_table; c->name; c++)
        if (!strcmp (c->name, name))
            return run_command (c, argc - 1, argv + 1);
    return unknown_command (name);
}
