/* SPDX-License-Identifier: Apache-2.0 */
/* dl requeue: put an array task with work left back into the queue. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/worker/worker.h"

static int requeue_task (const struct sweep *s)
{
    char hosts[PATH_MAX];

    executor_excluded (s, hosts, sizeof (hosts));
    return allocation_requeue (hosts);
}

/* Submit an array with one task to replace this one.  Sets '*never' if Slurm can never
 * start such a job.
 */
static int submit_successor (struct sweep *s, bool *never)
{
    struct slurmdl_error err = { "" };
    struct executor x;
    int rv;

    executor_open (&x, s, false, s->exp->resources->lanes);
    if ((rv = x.ops->start (&x, &err)) < 0) {
        complain ("%s", err.text);
        *never = x.never;
    } else
        complain ("array %s continues", x.job);
    x.ops->close (&x);
    return rv;
}

/* Slurm can never provide the memory that some trials need.  Record that they failed;
 * this job has enough memory for the others.
 */
static void give_up_memory (struct sweep *s)
{
    struct event *events = xcalloc ((size_t)s->ntrials + 1, sizeof (*events));
    struct job_memory here;
    struct slurmdl_error err = { "" };
    char need[32], why[128];
    enum published rv = PUBLISH_LATE;

    job_memory_find ("", &here);
    slurm_bytes_text (need, sizeof (need), s->memory);
    snprintf (why, sizeof (why), "out of memory: Slurm has no job with %s for each trial", need);
    while (rv == PUBLISH_LATE) {
        size_t n = 0;
        for (long i = 1; i <= s->ntrials; i++)
            if (sweep_trial (s, i)->state == TRIAL_OPEN
                && sweep_trial (s, i)->memory * s->exp->resources->lanes > here.bytes)
                events[n++] = (struct event){ .op = EVENT_EXIT,
                                              .by = "memory",
                                              .trial = i,
                                              .memory = here.bytes / s->exp->resources->lanes,
                                              .why = why };
        rv = n && here.bytes > 0 ? sweep_publish (s, events, n, &err) : PUBLISH_DONE;
    }
    free (events);
    if (rv == PUBLISH_FAILED)
        complain ("%s", err.text);
}

/* Returns 0 if a larger job replaces this one. */
static int grow_job (struct sweep *s)
{
    bool never = false;

    if (submit_successor (s, &never) == 0)
        return 0;
    if (never)
        give_up_memory (s);
    return -1;
}

/* Exclude this node because it failed the check before its workers started. */
static void exclude_here (struct sweep *s)
{
    const char *host = getenv ("SLURMD_NODENAME");
    struct event event = {
        .op = EVENT_EXCLUDE, .by = "check", .host = (char *)host, .why = "it failed its check"
    };
    struct slurmdl_error err = { "" };
    const struct host *h;
    enum published rv = PUBLISH_LATE;

    while (host && rv == PUBLISH_LATE && (!(h = sweep_host (s, host)) || !h->why))
        rv = sweep_publish (s, &event, 1, &err);
    if (rv == PUBLISH_FAILED)
        complain ("%s", err.text);
}

int cmd_requeue (const struct command_line *line)
{
    const char *job = getenv ("SLURM_JOB_ID");
    int status = (int)strtol (line->args[1], NULL, 10);
    bool never = false;
    struct sweep *s;
    int rv = open_to_run (line, false, line->args[0], &s);

    if (rv)
        return rv;
    if (status == EXIT_BAD_NODE)
        exclude_here (s);
    rv = status;
    if (s->state == SWEEP_RUNNING && job
        && ((status == EXIT_SMALL && grow_job (s) == 0)
            || (requeue_task (s) < 0 && submit_successor (s, &never) == 0)))
        rv = EXIT_OK;
    sweep_close (s);
    return rv;
}
