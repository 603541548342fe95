/* SPDX-License-Identifier: Apache-2.0 */
/* dl shell: an interactive shell in a step. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/interactive/interactive.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"

static int add (char ***list, const char *word)
{
    return strings_add (list, word, strlen (word));
}

int cmd_shell (const struct settings *st)
{
    const char *given = getenv ("SHELL");
    const char *shell = given && *given == '/' ? given : "/bin/sh";
    char **argv = NULL;
    int rv = add (&argv, "srun") | add (&argv, "--pty");

    if (!isatty (STDIN_FILENO)) {
        complain ("shell: standard input is no terminal: use srun or sbatch");
        return EXIT_USAGE;
    }
    for (int i = 0; i < st->nargs; i++)
        rv |= add (&argv, st->args[i]);
    if ((rv | add (&argv, shell) | add (&argv, "-i")) == 0) {
        execvp (*argv, argv);
        complain ("srun: %s", strerror (errno));
    }
    strings_free (argv);
    return EXIT_SLURM;
}
