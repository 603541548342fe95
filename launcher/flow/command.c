/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow: its words. */
#include "launcher/flow/command.h"

#include <stdio.h>
#include <string.h>

#include "launcher/sys/say.h"
#include "runtime/base/word.h"

static const struct flow_subcommand {
    const char *name;
    const char *args;
    int min, max; /* arguments behind the word, -1: any number */
    bool hidden;
    int (*run) (const struct settings *st);
} subcommands[] = {
    { "run", "FILE [NAME=VALUE...]", 1, -1, false, flow_run },
    { "ls", "", 0, 0, false, flow_ls },
    { "show", "[FLOW [STEP]]", 0, 2, false, flow_show },
    { "graph", "[FLOW|FILE]", 0, 1, false, flow_graph },
    { "resume", "[FLOW]", 0, 1, false, flow_resume },
    { "stop", "[FLOW]", 0, 1, false, flow_stop },
    { "step", "FLOW PIN STEP START TASK", 5, 5, true, flow_step },
    { "submit", "FLOW PIN STEP START TASK", 5, 5, true, flow_rest },
    { "next", "FLOW PIN STEP START TASK", 5, 5, true, flow_next },
    { 0 },
};

void flow_words (void)
{
    for (const struct flow_subcommand *w = subcommands; w->name; w++)
        if (!w->hidden)
            puts (w->name);
}

int cmd_flow (const struct settings *st)
{
    const char *words[sizeof (subcommands) / sizeof (*subcommands)] = { 0 };
    const char *meant;
    size_t n = 0;

    for (const struct flow_subcommand *w = subcommands; w->name; w++) {
        if (!w->hidden)
            words[n++] = w->name;
        if (strcmp (w->name, st->args[0]))
            continue;
        if (st->nargs - 1 >= w->min && (w->max < 0 || st->nargs - 1 <= w->max))
            return w->run (st);
        complain ("usage: dl flow %s %s", w->name, w->args);
        return EXIT_USAGE;
    }
    meant = nearest_word (st->args[0], words);
    complain ("no command 'dl flow %s'%s%s%s",
              st->args[0],
              meant ? "; did you mean '"
                    : "; there are run, ls, show, graph, resume and stop",
              meant ? meant : "",
              meant ? "'?" : "");
    return EXIT_USAGE;
}
