/* SPDX-License-Identifier: Apache-2.0 */
/* dl model: a registry of checkpoints, in plain files. */
#include "launcher/model/model.h"

#include "launcher/sys/say.h"
#include "launcher/sys/subcommand.h"

static const struct subcommand subcommands[] = {
    { "register", "EXPERIMENT TRIAL NAME", 3, 3, model_register },
    { "ls", "[NAME]", 0, 1, model_ls },
    { "show", "NAME[/VERSION|@STAGE]", 1, 1, model_show },
    { "promote", "NAME[/VERSION|@STAGE] STAGE", 2, 2, model_promote },
    { "note", "NAME[/VERSION|@STAGE] TEXT", 2, 2, model_note },
    { "rm", "NAME[/VERSION|@STAGE]", 1, 1, model_rm },
    { "export", "NAME[/VERSION|@STAGE] FOLDER", 2, 2, model_export },
    { 0 },
};

void model_words (void)
{
    subcommand_words (subcommands);
}

int cmd_model (const struct command_line *line)
{
    int rv = subcommand_run ("model", subcommands, line);

    if (rv >= 0)
        return rv;
    complain ("no command 'dl model %s'; there are register, ls, show, "
              "promote, note, rm and export",
              line->args[0]);
    return EXIT_USAGE;
}
