/* SPDX-License-Identifier: Apache-2.0 */
/* Ask Slurm why the worker that had this place before has ended. */
#include "launcher/worker/lost_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/oom.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"

/* srun ends with 128 + SIGKILL where its task was killed, and with 1 where
 * slurmstepd has seen that the kernel did it for want of memory.  A worker
 * that ends by itself does not say 1.
 */
static bool may_be_memory (long status)
{
    return status == 128 + 9 || status == 1;
}

/* The state of the step before this one, "" if nobody knows it.  A database
 * that does not answer must not hold the worker up for long.
 */
static void ask_sacct (char *state, size_t size)
{
    struct command c = { .timeout = 10, .no_errors = true };
    long job = (long)environment_number ("SLURM_JOB_ID", -1);
    long step = (long)environment_number ("SLURM_STEP_ID", -1);
    char id[64];
    const char *const words[] = { "sacct", "-j", id, "-o", "State", "-n", "-P" };

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
    return *state ? !strcmp (state, "OUT_OF_MEMORY") : oom_kills_of_job (root) > 0;
}

void worker_exit_read (const char *root, struct worker_exit *l)
{
    long status = (long)environment_number ("DL_LAST_STATUS", -1);

    *l = (struct worker_exit){ .counted = false };
    if (status >= 0) {
        l->counted = may_be_memory (status) && was_memory (root);
        if (l->counted)
            snprintf (l->why, sizeof (l->why), "out of memory");
    } else if (environment_number ("SLURM_RESTART_COUNT", -1) > 0) {
        l->requeued = true;
        snprintf (l->why, sizeof (l->why), "preempted or requeued by Slurm");
    }
    unsetenv ("DL_LAST_STATUS");
}

/* clang-format off */
static const struct {
    const char *state;
    bool counted;
    const char *why;
} states[] = {
    { "OUT_OF_MEMORY", true,  "Slurm ended its worker for want of memory" },
    { "NODE_FAIL",     false, "the node of its worker has failed" },
    { "BOOT_FAIL",     false, "the node of its worker has failed" },
    { "PREEMPTED",     false, "Slurm took its job back for another one" },
    { "TIMEOUT",       false, "Slurm ended its worker at the time limit" },
    { "DEADLINE",      false, "Slurm ended its worker at the deadline" },
    { "CANCELLED",     false, "the job of its worker was cancelled" },
    { NULL, false, NULL },
};
/* clang-format on */

/* The last final state in a text; the last run but this one where the job was
 * requeued.
 */
static int last_state (const char *text)
{
    int found = -1;

    for (; *text; text += strcspn (text, "\n"), text += *text == '\n')
        for (int i = 0; states[i].state; i++) {
            size_t n = strlen (states[i].state);
            if (!strncmp (text, states[i].state, n) && strchr ("\n |", text[n]))
                found = i;
        }
    return found;
}

static int ask_for (const char *const *words, char *text, size_t size)
{
    struct command c = { .timeout = 10, .no_errors = true };
    int status;

    for (; *words; words++)
        command_add (&c, *words, NULL);
    status = command_run (&c, NULL, text, size);
    command_free (&c);
    return status == 0 ? 0 : -1;
}

/* "12_3" of the slot "12_3" or "12_3.1"; -1: it is none of an array's. */
static int task_of (char *task, size_t size, const char *slot)
{
    size_t job = strspn (slot, "0123456789");
    size_t n = slot[job] == '_' ? strspn (slot + job + 1, "0123456789") : 0;

    if (job == 0 || n == 0 || job + n + 2 > size || !strchr (".", slot[job + 1 + n]))
        return -1;
    snprintf (task, size, "%.*s", (int)(job + 1 + n), slot);
    return 0;
}

bool worker_exit_can_ask (const char *slot)
{
    char task[48];

    return task_of (task, sizeof (task), slot) == 0;
}

static int state_of_job (const char *task)
{
    const char *const accounting[] = { "sacct", "-j", task, "-X",    "-D",
                                       "-n",    "-P", "-o", "State", NULL };
    const char *const control[] = { "scontrol", "--oneliner", "show", "job", task, NULL };
    char text[4096];
    const char *at;
    int state = -1;

    if (ask_for (accounting, text, sizeof (text)) == 0)
        state = last_state (text);
    if (state < 0 && ask_for (control, text, sizeof (text)) == 0
        && (at = strstr (text, " JobState=")))
        state = last_state (at + strlen (" JobState="));
    return state;
}

void worker_exit_ask (const char *slot, struct worker_exit *l)
{
    char task[48];
    int state;

    if (task_of (task, sizeof (task), slot) < 0 || (state = state_of_job (task)) < 0)
        return;
    l->counted = states[state].counted;
    snprintf (l->why, sizeof (l->why), "%s: %s", states[state].state, states[state].why);
}
