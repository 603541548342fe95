/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: claims segments of a sweep and trains them until none is left. */
#pragma once

#include "launcher/sweep/attempt.h"
#include "launcher/sweep/sweep.h"
#include "launcher/worker/failure.h"
#include "launcher/worker/lost_worker.h"

/* How a worker ended; also its exit status (launcher/sys/say.h). */
enum worker_end {
    WORKER_DONE,      /* the sweep has ended or was stopped */
    WORKER_FAULT,     /* the sweep was paused because all trials fail in the same way */
    WORKER_PARKED,    /* the worker was asked to stop; there is work left */
    WORKER_PREEMPTED, /* the same, by SIGTERM: Slurm is about to kill it */
    WORKER_EXCLUDED,  /* no attempt may begin on this node */
    WORKER_SMALL,     /* trials need more memory than the job has */
    WORKER_ERROR,
};

/* Block SIGCHLD and the signals that are requests.  Returns a descriptor to read them from, or -1
 * with errno.
 */
int worker_watch_signals (void);

/* How a command that does not belong to a trial ended. */
struct command_report {
    int status;                   /* wait status */
    int stop;                     /* signal that asked this process to stop; 0: none */
    bool out_of_time;             /* asked to stop because the job's time is up */
    struct failure_class verdict; /* not set if 'status' is 0 or 'stop' is set */
};

/* Run a command in a->dir like the attempt of a trial: in its working folder, through srun if it
 * has ranks, and in a container if it has an image.  When this process is asked to stop, or few of
 * its 'seconds' (0: no limit) are left, ask the command to stop and allow it worker.grace seconds.
 * Handles signals as worker_run() does.  Returns -1 with 'err' if the command could not be started.
 */
int command_attempt (const struct trial_attempt *a, double seconds, struct command_report *r,
                     struct slurmdl_error *err);

/* The place of a worker in its allocation. */
struct worker_place {
    const char *slot;
    double seconds; /* until Slurm kills it; 0: no limit */
    bool fresh;     /* the job has just started: a new one would have no more time */
    const struct worker_exit *lost; /* how the previous worker here ended; NULL: unknown */
};

/* Work on 'sweep' at 'place' until no work is left or the worker has to stop.  Blocks SIGTERM,
 * SIGUSR2, SIGINT, SIGHUP and SIGCHLD in the calling thread and handles them as requests
 * (dl-trainer(7), SIGNALS).
 */
enum worker_end worker_run (struct sweep *sweep, const struct worker_place *place,
                            struct slurmdl_error *err);
