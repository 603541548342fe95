/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker learns of the allocation that it is in. */
#include "launcher/worker/allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sys/devices.h"
#include "launcher/worker/worker.h"
#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"

/* What Slurm and the script need at the end, s; and, in a longer allocation,
 * how early the signal comes that sbatch was asked for (slurm.c).
 */
enum { SPARE = 10, SIGNAL_EARLY = 90, SIGNAL_FROM = 600 };

static const char *variable (const char *name)
{
    return environment_text (name, NULL);
}

/* What Slurm says of the job that this worker is in. */
static enum slurm_answer ask_slurm (struct slurm_job *job)
{
    struct slurm_jobs jobs;
    char name[80];
    enum slurm_answer answer;

    snprintf (name, sizeof (name), variable ("SLURM_ARRAY_TASK_ID") ? "%.30s_%.30s" : "%.30s",
              variable ("SLURM_ARRAY_JOB_ID") ?: getenv ("SLURM_JOB_ID"),
              variable ("SLURM_ARRAY_TASK_ID") ?: "");
    answer = slurm_jobs_ask (&(struct slurm_queue){ .jobs = name, .seconds = 10 }, &jobs, NULL);
    if (answer == SLURM_ANSWERED && jobs.n == 0)
        answer = SLURM_NO_SUCH_JOB;
    if (answer == SLURM_ANSWERED)
        *job = jobs.list[0];
    slurm_jobs_free (&jobs);
    return answer;
}

enum job_state allocation_state (void)
{
    /* a job in one of these has its nodes */
    static const char *const living[] = { "RUNNING",  "SUSPENDED",   "STOPPED",
                                          "RESIZING", "CONFIGURING", "SIGNALING" };
    struct slurm_job job;

    if (!variable ("SLURM_JOB_ID"))
        return JOB_RUNS;
    switch (ask_slurm (&job)) {
    case SLURM_ANSWERED:
        for (size_t i = 0; i < sizeof (living) / sizeof (*living); i++)
            if (!strcmp (job.state, living[i]))
                return JOB_RUNS;
        return JOB_ENDED;
    case SLURM_NO_SUCH_JOB:
        return JOB_ENDED;
    case SLURM_UNREACHABLE:
        return JOB_UNKNOWN;
    case SLURM_FAILED:
        break;
    }
    return JOB_RUNS;
}

/* Seconds until Slurm ends the job, 0: not known, or never. */
static double time_left (void)
{
    double now = (double)time (NULL);
    double left = 0;
    struct slurm_job job;

    if (variable ("SLURM_JOB_END_TIME"))
        left = (double)environment_number ("SLURM_JOB_END_TIME", 0) - now;
    else if (variable ("DL_TIME_LEFT"))
        /* the script has asked for all of its workers */
        left = slurm_seconds (variable ("DL_TIME_LEFT"));
    else if (variable ("SLURM_JOB_ID") && !getenv ("DL_TIME_LEFT"))
        left = ask_slurm (&job) == SLURM_ANSWERED ? job.seconds_left : 0;
    if (left == 0)
        return 0;
    left -= left > SIGNAL_FROM ? SIGNAL_EARLY : SPARE;
    if (variable ("DL_TIME_LEFT") && !variable ("SLURM_JOB_END_TIME"))
        left -= now - (double)environment_number ("DL_TIME_ASKED", 0);
    return left > 1 ? left : 1;
}

static void find_slot (const struct settings *st, char *slot, size_t size)
{
    const char *job = variable ("SLURM_ARRAY_JOB_ID");
    const char *task = variable ("SLURM_ARRAY_TASK_ID");
    const char *rank = variable ("SLURM_PROCID");
    const char *step = step_id ();

    if (st->slot)
        snprintf (slot, size, "%s", st->slot);
    else if (job && task && environment_number ("SLURM_STEP_NUM_TASKS", 0) > 1)
        snprintf (slot, size, "%.20s_%.20s.%.10s", job, task, rank);
    else if (job && task)
        snprintf (slot, size, "%.20s_%.20s", job, task);
    else if (variable ("SLURM_JOB_ID") && *step && rank)
        snprintf (slot, size, "%.20s.%.10s_%.10s", getenv ("SLURM_JOB_ID"), step, rank);
    else
        snprintf (slot, size, "worker-%ld", (long)getpid ());
}

/* Slurm shows all GPUs of the task to each of the workers in it. */
static void take_gpus (const struct experiment *e)
{
    struct devices *d;
    int lane = (int)environment_number ("SLURM_LOCALID", 0);

    if (e->node_gpus == 0 || environment_number ("SLURM_STEP_NUM_TASKS", 0) < 2
        || !(d = devices_find (NULL)))
        return;
    if (d->ngpus > e->node_gpus && lane < devices_places (d, (int)e->node_gpus))
        devices_take (d, lane, (int)e->node_gpus);
    devices_destroy (d);
}

void place_find (struct worker_place *place, const struct experiment *e, const struct settings *st,
                 char *slot, size_t size)
{
    const char *fresh = variable ("DL_FRESH");

    find_slot (st, slot, size);
    if (!st->slot)
        take_gpus (e);
    *place = (struct worker_place){
        .slot = slot,
        .seconds = st->slot ? 0 : time_left (),
        .fresh = !fresh || strcmp (fresh, "0"),
    };
}
