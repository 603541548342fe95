/* SPDX-License-Identifier: Apache-2.0 */
/* Look whether the command of the trials can work, before it is started. */
#include "launcher/cmd/command_check.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/forgotten.h"
#include "launcher/code/activate.h"
#include "launcher/code/software.h"
#include "launcher/config/json_fields.h"
#include "launcher/config/optional_group.h"
#include "launcher/config/queries.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"
#include "searcher/space/space.h"

/* ---- the words of the first command ---- */

/* Those that a shell would change end the list. */
static int add_words (const char *text, char ***words)
{
    static const char changed[] = "$`'\"\\*?[]{}~#;|&()<>\n";

    while (*(text += strspn (text, " \t"))) {
        size_t len = strcspn (text, " \t\n;|&()<>");
        size_t plain = strcspn (text, changed);
        if (plain < len || len == 0)
            return 0;
        if (strings_add_part (words, text, len) < 0)
            return -1;
        text += len;
        if (*text && !strchr (" \t", *text))
            return 0;
    }
    return 0;
}

static char **first_words (const struct experiment *e)
{
    char **words = NULL;

    if (e->entrypoint)
        add_words (e->entrypoint, &words);
    for (char **a = e->argv; a && *a && !strpbrk (*a, "{["); a++)
        strings_add (&words, *a);
    return words;
}

/* ---- programs ---- */

/* What a shell runs itself, or what changes where the rest is looked for. */
static bool is_of_shell (const char *word)
{
    static const char *const list[] = {
        ".",    "!",    ":",      "[",     "cd",     "case",  "command", "echo",   "eval",
        "exec", "exit", "export", "false", "for",    "if",    "kill",    "module", "printf",
        "pwd",  "read", "set",    "shift", "source", "test",  "time",    "times",  "trap",
        "true", "type", "ulimit", "umask", "unset",  "until", "wait",    "while",  NULL,
    };

    return strings_contain (list, word);
}

static bool is_in_path (const struct experiment *e, const char *name)
{
    char *path = program_path (software_variable (&e->software, "PATH"), name);

    free (path);
    return path;
}

static bool sets_path (const struct experiment *e)
{
    for (char **v = e->variables; v && *v; v++)
        if (!strncmp (*v, "PATH=", 5))
            return true;
    return false;
}

/* ---- files ---- */

static bool is_there (const struct experiment *e, const char *name, int mode, char *path)
{
    snprintf (path, PATH_MAX, "%s%s%s", *name == '/' ? "" : e->dir, *name == '/' ? "" : "/", name);
    return access (path, mode) == 0;
}

/* A file of the folder whose name is nearly the same. */
static char *nearest_file (const struct experiment *e, const char *name)
{
    const char *words[256] = { NULL };
    struct dirent **list;
    int n = strchr (name, '/') ? 0 : scandir (e->dir, &list, NULL, alphasort);
    const char *meant;
    char *copy;

    if (n <= 0)
        return NULL;
    for (int i = 0; i < n && i < 255; i++)
        words[i] = list[i]->d_name;
    meant = nearest_word (name, words);
    copy = meant ? strdup (meant) : NULL;
    for (int i = 0; i < n; i++)
        free (list[i]);
    free (list);
    return copy;
}

static void say_missing (const struct experiment *e, const char *name, struct problems *p)
{
    char *meant = nearest_file (e, name);

    problem_at (p, e->entrypoint_origin,
                "'entrypoint': there is no file '%s'%s%s, where the trials run"
                "%s%s%s",
                name, *name == '/' ? "" : " in ", *name == '/' ? "" : e->dir,
                DID_YOU_MEAN (meant, "'", "'", ""));
    free (meant);
}

/* Another machine may have what is under a name with its whole path. */
static void check_file (const struct experiment *e, const char *name, int mode, bool local,
                        struct problems *p)
{
    char path[PATH_MAX];

    if (is_there (e, name, mode, path) || (*name == '/' && !local))
        return;
    if (access (path, F_OK) < 0)
        say_missing (e, name, p);
    else
        problem_at (p, e->entrypoint_origin, "'entrypoint': '%s' cannot be run: chmod +x %s", name,
                    path);
}

/* ---- the script of an interpreter ---- */

/* clang-format off */
static const struct interpreter {
    const char *name;    /* a pattern */
    const char *options; /* letters that are followed by a script, as -u */
} interpreters[] = {
    { "python",     "uOBEsSvIqbdR" },
    { "python[23]*", "uOBEsSvIqbdR" },
    { "sh",         "eux" },
    { "bash",       "euxl" },
    { "dash",       "eux" },
    { "zsh",        "eux" },
    { "ksh",        "eux" },
    { "perl",       "w" },
    { "Rscript",    "" },
    { "julia",      "" },
    { "ruby",       "" },
    { "node",       "" },
    { NULL,         NULL },
};
/* clang-format on */

static const struct interpreter *interpreter_of (const char *program)
{
    const char *base = strrchr (program, '/');

    for (const struct interpreter *i = interpreters; i->name; i++)
        if (fnmatch (i->name, base ? base + 1 : program, 0) == 0)
            return i;
    return NULL;
}

/* NULL: it has none, or only the interpreter knows which. */
static const char *script_of (char **words)
{
    const struct interpreter *i = interpreter_of (*words++);

    while (i && *words && **words == '-') {
        const char *letters = *words++ + 1;
        if (!*letters || letters[strspn (letters, i->options)])
            return NULL;
    }
    return i ? *words : NULL;
}

/* ---- the command ---- */

static bool is_missing (const struct experiment *e, char **words)
{
    return words && *words && !strpbrk (*words, "/=") && !is_of_shell (*words) && !e->software.image
           && !sets_path (e) && software_is_loaded (&e->software) && !is_in_path (e, *words);
}

/* Slurm's nodes may have what this host lacks, so this is no mistake. */
static void warn_of_program (const struct experiment *e, char **words)
{
    if (is_missing (e, words))
        complain ("%s: there is no program '%s' in PATH on this host: it must "
                  "be on the nodes",
                  e->file, *words);
}

static void check_program (const struct experiment *e, char **words, bool local, struct problems *p)
{
    const char *script;

    if (!words || !*words || strchr (*words, '=') || is_of_shell (*words))
        return;
    if (strchr (*words, '/'))
        check_file (e, *words, X_OK, local && !e->software.image, p);
    else if (local && is_missing (e, words))
        problem_at (p, e->entrypoint_origin, "'entrypoint': there is no program '%s' in PATH",
                    *words);
    if ((script = script_of (words)))
        check_file (e, script, F_OK, local, p);
}

/* The {name} of a pattern that is nearest to that of a metric. */
static void near_name (const struct experiment *e, const char *metric, char *hint, size_t size)
{
    char **names = NULL;

    for (char **text = e->patterns; *text; text++)
        for (const char *at = *text; (at = strchr (at, '{')); at++)
            strings_add_part (&names, at + 1, strcspn (at + 1, "}"));
    if (names)
        hint_text (hint, size, metric, (const char *const *)names);
    strings_free (names);
}

/* The program may log it by itself, so this is no mistake. */
static void warn_of_metrics (const struct experiment *e)
{
    char name[256];
    char hint[256] = "";

    for (char **m = e->metrics; e->patterns && m && *m; m++) {
        char **text = e->patterns;
        snprintf (name, sizeof (name), "{%s}", *m);
        /* one without {name} takes the names from the output */
        while (*text && strchr (*text, '{') && !strstr (*text, name))
            text++;
        if (!*text)
            near_name (e, *m, hint, sizeof (hint));
        if (!*text && !e->metrics_format)
            complain ("%s: no metrics.pattern has %s, the metric of the "
                      "search%s: a trial has a result only if its program "
                      "logs it in another way",
                      e->file, name, hint);
    }
}

/* Python's format and the shell's variable are left as they are. */
static void warn_of_braces (const struct experiment *e, const char *text, const char *path)
{
    size_t n = strlen (path);

    for (const char *at = text; at && (at = strchr (at, '{')); at++) {
        bool dollar = at > text && at[-1] == '$';
        char c = strncmp (at + 1, path, n) ? '\0' : at[n + 1];
        if (dollar ? c != '}' : c != ':' && c != '!')
            continue;
        complain ("%s:%d: 'entrypoint': %s{%s%c%s is %s; the hyperparameter is "
                  "{%s}",
                  e->file, e->entrypoint_origin.line, dollar ? "$" : "", path, c,
                  dollar ? "" : "...}", dollar ? "a variable of the shell" : "left as it is", path);
        return;
    }
}

static void warn_of_near_names (const struct experiment *e)
{
    for (size_t i = 0; i < e->nhparams; i++) {
        warn_of_braces (e, e->entrypoint, e->hparams[i].path);
        for (char **a = e->argv; a && *a; a++)
            warn_of_braces (e, *a, e->hparams[i].path);
    }
}

/* A random point of a range never has one value exactly. */
static void warn_of_when (const struct experiment *e)
{
    bool grid = e->searcher_name && !strcmp (e->searcher_name, "grid");

    for (size_t i = 0; i < e->nparams && !grid; i++) {
        const struct param *d = &e->params[i];
        int of = d->when ? space_find (e->params, e->nparams, d->when) : -1;
        const struct param *o = of < 0 ? NULL : &e->params[of];
        if (o && o->step == 0 && (o->type == PARAM_FLOAT || o->type == PARAM_LOG))
            complain ("%s: hyperparameter '%s' is hardly ever active: its "
                      "'when' wants one value of the range of '%s'",
                      e->file, d->name, o->name);
    }
}

/* In other programs a list is what to choose from; it may be one value, too. */
static void warn_of_lists (const struct experiment *e)
{
    for (size_t i = 0; i < e->nhparams; i++) {
        const struct hparam *h = &e->hparams[i];
        if (h->dim >= 0 || !json_is_array (h->values) || e->search.max_trials < 2
            || (e->nparams > 0 && !experiment_has_placeholder (e, h->path)))
            continue;
        complain ("%s:%d: %seach trial has the whole list "
                  "'%s'; to choose from it: { type = \"categorical\"; "
                  "vals = [...]; }",
                  e->file, h->origin.line, e->nparams == 0 ? "nothing is searched: " : "", h->path);
        return;
    }
}

/* The default of max_length leaves nothing to stop before; auto means that. */
static void warn_of_rungs (const struct experiment *e)
{
    static const char *const undivided[] = { "median", "pbt", NULL };
    double least = strings_contain (undivided, e->searcher_name) ? 2 : e->search.divisor;

    if (!(experiment_needs (e) & (HAS_RUNGS | HAS_REPORTS))
        && (e->search.divisor != 4 || e->search.max_rungs != 5))
        complain ("%s: searcher \"%s\" stops no trial early: "
                  "'searcher.divisor' and 'searcher.max_rungs' are for "
                  "searchers with rungs, such as \"asha\" with "
                  "'searcher.sampler'",
                  e->file, e->searcher_name);
    else if (experiment_needs (e) & (HAS_RUNGS | HAS_REPORTS) && strcmp (e->searcher_name, "auto")
             && (double)e->search.max_length < least)
        complain ("%s: searcher \"%s\" stops no trial early: "
                  "'searcher.max_length', the length of a full training, is "
                  "%lld, but must be at least %g for that",
                  e->file, e->searcher_name, (long long)e->search.max_length, least);
}

enum joint { JOINT_NONE, JOINT_NEXT, JOINT_AND, JOINT_OR, JOINT_PIPE };

/* What separates two commands at 'at', and its length; JOINT_NONE: nothing. */
static enum joint joint_at (const char *at, size_t *length)
{
    *length = 1 + (at[1] == *at || (*at == '|' && at[1] == '&'));
    if (*at == ';' || *at == '\n')
        return JOINT_NEXT;
    if (*at == '&')
        return *length == 2 ? JOINT_AND : JOINT_NEXT;
    return *at != '|' ? JOINT_NONE : at[1] == '|' ? JOINT_OR : JOINT_PIPE;
}

/* The last command of a shell's text, and what separates it from the one before
 * it: what stands in quotes, brackets and comments is passed over.
 */
static const char *last_command (const char *text, enum joint *by)
{
    const char *last = text;
    enum joint next = JOINT_NONE;
    bool begins = true;
    char quote = '\0';
    int depth = 0;
    size_t n;

    *by = JOINT_NONE;
    for (const char *at = text; *at; at++) {
        enum joint now = quote || depth > 0 ? JOINT_NONE : joint_at (at, &n);
        if (quote)
            quote = *at == quote ? '\0' : quote;
        else if (*at == '#' && (at == text || strchr (" \t\n;&|(", at[-1]))) {
            at += strcspn (at, "\n") - 1;
            continue;
        } else if ((*at == '>' || *at == '<') && at[1] == '&')
            at++;
        else if (now != JOINT_NONE && !(*at == '&' && at[1] == '>')) {
            /* a new line before all, or after "&&", ends nothing */
            next = begins && now == JOINT_NEXT ? next : now;
            begins = true;
            at += n - 1;
            continue;
        } else if (strchr ("'\"`", *at))
            quote = *at;
        else
            depth += (*at == '(') - (*at == ')');
        if (begins && !strchr (" \t\r", *at)) {
            last = at;
            *by = next;
            begins = false;
        }
        at += *at == '\\' && at[1] && quote != '\'';
    }
    return last;
}

/* Whether a command succeeds whatever those before it did. */
static bool always_succeeds (const char *command)
{
    static const char *const names[] = { ":",  "cat",    "cp", "date", "echo",  "ls",   "mkdir",
                                         "mv", "printf", "rm", "sync", "touch", "true", NULL };
    char *name = strndup (command, strcspn (command, " \t\n;&"));
    const char *rest = command + strlen (name ? name : "");
    bool does;

    rest += strspn (rest, " \t;\n");
    does = name
           && (strings_contain (names, name) || (!strcmp (name, "wait") && !*rest)
               || (!strcmp (name, "exit") && *rest == '0'));
    free (name);
    return does;
}

/* Whether there is a training before the last command. */
static bool has_script (const char *text, size_t length)
{
    static const char *const marks[] = { "python", ".py", ".sh", "./", ".R", ".jl", NULL };
    char *before = strndup (text, length);
    const char *const *m = marks;

    while (before && *m && !strstr (before, *m))
        m++;
    free (before);
    return *m;
}

static void warn_of_status (const struct experiment *e)
{
    const char *text = e->entrypoint;
    enum joint by;
    const char *last = text ? last_command (text, &by) : NULL;
    int n = last ? (int)strcspn (last, " \t\n;") : 0;

    if (!last || strstr (text, "pipefail")
        || (by != JOINT_PIPE && !has_script (text, (size_t)(last - text))))
        return;
    if (by == JOINT_PIPE)
        complain ("%s:%d: 'entrypoint' ends in a pipe, whose status is that of "
                  "its last command, '%.*s': a crash before it counts as a "
                  "result; the attempt's log has the output without 'tee', or "
                  "use bash -o pipefail -c '...'",
                  e->file, e->entrypoint_origin.line, n, last);
    else if (by == JOINT_OR && always_succeeds (last))
        complain ("%s:%d: 'entrypoint' ends in '|| %.*s', so a crash counts as "
                  "a result: leave that out",
                  e->file, e->entrypoint_origin.line, n, last);
    else if (by == JOINT_NEXT && always_succeeds (last) && !strstr (text, "set -e"))
        complain ("%s:%d: the status of 'entrypoint' is that of its last "
                  "command, '%.*s': a crash before it counts as a result; "
                  "begin with 'set -e'",
                  e->file, e->entrypoint_origin.line, n, last);
}

void command_warn (const struct experiment *e)
{
    warn_of_metrics (e);
    warn_of_near_names (e);
    warn_of_when (e);
    warn_of_lists (e);
    warn_of_rungs (e);
    warn_of_status (e);
    forgotten_warn (e);
}

void command_check_files (const struct experiment *e, struct problems *p)
{
    char **words = first_words (e);

    check_program (e, words, false, p);
    strings_free (words);
}

int command_check (struct experiment *e, bool local, bool loads)
{
    char **words = first_words (e);
    struct problems p;
    int rv = EXIT_IO;

    if (problems_open (&p) == 0) {
        p.file = e->file;
        if (!e->source) /* it may be of a time without groups */
            groups_check (e, &p);
        software_check (e, local, loads, &p);
        check_program (e, words, local, &p);
        if (!local)
            warn_of_program (e, words);
        rv = p.count ? EXIT_USAGE : EXIT_OK;
        problems_close (&p);
        fputs (p.text, stderr);
        free (p.text);
    }
    strings_free (words);
    return rv;
}
