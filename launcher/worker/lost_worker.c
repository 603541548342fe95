/* SPDX-License-Identifier: Apache-2.0 */
/* Ask Slurm why the worker that had this place before has ended. */
#include "launcher/worker/lost_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/oom.h"
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

/* Whether the step before this one was killed for want of memory. */
static bool was_memory (const char *root)
{
    long job = (long)environment_number ("SLURM_JOB_ID", -1);
    long step = (long)environment_number ("SLURM_STEP_ID", -1);
    char state[32] = "";

    if (job >= 0 && step > 0 && *step_id ())
        slurm_step_state (job, step - 1, state);
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

void worker_exit_ask (const char *slot, struct worker_exit *l)
{
    char task[48], state[32];

    if (task_of (task, sizeof (task), slot) < 0)
        return;
    slurm_job_state (task, state);
    for (int i = 0; states[i].state; i++)
        if (!strcmp (state, states[i].state)) {
            l->counted = states[i].counted;
            snprintf (l->why, sizeof (l->why), "%s: %s", state, states[i].why);
        }
}
