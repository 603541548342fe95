/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow: its words. */
#include "launcher/flow/command.h"

#include "launcher/sys/say.h"
#include "launcher/sys/subcommand.h"
#include "runtime/base/nearest_word.h"

static const struct subcommand subcommands[] = {
    { "run", "FILE [NAME=VALUE...]", 1, -1, flow_run },
    { "ls", "", 0, 0, flow_ls },
    { "show", "[FLOW [STEP]]", 0, 2, flow_show },
    { "graph", "[FLOW|FILE]", 0, 1, flow_graph },
    { "resume", "[FLOW]", 0, 1, flow_resume },
    { "stop", "[FLOW]", 0, 1, flow_stop },
    { "step", "FLOW PIN STEP START TASK", 5, 5, flow_step, true },
    { "submit", "FLOW PIN STEP START TASK", 5, 5, flow_rest, true },
    { "next", "FLOW PIN STEP START TASK", 5, 5, flow_next, true },
    { 0 },
};

void flow_words (void)
{
    subcommand_words (subcommands);
}

int cmd_flow (const struct settings *st)
{
    const char *words[sizeof (subcommands) / sizeof (*subcommands)] = { 0 };
    const char *meant;
    size_t n = 0;
    int rv = subcommand_run ("flow", subcommands, st);

    if (rv >= 0)
        return rv;
    for (const struct subcommand *w = subcommands; w->name; w++)
        if (!w->hidden)
            words[n++] = w->name;
    meant = nearest_word (st->args[0], words);
    complain ("no command 'dl flow %s'%s%s%s", st->args[0],
              DID_YOU_MEAN (meant, "'", "'", "; there are run, ls, show, graph, resume and stop"));
    return EXIT_USAGE;
}
