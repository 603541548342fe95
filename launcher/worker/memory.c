/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a worker's attempts have, and more for those that ran out. */
#include "launcher/worker/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/oom.h"
#include "launcher/sys/say.h"
#include "launcher/worker/services.h"
#include "runtime/base/environment.h"

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

/* What its array was asked to have counts, too: where Slurm does not say what
 * a job has, a larger one would look no larger.
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

/* Those of this job that are at work, this one included. */
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

static void leave (struct worker *w, bool too_small)
{
    char need[32];

    slurm_bytes_text (need, sizeof (need), w->sweep->memory);
    if (!w->memory.leaves && too_small && !w->memory.can_grow)
        complain ("the trials need %s of memory each: start workers in a "
                  "larger job",
                  need);
    else if (!w->memory.leaves)
        fprintf (stderr,
                 too_small ? "dl: the trials need %s of memory each: a larger "
                             "job takes this one's place\n"
                           : "dl: the trials need %s of memory each: one "
                             "worker less has room here\n",
                 need);
    w->memory.leaves = w->out_of_time = true;
    w->memory.too_small = too_small;
}

bool memory_fits (struct worker *w)
{
    int64_t need = w->sweep->memory;
    int64_t bytes;

    if (need == 0 || w->memory.bytes == 0 || need == w->memory.settled)
        return true;
    bytes = bytes_that_count (w);
    if (need > bytes && w->memory.is_job)
        leave (w, true);
    else if (w->memory.place > 0 && (w->memory.place + 1) * need > bytes)
        leave (w, false);
    else if (w->memory.places == 1 || need > bytes || workers_here (w) * need <= bytes) {
        w->memory.settled = need;
        return true;
    }
    return false;
}

int64_t memory_of_attempt (const struct worker *w)
{
    const struct experiment *e = w->sweep->exp;

    if (w->sweep->memory)
        return w->sweep->memory;
    if (e->memory_bytes > 0 && (w->memory.is_job || w->memory.bytes == 0))
        return e->memory_bytes;
    return w->memory.bytes / w->memory.places;
}

/* Of a machine more than there is cannot be had; of Slurm it may. */
static int64_t most_memory (const struct worker *w)
{
    int64_t most = w->sweep->exp->memory_most;

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
    snprintf (why + n, size - n, "; tried again with %s of memory instead of %s", after, before);
}
