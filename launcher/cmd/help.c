/* SPDX-License-Identifier: Apache-2.0 */
/* Help, and words for a shell's completion. */
#include "launcher/cmd/help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/option_table.h"
#include "launcher/cmd/options.h"
#include "launcher/session/open.h"

static void print_opt (const struct opt *o)
{
    char left[64];

    snprintf (left,
              sizeof (left),
              "--%s%s%s",
              o->name,
              o->arginfo ? "=" : "",
              o->arginfo ? o->arginfo : "");
    printf ("  %-14s %s%s%s%s\n",
            left,
            o->help,
            o->env ? " [$" : "",
            o->env ? o->env : "",
            o->env ? "]" : "");
}

void help_cmd (const struct cmd *cmd)
{
    const struct opt *rows[OPTIONS_MAX + 1];

    printf (
        "usage: dl %s [OPTION...] %s\n%s\n\n", cmd->name, cmd->args, cmd->help);
    options_list (cmd, rows);
    for (const struct opt **o = rows; *o; o++)
        print_opt (*o);
    printf ("  %-14s %s\n", "--help", "print this");
}

void help_all (const struct cmd *table)
{
    static const char *const groups[] = {
        [CMD_START] = "start", [CMD_LOOK] = "look",       [CMD_STEER] = "steer",
        [CMD_KEEP] = "keep",   [CMD_CLUSTER] = "cluster",
    };

    puts ("usage: dl COMMAND [OPTION...] [ARGUMENT...]\n");
    for (int group = CMD_START; group <= CMD_CLUSTER; group++) {
        const char *heading = groups[group];
        for (const struct cmd *c = table; c->name; c++)
            if (c->group == (enum cmd_group)group) {
                printf ("%-8s %-13s %s\n", heading, c->name, c->help);
                heading = "";
            }
    }
    puts ("\n'dl COMMAND --help' lists its options; dl(1) has the exit "
          "statuses.");
}

static const struct cmd *find_cmd (const struct cmd *table, const char *name)
{
    for (const struct cmd *c = table; c->name; c++)
        if (!strcmp (c->name, name))
            return c;
    return NULL;
}

static int print_name (const char *dir, void *arg)
{
    (void)arg;
    puts (strrchr (dir, '/') + 1);
    return 0;
}

void complete (const struct cmd *table, int argc, char **argv)
{
    const struct cmd *cmd = argc > 0 ? find_cmd (table, argv[0]) : NULL;
    const char *dir = getenv ("DL_DIR") ?: ".";
    const struct opt *rows[OPTIONS_MAX + 1];

    for (int i = 1; i < argc - 1; i++)
        if (!strcmp (argv[i], "--dir"))
            dir = argv[i + 1 + (i + 2 < argc && !strcmp (argv[i + 1], "="))];
    if (!cmd) {
        for (const struct cmd *c = table; c->name; c++)
            if (c->group != CMD_HIDDEN)
                puts (c->name);
        puts ("--help\n--version");
        return;
    }
    options_list (cmd, rows);
    for (const struct opt **o = rows; *o; o++)
        printf ("--%s%s\n", (*o)->name, (*o)->arginfo ? "=" : "");
    puts ("--help");
    if (argc == 1 && cmd->words)
        cmd->words ();
    if (strstr (cmd->args, "EXPERIMENT"))
        each_experiment (dir, print_name, NULL);
}
