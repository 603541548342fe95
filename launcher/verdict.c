/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ends of a trainer, and what follows from each. */
#include "launcher/verdict.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/reserve.h"
#include "launcher/trainer.h"

/* A shell passes on that its command was killed as 128 + the signal. */
enum { SHELL = 128 };

enum retry { COUNTED, FREE, NEVER };

/* clang-format off */
static const struct {
    int status; /* as of a shell */
    enum retry retry;
    const char *why;
} ends[] = {
    { SLURMDL_EXIT_AGAIN, FREE,    "the trainer asks for another try" },
    { SLURMDL_EXIT_NEVER, NEVER,   "the trainer says that another try makes no sense" },
    { SHELL + SIGUSR1,    FREE,    "the trainer asks for another try" },
    { 126,                COUNTED, "the command cannot be run" },
    { 127,                COUNTED, "there is no such command" },
};
/* clang-format on */

static int shell_status (int status)
{
    return WIFSIGNALED (status) ? SHELL + WTERMSIG (status)
                                : WEXITSTATUS (status);
}

static void why_no_metric (const struct sweep *sweep, struct verdict *v)
{
    if (sweep_metrics (sweep) == 1)
        snprintf (v->why,
                  sizeof (v->why),
                  "ended without logging the metric \"%s\"",
                  sweep_metric (sweep, 0));
    else
        snprintf (v->why,
                  sizeof (v->why),
                  "ended without logging all %zu metrics (\"%s\", \"%s\"%s) "
                  "at one step",
                  sweep_metrics (sweep),
                  sweep_metric (sweep, 0),
                  sweep_metric (sweep, 1),
                  sweep_metrics (sweep) > 2 ? ", ..." : "");
}

static void
why_it_ended (const struct sweep *sweep, int status, struct verdict *v)
{
    if (WIFSIGNALED (status))
        snprintf (v->why,
                  sizeof (v->why),
                  "killed by signal %d (%s)",
                  WTERMSIG (status),
                  strsignal (WTERMSIG (status)));
    else if (WEXITSTATUS (status) > SHELL)
        snprintf (v->why,
                  sizeof (v->why),
                  "exit status %d (%s)",
                  WEXITSTATUS (status),
                  strsignal (WEXITSTATUS (status) - SHELL));
    else if (WEXITSTATUS (status))
        snprintf (
            v->why, sizeof (v->why), "exit status %d", WEXITSTATUS (status));
    else
        why_no_metric (sweep, v);
}

void verdict_of (const struct attempt *a, int status, struct verdict *v)
{
    *v = (struct verdict){ .error = disk_error (a->dir) };
    if (v->error) {
        v->free = true;
        snprintf (v->why, sizeof (v->why), "%s", strerror (v->error));
        return;
    }
    why_it_ended (a->sweep, status, v);
    for (size_t i = 0; i < sizeof (ends) / sizeof (*ends); i++)
        if (shell_status (status) == ends[i].status) {
            size_t n = strlen (v->why);
            v->free = ends[i].retry == FREE;
            v->last = ends[i].retry == NEVER;
            snprintf (v->why + n, sizeof (v->why) - n, ": %s", ends[i].why);
        }
}
