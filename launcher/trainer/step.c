/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of several ranks: a step of the worker's job, started by srun. */
#include "launcher/trainer/step.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/queries.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"

/* s that srun has to end its step */
enum { END_WAIT = 15 };

/* This program with a command of its own, which another follows. */
static int add_own (char ***words, const char *command)
{
    char dl[PATH_MAX];

    own_program (dl);
    return strings_add (words, dl) | strings_add (words, command) | strings_add (words, "--");
}

int within_command (char ***words)
{
    return add_own (words, "within");
}

int step_command (const struct experiment *e, bool proxy, char ***words)
{
    const struct slurm_step step = {
        .nodes = e->nodes, .tasks = e->nodes * e->ranks, .tasks_per_node = e->ranks, .cpus = e->cpus
    };
    int rv = slurm_step_words (&step, words);

    rv |= experiment_add_plugin_options (e, words);
    return proxy ? rv | add_own (words, "rank") : rv;
}

/* srun that is killed cannot end its step: SIGTERM makes it do that.  It
 * passes SIGUSR2 on to the ranks (rank_proxy.c).
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
