/* SPDX-License-Identifier: Apache-2.0 */
/* Ask Slurm why the worker that had this place before has ended. */
#include "launcher/worker/lost_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/oom.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/step_id.h"

/* srun ends with 128 + SIGKILL where its task was killed, and with 1 where
 * slurmstepd has seen that the kernel did it for want of memory.  A worker
 * that ends by itself does not say 1.
 */
static bool may_be_memory (long status)
{
    return status == 128 + 9 || status == 1;
}

/* A variable that is a number from 0 on; -1: it is not. */
static long number_of_variable (const char *name)
{
    const char *text = getenv (name);
    char *end = NULL;
    long n = text ? strtol (text, &end, 10) : -1;

    return text && *text && !*end && n >= 0 ? n : -1;
}

/* The state of the step before this one, "" if nobody knows it.  A database
 * that does not answer must not hold the worker up for long.
 */
static void ask_sacct (char *state, size_t size)
{
    struct command c = { .timeout = 10, .no_errors = true };
    long job = number_of_variable ("SLURM_JOB_ID");
    long step = number_of_variable ("SLURM_STEP_ID");
    char id[64];
    const char *const words[] = {
        "sacct", "-j", id, "-o", "State", "-n", "-P"
    };

    *state = '\0';
    if (job < 0 || step < 1 || !*step_id ())
        return;
    snprintf (id, sizeof (id), "%ld.%ld", job, step - 1);
    for (size_t i = 0; i < sizeof (words) / sizeof (*words); i++)
        command_add (&c, words[i], NULL);
    if (command_run (&c, NULL, state, size) != 0)
        *state = '\0';
    command_free (&c);
    state[strcspn (state, "\n")] = '\0';
}

static bool was_memory (const char *root)
{
    char state[32];

    ask_sacct (state, sizeof (state));
    return *state ? !strcmp (state, "OUT_OF_MEMORY")
                  : oom_kills_of_job (root) > 0;
}

void worker_exit_read (const char *root, struct worker_exit *l)
{
    long status = number_of_variable ("DL_LAST_STATUS");

    *l = (struct worker_exit){ .counted = false };
    if (status >= 0) {
        l->counted = may_be_memory (status) && was_memory (root);
        if (l->counted)
            snprintf (l->why, sizeof (l->why), "out of memory");
    } else if (number_of_variable ("SLURM_RESTART_COUNT") > 0)
        snprintf (l->why, sizeof (l->why), "preempted or requeued by Slurm");
    unsetenv ("DL_LAST_STATUS");
}
