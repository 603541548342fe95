/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of several ranks: a step of the worker's job, started by srun. */
#include "launcher/trainer/step.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sys/strings.h"
#include "runtime/base/clock.h"

/* s that srun has to end its step */
enum { END_WAIT = 15 };

static char *option (const char *name, const char *value)
{
    char *text = NULL;

    return asprintf (&text, "%s=%s", name, value) < 0 ? NULL : text;
}

static char *number (const char *name, int64_t value)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", (long long)value);
    return option (name, text);
}

static char *self (void)
{
    char dl[4096];
    ssize_t n = readlink ("/proc/self/exe", dl, sizeof (dl) - 1);

    dl[n > 0 ? n : 0] = '\0';
    return strdup (n > 0 ? dl : "dl");
}

int within_command (char ***words)
{
    char *dl = self ();
    int rv = dl ? strings_add (words, dl, strlen (dl)) : -1;

    free (dl);
    return rv | strings_add (words, "within", 6) | strings_add (words, "--", 2);
}

size_t step_command (const struct experiment *e, bool proxy, char ***words)
{
    char *const all[] = {
        strdup ("srun"),
        strdup ("--overlap"),
        strdup ("--input=none"),
        strdup ("--kill-on-bad-exit=1"),
        number ("--nodes", e->nodes),
        number ("--ntasks", e->nodes * e->ranks),
        number ("--ntasks-per-node", e->ranks),
        number ("--cpus-per-task", e->cpus),
        /* all of the environment is the default */
        option (e->framework ? "--dl" : "--export",
                e->framework ? e->framework : "ALL"),
        option (e->check ? "--dl-check" : "--export",
                e->check ? e->check : "ALL"),
        proxy ? self () : NULL,
        proxy ? strdup ("rank") : NULL,
        proxy ? strdup ("--") : NULL,
    };
    size_t n = sizeof (all) / sizeof (*all) - (proxy ? 0 : 3);

    if (!(*words = calloc (n + 1, sizeof (**words))))
        return 0;
    memcpy (*words, all, n * sizeof (*all));
    return n;
}

/* srun that is killed cannot end its step: SIGTERM makes it do that.  It
 * passes SIGUSR2 on to the ranks (rank.c).
 */
void step_signal (pid_t srun, int signal, double *ended)
{
    if (signal == SIGTERM)
        kill (srun, SIGUSR2);
    else if (*ended == 0) {
        *ended = monotonic ();
        kill (srun, SIGTERM);
    } else if (monotonic () - *ended > END_WAIT)
        kill (srun, SIGKILL);
}

void step_end (pid_t srun, double *ended)
{
    while (waitpid (srun, NULL, WNOHANG) == 0) {
        step_signal (srun, SIGKILL, ended);
        usleep (50000);
    }
}
