/* SPDX-License-Identifier: Apache-2.0 */
/* Subcommands, such as 'ls' in 'dl ckpt ls'. */
#include "launcher/sys/subcommand.h"

#include <stdio.h>
#include <string.h>

#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"

int subcommand_run (const char *command, const struct subcommand *list,
                    const struct command_line *line)
{
    const struct subcommand *w = list;
    int n = line->nargs - 1;

    while (w->name && strcmp (w->name, line->args[0]))
        w++;
    if (!w->name)
        return -1;
    if (n >= w->min && (w->max < 0 || n <= w->max))
        return w->run (line);
    complain ("usage: dl %s %s %s", command, w->name, w->args);
    return EXIT_USAGE;
}

void subcommand_words (const struct subcommand *list)
{
    for (; list->name; list++)
        if (!list->hidden)
            puts (list->name);
}
