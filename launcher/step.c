/* SPDX-License-Identifier: Apache-2.0 */
/* dl-step: what the plugin starts and waits for, without HDF5 and libarchive,
 * which take most of the time that dl needs to be loaded.
 */
#include <locale.h>
#include <string.h>

#include "launcher/step_commands.h"
#include "launcher/sys/say.h"
#include "launcher/sys/terminal.h"

/* clang-format off */
static const struct cmd commands[] = {
    STEP_COMMANDS
    { 0 },
};
/* clang-format on */

static int run_command (const struct cmd *cmd, int argc, char **argv)
{
    struct settings st;
    int rv = EXIT_USAGE;

    if (settings_parse (cmd, argc, argv, &st) == 0)
        rv = cmd->run (&st);
    settings_free (&st);
    return rv;
}

int main (int argc, char **argv)
{
    setlocale (LC_CTYPE, "");
    terminal_guard ();
    for (const struct cmd *c = commands; argc > 1 && c->name; c++)
        if (!strcmp (c->name, argv[1]))
            return run_command (c, argc - 1, argv + 1);
    complain ("dl-step is for the plugin only; see dl --help");
    return EXIT_USAGE;
}
