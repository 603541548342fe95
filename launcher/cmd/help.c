/* SPDX-License-Identifier: Apache-2.0 */
/* Print help, and words for shell completion. */
#include "launcher/cmd/options.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/find_experiment.h"
#include "launcher/sys/strings.h"

static void print_opt (const struct opt *o)
{
    char left[64];

    snprintf (left, sizeof (left), "--%s%s%s", o->name, o->arginfo ? "=" : "",
              o->arginfo ? o->arginfo : "");
    printf ("  %-14s%s%s%s%s%s\n", left, strlen (left) > 14 ? "\n                 " : " ", o->help,
            o->env ? " [$" : "", o->env ? o->env : "", o->env ? "]" : "");
}

void help_cmd (const struct cmd *cmd)
{
    printf ("usage: dl %s [OPTION...] %s\n%s\n\n", cmd->name, cmd->args, cmd->help);
    for (const struct opt *o = command_rows (cmd); o->name; o++)
        print_opt (o);
    printf ("  %-14s %s\n", "-h, --help", "print this");
}

void help_all (const struct cmd *table)
{
    static const char *const groups[] = {
        [CMD_START] = "start", [CMD_LOOK] = "look",       [CMD_STEER] = "steer",
        [CMD_KEEP] = "keep",   [CMD_CLUSTER] = "cluster",
    };

    puts ("usage: dl COMMAND [OPTION...] [ARGUMENT...]");
    for (int group = CMD_START; group <= CMD_CLUSTER; group++) {
        const char *heading = groups[group];
        for (const struct cmd *c = table; c->name; c++)
            if (c->group == (enum cmd_group)group) {
                printf ("%-8s %-13s %s\n", heading, c->name, c->help);
                heading = "";
            }
    }
    puts ("'dl COMMAND --help' lists its options; dl(1) has the exit statuses.");
}

static const struct cmd *find_cmd (const struct cmd *table, const char *name)
{
    for (const struct cmd *c = table; c->name; c++)
        if (!strcmp (c->name, name))
            return c;
    return NULL;
}

struct completion {
    const char *dir;      /* directory of the experiments */
    const char *name;     /* of the experiment among the words, or NULL */
    char found[PATH_MAX]; /* path of that experiment, or "" */
    bool described;
};

static void print_word (const struct completion *c, const char *word, const char *what)
{
    printf (c->described && what && *what ? "%s\t%s\n" : "%s\n", word, what);
}

/* Other users may choose names in this directory, so never give the shell one that it
 * could expand.
 */
static int print_name (const char *dir, void *arg)
{
    const char *name = strrchr (dir, '/') + 1;

    if (word_fits (name))
        print_word (arg, name, "experiment");
    return 0;
}

/* NAME also finds NAME-0003.  Keep the last one. */
static int keep_folder (const char *dir, void *arg)
{
    struct completion *c = arg;
    const char *base = strrchr (dir, '/') + 1;
    size_t n = strlen (c->name);

    if (!strncmp (base, c->name, n) && (!base[n] || (base[n] == '-' && strlen (base + n) == 5)))
        snprintf (c->found, sizeof (c->found), "%s", dir);
    return 0;
}

static int is_trial (const struct dirent *e)
{
    return e->d_name[strspn (e->d_name, "0123456789")] == '\0';
}

static void print_trial_numbers (const struct completion *c)
{
    struct dirent **list;
    char path[PATH_MAX + 16];
    char word[32];
    int n;

    snprintf (path, sizeof (path), "%s/trials", c->found);
    n = *c->found ? scandir (path, &list, is_trial, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        snprintf (word, sizeof (word), "%ld", strtol (list[i]->d_name, NULL, 10));
        print_word (c, word, "trial");
        free (list[i]);
    }
    if (n >= 0)
        free (list);
}

static void print_commands (const struct completion *c, const struct cmd *table)
{
    for (; table->name; table++)
        if (table->group != CMD_HIDDEN)
            print_word (c, table->name, table->help);
    print_word (c, "--help", "list the commands");
    print_word (c, "--version", "print the version");
}

static void print_options (const struct completion *c, const struct cmd *cmd)
{
    char word[64];

    for (const struct opt *o = command_rows (cmd); o->name; o++) {
        snprintf (word, sizeof (word), "--%s%s", o->name, o->arginfo ? "=" : "");
        print_word (c, word, o->help);
    }
    print_word (c, "--help", "print the options");
}

/* Find the value of --dir and the name of the experiment.  bash splits --dir=DIR into
 * three words.
 */
static void parse_words (struct completion *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp (argv[i], "--dir=", 6))
            c->dir = argv[i] + 6;
        else if (!strcmp (argv[i], "--dir") && i + 1 < argc) {
            i += i + 2 < argc && !strcmp (argv[i + 1], "=") ? 2 : 1;
            c->dir = argv[i];
        } else if (*argv[i] == '=')
            i++; /* the value of another option */
        else if (*argv[i] != '-' && !c->name)
            c->name = argv[i];
}

void complete (const struct cmd *table, int argc, char **argv, bool described)
{
    const struct cmd *cmd = argc > 0 ? find_cmd (table, argv[0]) : NULL;
    struct completion c = { .dir = getenv ("DL_DIR") ?: ".", .described = described };

    parse_words (&c, argc, argv);
    if (cmd && strncmp (cmd->args + (*cmd->args == '['), "EXPERIMENT", 10))
        c.name = NULL; /* the first argument is not an experiment */
    if (!cmd) {
        print_commands (&c, table);
        return;
    }
    print_options (&c, cmd);
    if (argc == 1 && cmd->words)
        cmd->words ();
    if (strstr (cmd->args, "EXPERIMENT") && (!c.name || strchr (cmd->args, '.')))
        each_experiment (c.dir, print_name, &c);
    if (strstr (cmd->args, "TRIAL") && c.name) {
        each_experiment (c.dir, keep_folder, &c);
        print_trial_numbers (&c);
    }
}
