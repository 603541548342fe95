/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation that a worker runs in: its slot and GPUs, its time and memory, and what fits. */
#include "launcher/worker/worker.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/config/worker_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/devices.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/oom.h"
#include "launcher/worker/worker_private.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"

/* Seconds that Slurm and the script need at the end.  In longer allocations, also how early
 * sbatch is asked to send the signal (executor_slurm.c).
 */
enum { SPARE = 10, SIGNAL_EARLY = 90, SIGNAL_FROM = 600 };

/* Seconds that Slurm may take to end a requeued task. */
enum { REQUEUE_WAIT = 60 };

static const char *slurm_variable (const char *name)
{
    return environment_text (name, NULL);
}

/* Ask Slurm about the job that this worker is in. */
static enum slurm_answer ask_for_own_job (struct slurm_job *job)
{
    struct slurm_jobs jobs;
    char name[80];
    enum slurm_answer answer;

    slurm_own_job (name);
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
    /* in these states a job holds its nodes */
    static const char *const living[] = { "RUNNING",  "SUSPENDED",   "STOPPED",
                                          "RESIZING", "CONFIGURING", "SIGNALING" };
    struct slurm_job job;

    if (!slurm_variable ("SLURM_JOB_ID"))
        return JOB_RUNS;
    switch (ask_for_own_job (&job)) {
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

char *allocation_nodes (void)
{
    char name[80];

    if (!slurm_variable ("SLURM_JOB_ID")
        || (slurm_components () == 1 && environment_number ("SLURM_JOB_NUM_NODES", 1) < 2))
        return NULL;
    slurm_own_job (name);
    return slurm_nodes_of_job (name);
}

double allocation_seconds_left (void)
{
    double now = (double)time (NULL);
    double left = 0;
    struct slurm_job job;

    if (slurm_variable ("SLURM_JOB_END_TIME"))
        left = (double)environment_number ("SLURM_JOB_END_TIME", 0) - now;
    else if (slurm_variable ("DL_TIME_LEFT"))
        /* the batch script asked squeue once, for all of its workers */
        left = slurm_seconds (slurm_variable ("DL_TIME_LEFT"));
    else if (slurm_variable ("SLURM_JOB_ID") && !getenv ("DL_TIME_LEFT"))
        left = ask_for_own_job (&job) == SLURM_ANSWERED ? job.seconds_left : 0;
    if (left == 0)
        return 0;
    left -= left > SIGNAL_FROM ? SIGNAL_EARLY : SPARE;
    if (slurm_variable ("DL_TIME_LEFT") && !slurm_variable ("SLURM_JOB_END_TIME"))
        left -= now - (double)environment_number ("DL_TIME_ASKED", 0);
    return left > 1 ? left : 1;
}

/* Whether Slurm has requeued the job by itself, for example because it noticed that a node is lost.
 */
static bool is_requeued (void)
{
    struct slurm_job job;

    return ask_for_own_job (&job) == SLURM_ANSWERED && !strcmp (job.state, "PENDING");
}

/* Only a pending job can be kept off nodes, so do that after the requeue.  The requeue ends this
 * process, which has until KillWait.
 */
int allocation_requeue (const char *avoid)
{
    struct slurmdl_error err = { "" };
    char name[80];
    sigset_t term;

    slurm_own_job (name);
    sigemptyset (&term);
    sigaddset (&term, SIGTERM);
    sigprocmask (SIG_BLOCK, &term, NULL);
    if (slurm_requeue (name, &err) < 0 && !is_requeued ()) {
        complain ("%s", err.text);
        return -1;
    }
    for (int i = 0; *avoid && i < 3 && slurm_avoid (name, avoid, &err) < 0; i++) {
        complain ("%s", err.text);
        sleep (1);
    }
    sleep (REQUEUE_WAIT);
    return 0;
}

static void find_slot (const char *given, char *slot, size_t size)
{
    const char *job = slurm_variable ("SLURM_ARRAY_JOB_ID");
    const char *task = slurm_variable ("SLURM_ARRAY_TASK_ID");
    const char *rank = slurm_variable ("SLURM_PROCID");
    const char *step = step_id ();

    if (given)
        snprintf (slot, size, "%s", given);
    else if (job && task && environment_number ("SLURM_STEP_NUM_TASKS", 0) > 1)
        snprintf (slot, size, "%.20s_%.20s.%.10s", job, task, rank);
    else if (job && task)
        snprintf (slot, size, "%.20s_%.20s", job, task);
    else if (slurm_variable ("SLURM_JOB_ID") && !*step)
        snprintf (slot, size, "%.20s", getenv ("SLURM_JOB_ID"));
    else if (slurm_variable ("SLURM_JOB_ID") && *step && rank)
        snprintf (slot, size, "%.20s.%.10s_%.10s", getenv ("SLURM_JOB_ID"), step, rank);
    else
        snprintf (slot, size, "worker-%ld", (long)getpid ());
}

/* Share out the GPUs, because Slurm shows every worker of the task all of them. */
static void take_gpus (const struct experiment *e)
{
    struct devices *d;
    int lane = (int)environment_number ("SLURM_LOCALID", 0);

    if (e->resources->node_gpus == 0 || environment_number ("SLURM_STEP_NUM_TASKS", 0) < 2)
        return;
    d = devices_find (NULL);
    if (d->ngpus > e->resources->node_gpus
        && lane < devices_places (d, (int)e->resources->node_gpus))
        devices_take (d, lane * (int)e->resources->node_gpus, (int)e->resources->node_gpus);
    devices_destroy (d);
}

void place_find (struct worker_place *place, const struct experiment *e, const char *given,
                 char *slot, size_t size)
{
    const char *fresh = slurm_variable ("DL_FRESH");

    find_slot (given, slot, size);
    if (!given)
        take_gpus (e);
    *place = (struct worker_place){
        .slot = slot,
        .seconds = given ? 0 : allocation_seconds_left (),
        .fresh = !fresh || strcmp (fresh, "0"),
    };
}

/* ---- what fits into the time ---- */

/* How many times longer than the others a segment may take. */
static const double segment_slack = 1.5;

/* An attempt that resumes where the last one stopped exceeds the last step by more than this
 * factor.
 */
static const double resume_growth = 1.1;

/* Seconds per unit of length in the trial, or else in all trials that have a length, attempts that
 * failed included; 0: unknown.
 */
static double seconds_per_length (const struct sweep *s, const struct sweep_trial *t)
{
    if (t && t->length > 0)
        return t->seconds / (double)t->length;
    return s->pace.length > 0 ? s->pace.seconds / s->pace.length : 0;
}

static bool attempt_has_ckpt (const struct sweep *s, long trial, long attempt)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/ckpt", s->dir, trial, attempt);
    return attempt > 0 && access (path, F_OK) == 0;
}

/* Judge by the trial's own attempts, or else by those of the best trial. */
static bool saves_checkpoints (const struct sweep *s, long trial)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    const struct sweep_trial *best = sweep_trial (s, sweep_best (s));

    return (t && attempt_has_ckpt (s, trial, t->over))
           || (best && attempt_has_ckpt (s, sweep_best (s), trial_last (best).attempt));
}

bool time_fits (const struct worker *w, long trial, int64_t length)
{
    const struct sweep *s = w->sweep;
    const struct sweep_trial *t = sweep_trial (s, trial);
    double grace = (double)s->exp->worker->grace;
    double left = w->end - monotonic () - grace;

    if (w->end == 0 || w->fresh
        || seconds_per_length (s, t) * (double)(length - (t ? t->length : 0)) * segment_slack
               <= left)
        return true;
    return left > grace && saves_checkpoints (s, trial);
}

static int64_t newest_step (const struct sweep *s, long trial, long attempt)
{
    char path[PATH_MAX];
    int64_t step;
    double value;

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    return newest_metric (path, sweep_metric (s, 0), &step, &value) == 0 ? step : 0;
}

bool attempt_in_vain (const struct worker *w, const struct trial_attempt *a)
{
    int64_t before = 0;

    if (w->end == 0 || !w->fresh || a->number < 2
        || monotonic () + (double)a->sweep->exp->worker->grace < w->end
        || attempt_has_ckpt (a->sweep, a->trial, a->number))
        return false;
    for (long k = 1; k < a->number; k++) {
        int64_t step = newest_step (a->sweep, a->trial, k);
        before = step > before ? step : before;
    }
    return (double)newest_step (a->sweep, a->trial, a->number) <= resume_growth * (double)before;
}

/* ---- memory ---- */

enum { MIB = 1 << 20 };

static int64_t bytes_of_job (void)
{
    long long each = environment_number ("SLURM_MEM_PER_NODE", 0);

    return (each ? each
                 : environment_number ("SLURM_MEM_PER_CPU", 0)
                       * environment_number ("SLURM_CPUS_ON_NODE", 0))
           * MIB;
}

void job_memory_find (const char *root, struct job_memory *m)
{
    const char *place = getenv ("DL_WORKER_PLACE");
    long lanes = (long)environment_number ("SLURM_STEP_NUM_TASKS", 0);

    *m = (struct job_memory){ .places = 1 };
    if (place && sscanf (place, "%ld/%ld", &m->place, &m->places) == 2)
        m->bytes = oom_memory_limit (root);
    else if (getenv ("SLURM_JOB_ID")) {
        m->is_job = true;
        m->can_grow = getenv ("SLURM_ARRAY_JOB_ID") && getenv ("SLURM_ARRAY_TASK_ID");
        m->bytes = bytes_of_job ();
        m->places = lanes > 1 ? lanes : 1;
        m->place = lanes > 1 ? (long)environment_number ("SLURM_LOCALID", 0) : 0;
    }
    if (m->places < 1)
        m->places = 1;
    unsetenv ("DL_WORKER_PLACE");
}

/* Consider the memory that was requested for the array, too: if Slurm does not report what a job
 * has, a larger job would not look larger.
 */
static int64_t bytes_that_count (const struct worker *w)
{
    const char *array = getenv ("SLURM_ARRAY_JOB_ID");
    int64_t most = w->memory.bytes;

    for (size_t i = 0; array && most > 0 && i < w->sweep->nsubmits; i++) {
        const struct submit *a = &w->sweep->submits[i];
        size_t n = strcspn (a->job, ";");
        if (n == strlen (array) && !strncmp (a->job, array, n) && a->memory > most)
            most = a->memory;
    }
    return most;
}

/* Return the number of running workers in this job, including this one. */
static long workers_here (const struct worker *w)
{
    const char *mark = strrchr (w->slot, w->memory.is_job ? '.' : '-');
    size_t n = mark ? (size_t)(mark - w->slot) + 1 : strlen (w->slot);
    struct peer_info *list = NULL;
    long peers = peer_list (w->sweep->dir, &list, NULL);
    long here = 0;

    for (long i = 0; i < peers; i++)
        here += !list[i].gone && !strncmp (list[i].slot, w->slot, n);
    free (list);
    return here;
}

static void leave_for_memory (struct worker *w, bool too_small)
{
    char need[32];

    slurm_bytes_text (need, sizeof (need), w->sweep->memory);
    if (!w->memory.leaves && too_small && !w->memory.can_grow)
        complain ("the trials need %s of memory each: start workers in a larger job", need);
    else if (!w->memory.leaves)
        fprintf (stderr,
                 too_small
                     ? "dl: the trials need %s of memory each: a larger job replaces this one\n"
                     : "dl: the trials need %s of memory each: running one worker less here\n",
                 need);
    w->memory.leaves = w->out_of_time = true;
    w->memory.too_small = too_small;
}

bool memory_fits (struct worker *w)
{
    int64_t need = w->sweep->memory;
    int64_t bytes;

    if (need == 0 || w->memory.bytes == 0 || need == w->memory.fitting)
        return true;
    bytes = bytes_that_count (w);
    if (need > bytes && w->memory.is_job)
        leave_for_memory (w, true);
    else if (w->memory.place > 0 && (w->memory.place + 1) * need > bytes)
        leave_for_memory (w, false);
    else if (w->memory.places == 1 || need > bytes || workers_here (w) * need <= bytes) {
        w->memory.fitting = need;
        return true;
    }
    return false;
}

int64_t memory_of_attempt (const struct worker *w)
{
    const struct experiment *e = w->sweep->exp;

    if (w->sweep->memory)
        return w->sweep->memory;
    if (e->resources->memory_bytes > 0 && (w->memory.is_job || w->memory.bytes == 0))
        return e->resources->memory_bytes;
    return w->memory.bytes / w->memory.places;
}

/* The most memory that a retry can get.  Slurm may find a larger node, but without a job this
 * machine has only what it has.
 */
static int64_t most_memory (const struct worker *w)
{
    int64_t most = w->sweep->exp->resources->memory_most;

    if (!w->memory.is_job && w->memory.bytes > 0 && w->memory.bytes < most)
        most = w->memory.bytes;
    if (w->sweep->memory_limit > 0 && w->sweep->memory_limit < most)
        most = w->sweep->memory_limit;
    return most / MIB * MIB;
}

int64_t memory_to_retry (const struct worker *w, int64_t had, int64_t peak)
{
    int64_t most = most_memory (w);
    int64_t more = (peak > had ? peak : had) / 2 * 3;

    if (most == 0 || had == 0)
        return 0;
    if (w->sweep->memory > had)
        return w->sweep->memory;
    more = (more + MIB - 1) / MIB * MIB;
    if (more > most)
        more = most;
    return more > had ? more : 0;
}

void memory_add_reason (char *why, size_t size, int64_t had, int64_t more)
{
    char before[32], after[32];
    size_t n = strlen (why);

    slurm_bytes_text (before, sizeof (before), had);
    slurm_bytes_text (after, sizeof (after), more);
    snprintf (why + n, size - n, "; retried with %s of memory instead of %s", after, before);
}
