/* SPDX-License-Identifier: Apache-2.0 */
/* Parse the command line of a command. */
#include "launcher/cmd/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"

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
        return strings_add (at, arg);
    case OPT_WORD:
        snprintf (word, sizeof (word), "--%s%s%s", o->name, arg ? "=" : "", arg ? arg : "");
        return strings_add (at, word);
    case OPT_INT:
    case OPT_COUNT:
    case OPT_REAL:
        return set_number (o, arg, at);
    }
    return -1;
}

int options_list (const struct cmd *cmd, const struct opt **rows)
{
    int n = 0;

    for (const struct opt *const *group = cmd->options; group && *group; group++)
        for (const struct opt *o = *group; o->name && n < OPTIONS_MAX; o++)
            rows[n++] = o;
    rows[n] = NULL;
    return n;
}

/* What getopt_long() needs; the last long option is --help, which -h
 * is, too, unless an option has that letter.
 */
struct spelling {
    const struct opt *rows[OPTIONS_MAX + 1];
    int n;
    struct option names[OPTIONS_MAX + 2];
    char letters[16];
};

static void spell (const struct cmd *cmd, struct spelling *s)
{
    char *letter = s->letters;

    *s = (struct spelling){ .n = 0 };
    s->n = options_list (cmd, s->rows);
    if (cmd->takes_program)
        *letter++ = '+'; /* what follows its name is for the program */
    for (int i = 0; i < s->n; i++) {
        const struct opt *o = s->rows[i];
        s->names[i] = (struct option){
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

    while (i < s->n && s->rows[i]->letter != letter)
        i++;
    return i;
}

static void complain_of_option (const struct cmd *cmd, const struct spelling *s, const char *bad)
{
    const char *words[OPTIONS_MAX + 1] = { 0 };
    const char *meant = NULL;
    char name[64];

    for (int i = 0; i < s->n; i++)
        words[i] = s->rows[i]->name;
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

static void set_defaults (const struct spelling *s, struct settings *st)
{
    *st = (struct settings){
        .step = -1, .lines = -1, .timeout = -1, .rank = -1, .restarts = 3, .minutes = -1, .gpus = -1
    };
    for (int i = 0; i < s->n; i++) {
        const struct opt *o = s->rows[i];
        const char *value = o->env ? getenv (o->env) : NULL;
        if (value && *value)
            set_opt (o, value, st);
    }
    if (!st->dir)
        st->dir = strdup (".");
}

static int check_settings (const struct cmd *cmd, const struct settings *st)
{
    if (st->nargs < cmd->min_args)
        complain ("usage: dl %s [OPTION...] %s", cmd->name, cmd->args);
    else if (cmd->max_args >= 0 && st->nargs > cmd->max_args)
        complain ("%s: '%.80s' is an argument too many; usage: dl %s "
                  "[OPTION...]%s%s",
                  cmd->name, st->args[cmd->max_args], cmd->name, *cmd->args ? " " : "", cmd->args);
    else if (st->local && st->detach)
        complain ("%s: --detach cannot be used with --local: local workers end "
                  "with dl",
                  cmd->name);
    else if (st->workers > WORKERS_MAX)
        complain ("--workers: at most %d", WORKERS_MAX);
    else
        return 0;
    return -1;
}

int settings_parse (const struct cmd *cmd, int argc, char **argv, struct settings *st)
{
    struct spelling s;
    int i = 0;
    int c;

    spell (cmd, &s);
    set_defaults (&s, st);
    opterr = 0;
    optind = 1;
    while ((c = getopt_long (argc, argv, s.letters, s.names, &i)) != -1) {
        if (c == '?') {
            complain_of_option (cmd, &s, argv[optind - 1]);
            return -1;
        }
        if (c != 0)
            i = find_letter (&s, c);
        if (i == s.n)
            return 1;
        if (set_opt (s.rows[i], optarg, st) < 0)
            return -1;
    }
    st->args = argv + optind;
    st->nargs = argc - optind;
    return check_settings (cmd, st);
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
    free (st->columns);
    free (st->where);
    free (st->sort);
    free (st->every);
    free (st->models);
    free (st->root);
    free (st->config);
    free (st->only);
    strings_free (st->sets);
    strings_free (st->words);
}
