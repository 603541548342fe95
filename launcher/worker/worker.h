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
    WORKER_FAULT,     /* the sweep was paused because of a fault that trials share */
    WORKER_PARKED,    /* asked to stop; there is work left */
    WORKER_PREEMPTED, /* the same, by SIGTERM: Slurm is about to kill it */
    WORKER_EXCLUDED,  /* no attempt may begin on this node */
    WORKER_SMALL,     /* trials need more memory than its job has */
    WORKER_ERROR,
};

/* Block the signals that are requests, and SIGCHLD, and take them from a descriptor; -1 with errno.
 */
int worker_watch_signals (void);

/* How a command that is not a trial's has ended. */
struct command_report {
    int status;                   /* of waitpid() */
    int stop;                     /* the signal that asked this process to stop, 0: none */
    bool out_of_time;             /* it was asked to stop because its job has no more time */
    struct failure_class verdict; /* unless its status is 0 or 'stop' is set */
};

/* Run a command in a->dir as the attempt of a trial is run: in its working
 * folder, with srun and in its container where it has ranks or an image; ask it
 * to stop when this process is asked to, or has few of its 'seconds' (0: no
 * limit) left, and give it worker.grace to do so.  Takes signals as
 * worker_run() does.  Returns -1 with 'err' if it could not be started.
 */
int command_attempt (const struct trial_attempt *a, double seconds, struct command_report *r,
                     struct slurmdl_error *err);

/* Where a worker works. */
struct worker_place {
    const char *slot;
    double seconds;                 /* until Slurm kills it, 0: no limit */
    bool fresh;                     /* its time has just begun: a new job would have no more */
    const struct worker_exit *lost; /* how the previous worker here ended; NULL: unknown */
};

/* Work on 'sweep' at 'place'.  Blocks SIGTERM, SIGUSR2, SIGINT, SIGHUP and SIGCHLD in the calling
 * thread and takes them as requests (dl-trainer(7), SIGNALS).
 */
enum worker_end worker_run (struct sweep *sweep, const struct worker_place *place,
                            struct slurmdl_error *err);
