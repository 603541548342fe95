/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options: parsing, help and completion. */
#include "launcher/cmd/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "launcher/session/open.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "runtime/base/word.h"

#define AT(field) offsetof (struct settings, field)

/* clang-format off */
const struct opt opt_table[] = {
    { "dir",     "DIR", "DL_DIR", "folder that holds the experiments (default: .)",      OPT_STRING, AT (dir),     CMD_SWEEPS },
    { "dir",     "DIR", "DL_DIR", "folder that all nodes see; the run's is made in it (default: .)", OPT_STRING, AT (dir), CMD_ELASTIC },
    { "min",     "N",   NULL,     "go on as long as there are N nodes (default: 1)",     OPT_INT,    AT (min),     CMD_ELASTIC },
    { "max",     "N",   NULL,     "have N nodes at most (default: all of the job)",      OPT_INT,    AT (max),     CMD_ELASTIC },
    { "nodes",   "N",   NULL,     "begin with N nodes (default: all but the spare ones)", OPT_INT,   AT (size),    CMD_ELASTIC },
    { "spares",  "N",   NULL,     "so many more wait to take the place of one that is lost", OPT_INT, AT (spares), CMD_ELASTIC },
    { "ntasks-per-node", "K", NULL, "ranks of a node (default: 1)",                      OPT_INT,    AT (ranks),   CMD_ELASTIC },
    { "restarts", "N",  NULL,     "begin again on a node until it has failed N + 1 times in a row (default: 3)", OPT_INT, AT (restarts), CMD_ELASTIC },
    { "srun",    "OPTION", NULL,  "one more option for srun, as --srun=--dl=torch (may be given several times)", OPT_LIST, AT (sets), CMD_ELASTIC },
    { "local",   NULL,  NULL,     "start --nodes processes on this machine",             OPT_FLAG,   AT (local),   CMD_ELASTIC },
    { "dry-run", NULL,  NULL,     "say what would be removed",                           OPT_FLAG,   AT (dry_run), CMD_GC },
    { "format",  "FORMAT", NULL,  "csv (the default), json or h5",                       OPT_STRING, AT (format),  CMD_EXPORT },
    { "format",  "FORMAT", NULL,  "of extract: npy (the default) or raw",                OPT_STRING, AT (format),  CMD_CKPT },
    { "output",  "FILE", NULL,    "write FILE instead of standard output",               OPT_STRING, AT (output),  CMD_EXPORT },
    { "output",  "FILE", NULL,    "of extract: the file to write (default: the tensor's name)", OPT_STRING, AT (output), CMD_CKPT },
    { "local",   NULL,  NULL,     "work in processes on this machine instead of Slurm",  OPT_FLAG,   AT (local),   CMD_STARTS },
    { "dry-run", NULL,  NULL,     "check the file and say what would run",               OPT_FLAG,   AT (dry_run), CMD_RUN | CMD_FORK },
    { "set",     "KEY=VALUE", NULL, "replace a key of the file, or add it",              OPT_LIST,   AT (sets),    CMD_RUN | CMD_PREVIEW | CMD_FORK },
    { "file",    "FILE", NULL,    "search as FILE says, from the trial's checkpoint",    OPT_STRING, AT (file),    CMD_FORK },
    { "detach",  NULL,  NULL,     "return when the job is submitted, show no progress",  OPT_FLAG,   AT (detach),  CMD_STARTS },
    { "workers", "N",   NULL,     "start N workers, whatever FILE says",                 OPT_COUNT,  AT (workers), CMD_STARTS },
    { "no-workers", NULL, NULL,   "only make the experiment; 'dl worker' works at it",   OPT_FLAG,   AT (no_workers), CMD_RUN },
    { "trials",  "N",   NULL,     "show the N best trials only",                         OPT_COUNT,  AT (trials),  CMD_SHOW },
    { "trials",  "N",   NULL,     "go on until there are N trials in all",               OPT_COUNT,  AT (trials),  CMD_CONTINUE },
    { "length",  "L",   NULL,     "train the trials to the length L in all",             OPT_COUNT,  AT (length),  CMD_CONTINUE },
    { "all",     NULL,  NULL,     "archived ones, too",                                  OPT_FLAG,   AT (all),     CMD_LS },
    { "label",   "NAME", NULL,    "those with this label only",                          OPT_STRING, AT (label),   CMD_LS },
    { "undo",    NULL,  NULL,     "the other way round",                                 OPT_FLAG,   AT (undo),    CMD_ARCHIVE | CMD_LABEL | CMD_EXCLUDE },
    { "force",   NULL,  NULL,     "even if it has not ended or cannot be read",          OPT_FLAG,   AT (force),   CMD_RM },
    { "timeout", "S",   NULL,     "wait for S seconds at most",                          OPT_REAL,   AT (timeout), CMD_WAIT },
    { "follow",  NULL,  NULL,     "print what comes until the trial has ended (-f)",     OPT_FLAG,   AT (follow),  CMD_LOGS },
    { "lines",   "N",   NULL,     "the last N lines only (-n N)",                        OPT_INT,    AT (lines),   CMD_LOGS },
    { "json",    NULL,  NULL,     "print JSON",                                          OPT_FLAG,   AT (json),    CMD_LS | CMD_SHOW | CMD_PREVIEW | CMD_ENV | CMD_DOCTOR | CMD_CKPT | CMD_MONITOR },
    { "summary", NULL,  NULL,     "only the lines that srun prints at the end of step JOB.STEP", OPT_FLAG, AT (summary), CMD_MONITOR },
    { "seconds", "S",   NULL,     "one unit of length of one trial takes S seconds",     OPT_REAL,   AT (seconds), CMD_PREVIEW },
    { "full",    NULL,  NULL,     "measure GPUs, memory, disk and network, too",         OPT_FLAG,   AT (full),    CMD_CHECK },
    { "table",   NULL,  NULL,     "print who is where, too",                             OPT_FLAG,   AT (table),   CMD_CHECK },
    { "attempt", "K",   NULL,     "of attempt K instead of the last one",                OPT_COUNT,  AT (attempt), CMD_LOGS },
    { "step",    "N",   NULL,     "the metrics are those of step N (default: one further)", OPT_INT, AT (step),    CMD_LOG },
    { "step",    "N",   NULL,     "of import: the checkpoint's step (default: as exported, or 0)", OPT_INT, AT (step), CMD_CKPT },
    { "searcher", "NAME", NULL,     "search with NAME, whatever the first line says",      OPT_STRING, AT (searcher), CMD_SEARCH },
    { "nodes", "N", NULL, "the step has N nodes", OPT_WORD, AT (words), CMD_ENV },
    { "nodelist", "HOSTS", NULL, "and these are their names", OPT_WORD, AT (words), CMD_ENV },
    { "ntasks", "N", NULL, "and N tasks in all", OPT_WORD, AT (words), CMD_ENV },
    { "ntasks-per-node", "K", NULL, "K on each node, or as 4(x2),3", OPT_WORD, AT (words), CMD_ENV },
    { "distribution", "HOW", NULL, "block, cyclic, plane=SIZE or arbitrary", OPT_WORD, AT (words), CMD_ENV },
    { "cpus-per-task", "N", NULL, "cores of a task", OPT_WORD, AT (words), CMD_ENV },
    { "gpus-per-node", "N", NULL, "GPUs of a node", OPT_WORD, AT (words), CMD_ENV },
    { "gpus-per-task", "N", NULL, "GPUs of a task, which sees no others", OPT_WORD, AT (words), CMD_ENV },
    { "mpi", "TYPE", NULL, "none, pmi2 or pmix", OPT_WORD, AT (words), CMD_ENV },
    { "dl", "FRAMEWORK", NULL, "as the options of srun, dl-spank(8)", OPT_WORD, AT (words), CMD_ENV },
    { "dl-roles", "ROLES", NULL, "the same", OPT_WORD, AT (words), CMD_ENV },
    { "dl-bind", "WHERE", NULL, "the same", OPT_WORD, AT (words), CMD_ENV },
    { "dl-nccl", "PROFILE", NULL, "the same", OPT_WORD, AT (words), CMD_ENV },
    { "job", "JOB[.STEP]", NULL, "number of the job, for ports", OPT_WORD, AT (words), CMD_ENV },
    { "resv-ports", "LIST", NULL, "ports that Slurm reserves, as 41004-41006", OPT_WORD, AT (words), CMD_ENV },
    { "topology", "DIR", NULL, "folder with a copy of a node's sys, proc and dev", OPT_WORD, AT (words), CMD_ENV },
    { "cpu-list", "LIST", NULL, "CPUs of the step on each node of --topology", OPT_WORD, AT (words), CMD_ENV },
    { "nccl-dir", "DIR", NULL, "folder of the site's network profiles", OPT_WORD, AT (words), CMD_ENV },
    { "one-machine", NULL, NULL,  "all nodes are this machine (contrib/minicluster)",    OPT_WORD,   AT (words),   CMD_ENV },
    { "rank",    "R",   NULL,     "print NAME=VALUE lines of rank R, for env -S and eval", OPT_INT, AT (rank),    CMD_ENV },
    { "run",     NULL,  NULL,     "start one task, and see what the plugin does",        OPT_FLAG,   AT (run),     CMD_DOCTOR },
    { "root",    "DIR", NULL,     "look at the copy of a host in DIR",                   OPT_STRING, AT (root),    CMD_DOCTOR },
    { "config",  "FILE", NULL,    "recorded output of scontrol show config",             OPT_STRING, AT (config),  CMD_DOCTOR },
    { "last",    NULL,  NULL,     "print what is there; ask for nothing new",            OPT_FLAG,   AT (last),    CMD_DEBUG },
    { "slot",    "NAME", NULL,    "name of the place that the worker fills",             OPT_STRING, AT (slot),    CMD_WORKER },
    { 0 },
};

/* clang-format on */

/* Options that have a letter, too. */
static const struct letter {
    char letter;
    const char *name;
} letters[] = {
    { 'f', "follow" },
    { 'n', "lines" },
};

/* ---- help ---- */

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
    printf (
        "usage: dl %s [OPTION...] %s\n%s\n\n", cmd->name, cmd->args, cmd->help);
    for (const struct opt *o = opt_table; o->name; o++)
        if (o->cmds & cmd->bit)
            print_opt (o);
    printf ("  %-14s %s\n", "--help", "print this");
}

void help_all (const struct cmd *table)
{
    puts ("usage: dl COMMAND [OPTION...] [ARGUMENT...]\n"
          "deep-learning experiments on Slurm\n");
    for (const struct cmd *c = table; c->name; c++)
        if (*c->help)
            printf ("  %-13s %-22s %s\n", c->name, c->args, c->help);
    puts ("\nexit status");
    for (const struct exit_row *r = exit_table; r->help; r++)
        printf ("  %-3d %s\n", r->status, r->help);
    puts ("\n'dl COMMAND --help' lists the options of a command; see dl(1), "
          "dl-experiment(5).");
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

    for (int i = 1; i < argc - 1; i++)
        if (!strcmp (argv[i], "--dir"))
            dir = argv[i + 1 + (i + 2 < argc && !strcmp (argv[i + 1], "="))];
    if (!cmd) {
        for (const struct cmd *c = table; c->name; c++)
            if (*c->help)
                puts (c->name);
        puts ("--help\n--version");
        return;
    }
    for (const struct opt *o = opt_table; o->name; o++)
        if (o->cmds & cmd->bit)
            printf ("--%s%s\n", o->name, o->arginfo ? "=" : "");
    puts ("--help");
    if (argc == 1 && cmd->words)
        cmd->words ();
    if (strstr (cmd->args, "EXPERIMENT"))
        each_experiment (dir, print_name, NULL);
}

/* ---- parsing ---- */

static int set_number (const struct opt *o, const char *arg, void *at)
{
    double v;
    char *end;

    errno = 0;
    if (o->type == OPT_REAL)
        *(double *)at = v = strtod (arg, &end);
    else
        v = (double)(*(int64_t *)at = strtoll (arg, &end, 10));
    if (o->type == OPT_COUNT && v == 0 && !*end) {
        complain ("--%s: must be 1 or more", o->name);
        return -1;
    }
    if (end != arg && !*end && errno == 0 && v >= 0 && v < 1e18)
        return 0;
    complain ("--%s: '%s' is not a number", o->name, arg);
    return -1;
}

static int set_opt (const struct opt *o, const char *arg, struct settings *st)
{
    void *at = (char *)st + o->offset;
    char word[4096];

    switch (o->type) {
    case OPT_FLAG:
        *(bool *)at = true;
        return 0;
    case OPT_STRING:
        free (*(char **)at);
        *(char **)at = strdup (arg);
        return 0;
    case OPT_LIST:
        return strings_add (at, arg, strlen (arg));
    case OPT_WORD:
        snprintf (word,
                  sizeof (word),
                  "--%s%s%s",
                  o->name,
                  arg ? "=" : "",
                  arg ? arg : "");
        return strings_add (at, word, strlen (word));
    case OPT_INT:
    case OPT_COUNT:
    case OPT_REAL:
        return set_number (o, arg, at);
    }
    return -1;
}

static int fill_long_options (const struct cmd *cmd,
                              struct option *lo,
                              const struct opt **row)
{
    int n = 0;

    for (const struct opt *o = opt_table; o->name; o++)
        if (o->cmds & cmd->bit) {
            row[n] = o;
            lo[n++] = (struct option){
                .name = o->name,
                .has_arg = o->arginfo ? required_argument : no_argument,
            };
        }
    lo[n] = (struct option){ .name = "help", .has_arg = no_argument };
    return n;
}

/* The row of the option that a letter stands for; 'n' if there is none. */
static int find_letter (const struct opt **row, int n, int letter)
{
    int i = 0;

    for (size_t k = 0; k < sizeof (letters) / sizeof (*letters); k++)
        if (letters[k].letter == letter)
            while (i < n && strcmp (row[i]->name, letters[k].name))
                i++;
    return i;
}

static void fill_letters (const struct opt **row, int n, char *brief)
{
    for (size_t k = 0; k < sizeof (letters) / sizeof (*letters); k++) {
        int i = find_letter (row, n, letters[k].letter);
        if (i == n)
            continue;
        *brief++ = letters[k].letter;
        if (row[i]->arginfo)
            *brief++ = ':';
    }
    *brief = '\0';
}

static void bad_option (const struct cmd *cmd, char **argv)
{
    const char *words[32] = { 0 };
    const char *bad = argv[optind - 1];
    const char *meant = NULL;
    char name[64];
    int n = 0;

    for (const struct opt *o = opt_table; o->name && n < 31; o++)
        if (o->cmds & cmd->bit)
            words[n++] = o->name;
    if (!strncmp (bad, "--", 2)) {
        snprintf (
            name, sizeof (name), "%.*s", (int)strcspn (bad + 2, "="), bad + 2);
        meant = nearest_word (name, words);
    }
    if (meant && !strcmp (meant, name))
        complain (
            "%s: %s: its argument is missing or too much", cmd->name, bad);
    else
        complain ("%s: unknown option '%s'%s%s%s",
                  cmd->name,
                  bad,
                  meant ? "; did you mean '--" : "",
                  meant ? meant : "",
                  meant ? "'?" : "");
}

static void defaults (const struct cmd *cmd, struct settings *st)
{
    *st = (struct settings){
        .step = -1, .lines = -1, .timeout = -1, .rank = -1, .restarts = 3
    };
    for (const struct opt *o = opt_table; o->name; o++) {
        const char *value = o->env ? getenv (o->env) : NULL;
        if (value && *value && (o->cmds & cmd->bit))
            set_opt (o, value, st);
    }
    if (!st->dir)
        st->dir = strdup (".");
}

static int check_args (const struct cmd *cmd, const struct settings *st)
{
    if (st->nargs >= cmd->min_args
        && (cmd->max_args < 0 || st->nargs <= cmd->max_args))
        return 0;
    complain ("usage: dl %s [OPTION...] %s", cmd->name, cmd->args);
    return -1;
}

int settings_parse (const struct cmd *cmd,
                    int argc,
                    char **argv,
                    struct settings *st)
{
    struct option lo[32] = { { 0 } };
    const struct opt *row[32];
    int help = fill_long_options (cmd, lo, row);
    char brief[16];
    int i = 0;
    int c;

    defaults (cmd, st);
    /* what follows a program's name is for the program */
    brief[0] = '+';
    fill_letters (
        row, help, brief + ((cmd->bit & (CMD_HOROVOD | CMD_ELASTIC)) != 0));
    opterr = 0;
    optind = 1;
    while ((c = getopt_long (argc, argv, brief, lo, &i)) != -1) {
        if (c != 0 && c != '?')
            i = find_letter (row, help, c);
        else if (c != 0) {
            bad_option (cmd, argv);
            return -1;
        }
        if (i == help)
            return 1;
        if (set_opt (row[i], optarg, st) < 0)
            return -1;
    }
    st->args = argv + optind;
    st->nargs = argc - optind;
    if (check_args (cmd, st) < 0)
        return -1;
    if (st->local && st->detach) {
        complain ("%s: --local workers end with dl: --detach makes no sense",
                  cmd->name);
        return -1;
    }
    if (st->workers > WORKERS_MAX) {
        complain ("--workers: at most %d", WORKERS_MAX);
        return -1;
    }
    return 0;
}

void settings_free (struct settings *st)
{
    free (st->dir);
    free (st->slot);
    free (st->searcher);
    free (st->format);
    free (st->output);
    free (st->file);
    free (st->label);
    free (st->root);
    free (st->config);
    strings_free (st->sets);
    strings_free (st->words);
}
