/* SPDX-License-Identifier: Apache-2.0 */
/* dl model: a registry of checkpoints, in plain files. */
#include "launcher/model/model.h"

#include <stdio.h>
#include <string.h>

#include "launcher/sys/say.h"

static const struct model_subcommand {
    const char *name;
    const char *args;
    int min, max; /* arguments behind the word */
    int (*run) (const struct settings *st);
} subcommands[] = {
    { "register", "EXPERIMENT TRIAL NAME", 3, 3, model_register },
    { "ls", "[NAME]", 0, 1, model_ls },
    { "show", "NAME[/VERSION|@STAGE]", 1, 1, model_show },
    { "promote", "NAME[/VERSION|@STAGE] STAGE", 2, 2, model_promote },
    { "export", "NAME[/VERSION|@STAGE] FOLDER", 2, 2, model_export },
    { 0 },
};

void model_words (void)
{
    for (const struct model_subcommand *w = subcommands; w->name; w++)
        puts (w->name);
}

int cmd_model (const struct settings *st)
{
    for (const struct model_subcommand *w = subcommands; w->name; w++) {
        if (strcmp (w->name, st->args[0]))
            continue;
        if (st->nargs - 1 >= w->min && st->nargs - 1 <= w->max)
            return w->run (st);
        complain ("usage: dl model %s %s", w->name, w->args);
        return EXIT_USAGE;
    }
    complain ("no command 'dl model %s'; there are register, ls, show, "
              "promote and export",
              st->args[0]);
    return EXIT_USAGE;
}
