/* SPDX-License-Identifier: Apache-2.0 */
/* dl shell: an interactive shell in a step. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/interactive/interactive.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"

int cmd_shell (const struct settings *st)
{
    const char *given = getenv ("SHELL");
    const char *shell = given && *given == '/' ? given : "/bin/sh";
    char **argv = NULL;
    int rv = strings_add (&argv, "srun") | strings_add (&argv, "--pty");

    if (!isatty (STDIN_FILENO)) {
        complain ("shell: standard input is no terminal: use srun or sbatch");
        return EXIT_USAGE;
    }
    for (int i = 0; i < st->nargs; i++)
        rv |= strings_add (&argv, st->args[i]);
    if ((rv | strings_add (&argv, shell) | strings_add (&argv, "-i")) == 0) {
        execvp (*argv, argv);
        complain ("srun: %s", strerror (errno));
    }
    strings_free (argv);
    return EXIT_SLURM;
}
