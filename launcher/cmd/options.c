/* SPDX-License-Identifier: Apache-2.0 */
/* Parse the command line of a command. */
#include "launcher/cmd/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"

static int set_number_option (const struct opt *o, const char *arg, void *at)
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
    if (end == arg || *end || isnan (v))
        complain ("--%s: '%s' is not a number", o->name, arg);
    else if (v < 0)
        complain ("--%s: '%s' is less than 0", o->name, arg);
    else if (errno || v >= 1e18)
        complain ("--%s: '%s' is too large", o->name, arg);
    else
        return 0;
    return -1;
}

/* 'options' is the command's own struct. */
static int set_opt (const struct opt *o, const char *arg, struct command_line *line, void *options)
{
    void *at = (char *)options + o->offset;

    switch (o->type) {
    case OPT_DIR:
        line->dir = arg;
        return 0;
    case OPT_FLAG:
        *(bool *)at = true;
        return 0;
    case OPT_STRING:
        *(const char **)at = arg;
        return 0;
    case OPT_LIST:
        strings_add (at, arg);
        return 0;
    case OPT_WORD:
        strings_addf (at, "--%s%s%s", o->name, arg ? "=" : "", arg ? arg : "");
        return 0;
    case OPT_INT:
    case OPT_COUNT:
    case OPT_REAL:
        return set_number_option (o, arg, at);
    }
    return -1;
}

const struct opt *command_rows (const struct cmd *cmd)
{
    static const struct opt none[] = { { 0 } };

    return cmd->options ? cmd->options->rows : none;
}

/* The arguments of getopt_long().  --help is the last long option; -h means the same
 * unless another option uses that letter.
 */
struct spelling {
    const struct opt *rows;
    int n;
    struct option names[OPTIONS_MAX + 2];
    char letters[16];
};

static void spell (const struct cmd *cmd, struct spelling *s)
{
    char *letter = s->letters;

    *s = (struct spelling){ .rows = command_rows (cmd) };
    if (cmd->takes_program)
        *letter++ = '+'; /* stop at the program: the words after it are its own */
    for (const struct opt *o = s->rows; o->name && s->n < OPTIONS_MAX; o++) {
        s->names[s->n++] = (struct option){
            .name = o->name,
            .has_arg = o->arginfo ? required_argument : no_argument,
        };
        if (o->letter)
            *letter++ = o->letter;
        if (o->letter && o->arginfo)
            *letter++ = ':';
    }
    s->names[s->n] = (struct option){ .name = "help", .has_arg = no_argument };
    if (!strchr (s->letters, 'h'))
        *letter++ = 'h';
}

static int find_letter (const struct spelling *s, int letter)
{
    int i = 0;

    while (i < s->n && s->rows[i].letter != letter)
        i++;
    return i;
}

static void complain_of_option (const struct cmd *cmd, const struct spelling *s, const char *bad)
{
    const char *words[OPTIONS_MAX + 1] = { 0 };
    const char *meant = NULL;
    char name[64];

    for (int i = 0; i < s->n; i++)
        words[i] = s->rows[i].name;
    if (!strncmp (bad, "--", 2)) {
        snprintf (name, sizeof (name), "%.*s", (int)strcspn (bad + 2, "="), bad + 2);
        meant = nearest_word (name, words);
    }
    if (meant && !strcmp (meant, name))
        complain ("%s: --%s %s", cmd->name, name,
                  strchr (bad, '=') ? "takes no argument" : "needs an argument");
    else
        complain ("%s: unknown option '%s'%s%s%s", cmd->name, bad,
                  DID_YOU_MEAN (meant, "'--", "'", ""));
}

/* Set numbers to their initial values and options to the values of their environment
 * variables.
 */
static void set_option_defaults (const struct spelling *s, struct command_line *line, void *options)
{
    for (const struct opt *o = s->rows; o->name; o++) {
        void *at = (char *)options + o->offset;
        const char *value = o->env ? getenv (o->env) : NULL;

        if (o->type == OPT_INT || o->type == OPT_COUNT)
            *(int64_t *)at = o->initial;
        else if (o->type == OPT_REAL)
            *(double *)at = o->initial;
        if (value && *value)
            set_opt (o, value, line, options);
    }
}

/* Return the field of an option, or NULL if the command does not have the option. */
static const void *option_field (const struct spelling *s, const void *options, const char *name)
{
    for (const struct opt *o = s->rows; o->name; o++)
        if (!strcmp (o->name, name))
            return (const char *)options + o->offset;
    return NULL;
}

static int check_command_line (const struct cmd *cmd, const struct spelling *s,
                               const struct command_line *line)
{
    const bool *local = option_field (s, line->options, "local");
    const bool *detach = option_field (s, line->options, "detach");
    const int64_t *workers = option_field (s, line->options, "workers");

    if (line->nargs < cmd->min_args)
        complain ("usage: dl %s [OPTION...] %s", cmd->name, cmd->args);
    else if (cmd->max_args >= 0 && line->nargs > cmd->max_args)
        complain ("%s: unexpected argument '%.80s'; usage: dl %s [OPTION...]%s%s", cmd->name,
                  line->args[cmd->max_args], cmd->name, *cmd->args ? " " : "", cmd->args);
    else if (local && *local && detach && *detach)
        complain ("%s: --detach cannot be used with --local: local workers exit with dl",
                  cmd->name);
    else if (workers && *workers > WORKERS_MAX)
        complain ("--workers: at most %d", WORKERS_MAX);
    else
        return 0;
    return -1;
}

enum parsed_line command_line_parse (const struct cmd *cmd, int argc, char **argv,
                                     struct command_line *line)
{
    void *options = xcalloc (1, cmd->options ? cmd->options->size : 0);
    struct spelling s;
    int i = 0;
    int c;

    spell (cmd, &s);
    *line = (struct command_line){ .dir = ".", .options = options };
    set_option_defaults (&s, line, options);
    opterr = 0;
    optind = 1;
    while ((c = getopt_long (argc, argv, s.letters, s.names, &i)) != -1) {
        if (c == '?') {
            complain_of_option (cmd, &s, argv[optind - 1]);
            return LINE_INVALID;
        }
        if (c != 0)
            i = find_letter (&s, c);
        if (i == s.n)
            return LINE_HELP;
        if (set_opt (&s.rows[i], optarg, line, options) < 0)
            return LINE_INVALID;
    }
    line->args = argv + optind;
    line->nargs = argc - optind;
    return check_command_line (cmd, &s, line) < 0 ? LINE_INVALID : LINE_PARSED;
}

/* All rows of type OPT_WORD share one list, so set it to NULL after freeing it. */
void command_line_free (const struct cmd *cmd, struct command_line *line)
{
    for (const struct opt *o = command_rows (cmd); o->name; o++)
        if (o->type == OPT_LIST || o->type == OPT_WORD) {
            char ***list = (void *)((char *)(uintptr_t)line->options + o->offset);
            strings_free (*list);
            *list = NULL;
        }
    free ((void *)(uintptr_t)line->options);
}
