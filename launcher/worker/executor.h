/* SPDX-License-Identifier: Apache-2.0 */
/* Start the workers of an experiment, through Slurm or on this machine. */
#pragma once

#include <limits.h>

#include "launcher/sweep/sweep.h"

struct executor;
struct executor_ops {
    const char *name;
    /* Start x->workers more workers.  Getting fewer is not a failure: sets x->granted to their
     * number and x->note to the reason.
     */
    int (*start) (struct executor *x, struct slurmdl_error *err);
    /* Returns false once no worker is left.  Fills x->note. */
    bool (*tick) (struct executor *x);
    /* The user quits dl: end whatever must not continue without it. */
    void (*leave) (struct executor *x);
    void (*close) (struct executor *x);
};
struct executor {
    const struct executor_ops *ops;
    struct sweep *sweep;
    char dl[PATH_MAX]; /* this program */
    long workers;
    long granted;
    char note[PATH_MAX + 512]; /* for the user, e.g. why nothing runs yet */
    bool excluded;             /* workers left because their node is excluded */
    bool refused;              /* sbatch submitted no job */
    bool never;                /* and never will: the experiment requests what does not exist */
    /* slurm */
    char job[1024];  /* "12,13" */
    size_t nsubmits; /* number of the sweep's arrays listed in 'job' */
    double asked;    /* time of the last squeue */
    /* local */
    struct local_worker *pool;
    long npool;
    long wanted; /* the last number set by `dl scale` that was applied */
    struct devices *devices;
};

extern const struct executor_ops executor_local, executor_slurm;

/* Prepare 'x' to start 'workers' (0: as in the experiment) as processes of this machine or as Slurm
 * tasks.  x->ops->close() releases it.
 */
void executor_open (struct executor *x, struct sweep *sweep, bool local, long workers);

/* How often a local worker is restarted after it has been killed. */
enum { LOCAL_TRIES_MAX = 20 };

/* The GPUs of this machine, to be divided among local workers.  Tests set DL_DEVICE_FOLDER. */
struct devices *local_devices (void);

/* Check that this machine has what a trial needs. */
int local_check (const struct experiment *e, struct slurmdl_error *err);

/* Number of array tasks needed for 'workers' workers. */
long slurm_tasks (const struct experiment *e, long workers);

/* Add the sbatch options for an array task.  'larger', if not 0, overrides the experiment's memory,
 * in bytes.
 */
struct command;
void slurm_add_resources (struct command *c, const struct experiment *e, int64_t larger);

/* Write the excluded nodes as "n1,n2"; "" if there are none. */
void slurm_excluded (const struct sweep *s, char *buf, size_t size);

/* Cancel the experiment's jobs: all, or, with scancel's option --state=PENDING, only those that
 * wait in the queue.  Returns -1 with 'err' if Slurm refused.
 */
int executor_cancel (const struct sweep *s, const char *option, struct slurmdl_error *err);

/* ---- why no worker of an array has started ---- */

/* The type of the file system of 'dir' ("ext4") if it is local to this machine, else NULL. */
const char *unseen_file_system (const char *dir);

/* Write the last line that the workers of the arrays 'jobs' ("12,13") printed, and where: "no such
 * module; see /exp/workers/12_1.log"; "" if they printed nothing.
 */
void last_words_text (const struct sweep *s, const char *jobs, char *buf, size_t size);

/* The same for arrays that Slurm no longer lists, or why they left no output; 'state' is the state
 * that Slurm reported for one of them, or "".
 */
void unseen_text (const struct sweep *s, const char *jobs, const char *state, char *buf,
                  size_t size);
