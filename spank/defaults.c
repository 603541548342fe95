/* SPDX-License-Identifier: Apache-2.0 */
/* One decision a step: srun's policy, which all tasks follow. */
#include "spank/defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rank/task.h"
#include "spank/context.h"
#include "spank/step_facts.h"
#include "spank/variable.h"

/* srun passes variables of this prefix with --export=NONE, too. */
static const char variable[] = "SLURM_DL_POLICY";

bool defaults_are_off (void)
{
    const char *chosen = getenv ("DL_DEFAULTS");

    return (chosen && !strcmp (chosen, "off"))
           || !strcmp (context_own ()->given[PLUGIN_FRAMEWORK], "off");
}

static bool is_path (const char *argument)
{
    return !strncmp (argument, "dl=/", 4) || !strncmp (argument, "nccl_dir=/", 10)
           || !strncmp (argument, "monitor_dir=/", 13);
}

static bool is_condition (const char *argument)
{
    return !strncmp (argument, "when=", 5) && argument[5];
}

/* "bind when=gpus:any default=auto": words of what srun knows, "-" for none,
 * and its arguments, but for the paths, which are each node's own.  One behind
 * a when= is none: it is invalid.
 */
void defaults_tell (bool any, int ac, char **av)
{
    char text[WORD_TEXT];
    bool conditional = false;
    int n;

    unsetenv (variable);
    if (!any)
        return;
    n = snprintf (text, sizeof (text), "%s%s%s", defaults_are_off () ? "off," : "",
                  *option_value (PLUGIN_BIND) && !option_is_given (PLUGIN_BIND)
                          && !facts_user_binds ()
                      ? "bind,"
                      : "",
                  facts_user_starts () ? "mpi,-" : "-");
    for (int i = 0; i < ac && n < WORD_TEXT; i++) {
        conditional = conditional || is_condition (av[i]);
        if (conditional || !is_path (av[i]))
            n += snprintf (text + n, (size_t)(WORD_TEXT - n), " %s", av[i]);
    }
    if (n < WORD_TEXT)
        setenv (variable, text, 1);
}

static void add (struct defaults_word *w, char *word)
{
    if (w->ac < WORDS)
        w->words[w->ac++] = word;
}

void defaults_hear (spank_t sp, struct defaults_word *w, int ac, char **av)
{
    char *next = NULL;
    char *word;

    memset (w, 0, offsetof (struct defaults_word, text));
    w->ac = ac;
    w->av = av;
    w->known = variable_text (sp, variable, w->text, sizeof (w->text)) == 0;
    context_own ()->no_defaults = !w->known;
    if (!w->known)
        return;
    spank_unsetenv (sp, variable);
    w->ac = 0;
    w->av = w->words;
    for (int i = 0; i < ac && !is_condition (av[i]); i++)
        if (is_path (av[i]))
            add (w, av[i]);
    word = strtok_r (w->text, " ", &next);
    w->may_bind = word && strstr (word, "bind,");
    w->starts = word && strstr (word, "mpi,");
    context_own ()->no_defaults = word && strstr (word, "off,");
    while ((word = strtok_r (NULL, " ", &next)))
        add (w, word);
}

void defaults_clear (spank_t sp)
{
    static const char *const names[] = { "DL_SECRET", "SLURM_DL_BOARD", "SLURM_DL_GATHER",
                                         ORDER_VARIABLE };

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        spank_unsetenv (sp, names[i]);
}

void defaults_report (bool binds)
{
    char text[512] = "";
    size_t n = 0;

    for (int row = 0; row < PLUGIN_OPTIONS && n < sizeof (text); row++)
        if (option_is_on (row) && !option_is_given (row) && (row != PLUGIN_BIND || binds))
            n += (size_t)snprintf (text + n, sizeof (text) - n, " --%s=%s",
                                   plugin_options[row].name, option_value (row));
    if (n > 0)
        slurm_spank_log ("dl: this site's default is%s; --dl=off or "
                         "DL_DEFAULTS=off switches it off",
                         text);
}
