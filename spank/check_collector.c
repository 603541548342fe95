/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-check: start a collector beside srun, and report to it from each task. */
#include "spank/hooks.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spank/context.h"
#include "spank/helper.h"

/* The same numbers as in launcher/node: the exit statuses of dl if the program must
 * not start, and the seconds that dl may take.
 */
enum {
    END_AGAIN = 75,
    END_NODE = 79,
    QUICK = 20,
    FULL = 125,
    START = 5,
    END_MS = 1000,
    SELF_TEXT = 512
};

static const char gather_variable[] = "SLURM_DL_GATHER";
static int collector = -1; /* srun's end of the collector's standard input */

static bool is_check_wanted (const char *level, bool table)
{
    return table || (*level && strcmp (level, "off"));
}

static const char *level_word (const char *level)
{
    return *level && strcmp (level, "off") ? level : "none";
}

static void run_collector (spank_t sp, const char *level, bool table)
{
    const char *args[] = { "gather", level_word (level), table ? "table" : "plain", NULL };
    char line[128];

    unsetenv (gather_variable);
    collector = helper_ask (sp, args, START, line, sizeof (line));
    if (collector >= 0)
        setenv (gather_variable, line, 1);
    else
        slurm_error ("dl: %s: cannot run %s: %s",
                     is_check_wanted (level, false) ? "--dl-check: each node is checked alone"
                                                    : "--dl-debug: no table of the ranks",
                     option_command (), helper_why (errno));
}

/* srun calls this for each component of a heterogeneous job. */
void gather_start (spank_t sp, const char *level, bool table)
{
    static pid_t done;

    if (!is_check_wanted (level, table) || done == getpid ())
        return;
    run_collector (sp, level, table);
    done = getpid ();
}

void gather_end (void)
{
    struct pollfd p = { .fd = collector, .events = POLLIN };

    if (collector < 0)
        return;
    shutdown (collector, SHUT_WR);
    poll (&p, 1, END_MS);
    close (collector);
    collector = -1;
}

/* "BUILD ARGUMENTS", which should be the same on all nodes. */
static void describe_self (char self[SELF_TEXT])
{
    const struct plugin_context *context = context_own ();
    char build[PLUGIN_BUILD];
    size_t n;

    plugin_build (build);
    n = (size_t)snprintf (self, SELF_TEXT, "%s", build);
    for (int i = 0; i < context->ac && n < SELF_TEXT; i++)
        n += (size_t)snprintf (self + n, SELF_TEXT - n, " %s", context->av[i]);
    if (context->ac == 0)
        snprintf (self + n, SELF_TEXT - n, " none");
}

void gather_task (spank_t sp, const char *level, bool table)
{
    const char *args[] = { "check-rank", level_word (level), table ? "table" : "plain", NULL };
    char self[SELF_TEXT];
    unsigned seconds = strcmp (level, "full") ? QUICK : FULL;
    int status;

    if (!is_check_wanted (level, table))
        return;
    describe_self (self);
    spank_setenv (sp, "DL_PLUGIN", self, 1);
    status = helper_wait (sp, args, seconds);
    if (status == END_AGAIN || status == END_NODE)
        _exit (status);
    if (status != 0 && variable_number (sp, "SLURM_LOCALID") <= 0)
        slurm_error ("dl: %s: %s: %s",
                     is_check_wanted (level, false) ? "--dl-check: this node is not checked"
                                                    : "--dl-debug: this node is not in the table",
                     option_command (), status < 0 ? helper_why (errno) : "it failed");
    spank_unsetenv (sp, gather_variable);
    spank_unsetenv (sp, "DL_PLUGIN");
}
