/* SPDX-License-Identifier: Apache-2.0 */
/* Find out how a job or step ended: by sacct, or by scontrol if there is no accounting. */
#include <stdio.h>
#include <string.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/subprocess.h"

/* Do not let a database that does not answer hold up a worker for long. */
enum { WAIT = 10 };

static const char *const final_states[] = {
    "COMPLETED", "FAILED",  "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL",
    "PREEMPTED", "TIMEOUT", "DEADLINE",      "CANCELLED", NULL,
};

static int run_accounting (const char *const *words, char *text, size_t size)
{
    struct command c = { .timeout = WAIT, .no_errors = true };
    int status;

    for (; *words; words++)
        command_add (&c, *words, NULL);
    status = command_run (&c, NULL, text, size);
    command_free (&c);
    return status == 0 ? 0 : -1;
}

/* Find the last line with a final state, for example "CANCELLED by 100".  For a requeued job this
 * is the state of the previous run, because the present one has no final state yet.
 */
static void last_state (const char *text, char state[32])
{
    for (; *text; text += strcspn (text, "\n"), text += *text == '\n')
        for (const char *const *s = final_states; *s; s++) {
            size_t n = strlen (*s);
            if (!strncmp (text, *s, n) && strchr ("\n |", text[n]))
                snprintf (state, 32, "%s", *s);
        }
}

void slurm_step_state (long job, long step, char state[32])
{
    char id[64], text[4096];
    const char *const words[] = { "sacct", "-j", id, "-o", "State", "-n", "-P", NULL };

    *state = '\0';
    snprintf (id, sizeof (id), "%ld.%ld", job, step);
    if (run_accounting (words, text, sizeof (text)) == 0)
        last_state (text, state);
}

void slurm_job_state (const char *job, char state[32])
{
    const char *const accounting[] = { "sacct", "-j", job,  "-X",    "-D",
                                       "-n",    "-P", "-o", "State", NULL };
    char text[4096];
    const char *at;

    *state = '\0';
    if (run_accounting (accounting, text, sizeof (text)) == 0)
        last_state (text, state);
    if (!*state && slurm_show ("job", job, WAIT, text, sizeof (text)) == 0
        && (at = strstr (text, " JobState=")))
        last_state (at + strlen (" JobState="), state);
}
