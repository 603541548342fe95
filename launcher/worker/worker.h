/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use of workers: their jobs, their place, what ended them, what they keep. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sweep/attempt.h"
#include "launcher/sweep/sweep.h"

struct experiment;
struct trial_attempt;
struct worker;
struct worker_place;
struct executor;
struct command;
struct checkpoint_policy;

/* ---- A worker's allocation ---- */

/* Its slot and GPUs, its time and memory, and which trials fit into it. */

/* -- the place -- */

/* Fill in 'place', whose slot is written to 'slot'.  If several workers share the step, show this
 * one only its own GPUs.
 */
void place_find (struct worker_place *place, const struct experiment *e, const char *given,
                 char *slot, size_t size);

/* Seconds until Slurm ends the job, less the time needed to stop.  Returns 0 if unknown or
 * unlimited.
 */
double allocation_seconds_left (void);

/* Requeue this job or array task, excluding the nodes "n1,n2" (may be "").  Slurm ends this process
 * meanwhile.  If it does not, print why and return -1.
 */
int allocation_requeue (const char *avoid);

enum job_state {
    JOB_RUNS,    /* or the worker is in no job */
    JOB_ENDED,   /* the worker outlived its job, as when slurmstepd was killed */
    JOB_UNKNOWN, /* slurmctld does not answer */
};

/* Ask Slurm for the state of this worker's job. */
enum job_state allocation_state (void);

/* Ask Slurm for the nodes that this worker's job has now, as slurm_nodes_of_job().  Returns NULL
 * outside a job of several nodes.
 */
char *allocation_nodes (void);

/* -- time -- */

/* Whether the trial's segment to 'length' (the trial may be the next one) fits into the time left
 * or, if trainers save checkpoints, whether a worthwhile part of it does.  Always true in a fresh
 * allocation, because a requeued job would get no more time.
 */
bool time_fits (const struct worker *w, long trial, int64_t length);

/* Whether the attempt used up a fresh allocation without saving a checkpoint or getting further
 * than the attempts before it.
 */
bool attempt_in_vain (const struct worker *w, const struct trial_attempt *a);

/* -- memory -- */

/* The memory that the workers of one job share on this node. */
struct job_memory {
    int64_t bytes;   /* in all; 0: unknown */
    long place;      /* of this worker among them, from 0 */
    long places;     /* number of workers */
    bool is_job;     /* the limit is Slurm's */
    bool can_grow;   /* dl requeue can submit a larger job */
    bool leaves;     /* the worker must exit: there is no room for it, or the job is too small */
    bool too_small;  /* the job is too small */
    int64_t fitting; /* bytes per attempt already found to fit here */
};

/* Read the limits from Slurm's variables, or from DL_WORKER_PLACE, which the pool of local
 * processes sets, and the cgroup below 'root' (oom.h).
 */
void job_memory_find (const char *root, struct job_memory *m);

/* Whether this worker's share of the memory suffices for a trial.  If not, the worker may have to
 * exit.
 */
bool memory_fits (struct worker *w);

/* Bytes available to an attempt that begins now; 0: unknown. */
int64_t memory_of_attempt (const struct worker *w);

/* Bytes for the next attempt of a trial that ran out of memory with 'had' bytes and a measured peak
 * of 'peak' bytes (0: unknown).  Returns 0 if no more memory is available.
 */
int64_t memory_to_retry (const struct worker *w, int64_t had, int64_t peak);

/* Append "; tried again with 6G of memory instead of 4G" to a reason. */
void memory_add_reason (char *why, size_t size, int64_t had, int64_t more);

/* ---- Processes of this machine: the workers of an experiment, or the tasks of a flow ---- */

/* Each has GPUs and cores of its own, and gets SIGTERM when this process ends. */
struct local_process {
    char *const *words; /* NULL-ended: the program and its arguments */
    int output;         /* the pool closes it; -1: its output goes where ours goes */
    int gpus;
    int cores; /* it is bound to so many if they are free; 0: to none */
    void *of;  /* passed to ended() */
};

struct local_pool_ops {
    /* Whether to start a process again that ended with this wait status.  After 20 times the pool
     * gives up.
     */
    bool (*again) (int status);
    /* A process has ended for good.  May start others. */
    void (*ended) (void *arg, void *of, int status);
};
struct local_pool;

/* Create a pool for 'most' processes at once.  They share the memory of this machine equally. */
struct local_pool *local_pool_create (const struct local_pool_ops *ops, void *arg, long most);
void local_pool_resize (struct local_pool *p, long most);

/* Forget the processes, which continue if local_pool_end() has not ended them. */
void local_pool_destroy (struct local_pool *p);

/* Start a process.  Returns -1 with errno; EBUSY: too few GPUs are free. */
int local_pool_start (struct local_pool *p, const struct local_process *what);
bool local_pool_has_gpus (const struct local_pool *p, int gpus);

/* Look for processes that have ended, and return how many run. */
long local_pool_reap (struct local_pool *p);

/* Send SIGTERM to all, and kill those that have not ended after so many seconds. */
void local_pool_end (struct local_pool *p, double seconds);

/* Seconds that a worker or a task gets after SIGTERM in addition to worker.grace, which is for its
 * command.
 */
enum { LOCAL_END_MORE = 60 };

/* The number of GPUs of this machine. */
int local_gpus (void);

/* ---- Start the workers of an experiment, through Slurm or on this machine ---- */

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
    struct local_pool *pool;
    struct local_worker **started; /* all that were ever started */
    size_t nstarted;
    long missing; /* workers still to be started when GPUs become free */
    long wanted;  /* the last number set by `dl scale` that was applied */
};

extern const struct executor_ops executor_local, executor_slurm;

/* Prepare 'x' to start 'workers' (0: as in the experiment) as processes of this machine or as Slurm
 * tasks.  x->ops->close() releases it.
 */
void executor_open (struct executor *x, struct sweep *sweep, bool local, long workers);

/* Check that this machine has what a trial needs. */
int local_check (const struct experiment *e, struct slurmdl_error *err);

/* Number of array tasks needed for 'workers' workers. */
long executor_tasks (const struct experiment *e, long workers);

/* Add the sbatch options for an array task.  'larger', if not 0, overrides the experiment's memory,
 * in bytes.
 */
void executor_add_resources (struct command *c, const struct experiment *e, int64_t larger);

/* Write the excluded nodes as "n1,n2"; "" if there are none. */
void executor_excluded (const struct sweep *s, char *buf, size_t size);

/* Cancel the experiment's jobs: all, or, with scancel's option --state=PENDING, only those that
 * wait in the queue.  Returns -1 with 'err' if Slurm refused.
 */
int executor_cancel (const struct sweep *s, const char *option, struct slurmdl_error *err);

/* -- why no worker of an array has started -- */

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

/* ---- Classify failed attempts: whether to retry, where, and why ---- */

/* Which memory a trainer ran out of. */
enum oom {
    OOM_NONE,
    OOM_HOST,
    OOM_GPU,
};

/* What the OOM killer killed in the cgroup of an attempt. */
enum oom_kill {
    KILLED_NOTHING,
    KILLED_SOMETHING, /* possibly a process of another attempt */
    KILLED_OWN,       /* a process of this attempt */
};

struct failure_class {
    bool free;     /* does not count towards max_restarts */
    bool progress; /* the attempt got further than those before it */
    bool last;     /* do not retry: the next attempt would fail, too */
    bool exclude;  /* start no more attempts of this experiment on this node */
    enum oom oom;
    int error;                   /* ENOSPC or EDQUOT if the disk was full, else 0 */
    int status;                  /* exit status as a shell reports it */
    enum condition_reason cause; /* REASON_NONE: the program failed */
    char why[512];               /* the reason, to be shown to the user */
};

/* The rank of an attempt that failed first. */
struct first_failure {
    long rank;         /* -1: none has failed, or it is not known which */
    long long printed; /* bytes in the attempt's log when it failed */
};

/* Classify an attempt whose trainer ended without a result, with the wait status 'status';
 * 'killed': what the kernel's OOM killer did meanwhile.  Applies log_policies to the attempt's log.
 * 'first' is NULL if the attempt has no ranks.
 */
void failure_classify (const struct trial_attempt *a, int status, enum oom_kill killed,
                       const struct first_failure *first, struct failure_class *v);

/* The bad nodes, one per line, that the check before the trainer's start (--dl-check) found.  The
 * caller frees the text.  Returns NULL if there are none.
 */
char *failure_bad_nodes (const char *dir);

/* -- exit statuses -- */

enum retry {
    RETRY_COUNTED, /* counts towards max_restarts */
    RETRY_FREE,
    RETRY_NEVER,
};

/* Exit statuses, as a shell reports them, that have a meaning: dl-trainer(7), EXIT STATUS. */
struct end_row {
    int status;
    enum retry retry;
    const char *why;
    bool exclude; /* exclude the node */
};
extern const struct end_row end_table[]; /* the last row has status -1 */

/* ---- Find out why a worker died, and how far its attempt got ---- */

struct worker_exit {
    enum condition_reason cause; /* REASON_OUT_OF_MEMORY counts towards max_restarts */
    bool requeued;               /* Slurm has requeued the job */
    char why[160];               /* "": unknown */
};

/* Find out why the previous worker in this place ended.  SLURM_RESTART_COUNT reveals a requeue, and
 * DL_LAST_STATUS, set by the batch script, how the previous step ended.  If the step may have run
 * out of memory, run `sacct` once, or read the counters below 'root' (oom.h).
 */
void worker_exit_read (const char *root, struct worker_exit *l);

/* Whether 'slot' belongs to a job array. */
bool worker_exit_can_ask (const char *slot);

/* Whether Slurm no longer has the job of the worker at 'slot'.  Runs `squeue` once. */
bool worker_exit_is_over (const char *slot);

/* Ask Slurm for the state in which the job of the worker at 'slot' ended or was requeued.  Runs
 * `sacct` and, if that knows nothing, `scontrol show job`, once each.  Does not change 'l' if the
 * slot belongs to no array or Slurm does not know.
 */
void worker_exit_ask (const char *slot, struct worker_exit *l);

enum attempt_progress {
    PROGRESS_NONE,
    PROGRESS_FILES, /* it left files that differ from those it started with */
    PROGRESS_STEPS, /* it logged a step that the trial had not reached before */
};

/* How much further an attempt got than earlier attempts at the same segment.  The first attempt
 * makes no progress by definition.
 */
enum attempt_progress attempt_progress (const struct sweep *s, long trial, long attempt);

/* How many seconds an attempt ran before its worker 'nonce' died: from its first file to the last
 * sign of life of the attempt or the worker.  Compares the mtimes of files, which come from one
 * clock.  Returns 0 if the attempt never started.
 */
double attempt_seconds (const struct sweep *s, long trial, long attempt, const char *nonce);

/* ---- Notify the user that an experiment ended, a trial failed or a log line matched ---- */

/* Each notification is sent once, by the first process to create its marker in the experiment's
 * folder notified/.  If a notification cannot be sent, dl complains on standard error and the
 * experiment continues.
 */

/* The experiment has ended in its present state, or was stopped or killed. */
void notify_end (const struct sweep *s);

/* The experiment has been paused because all attempts fail in the same way. */
void notify_fault (const struct sweep *s);

/* An attempt has ended: report the first trial that was given up, and the first line that matches
 * each pattern of notify.pattern.
 */
void notify_attempt (const struct sweep *s, long trial, long attempt);

/* The search of a running attempt's log.  Initialise it with zeros. */
struct notify_watch {
    pid_t child; /* the process that searches the log; 0: none */
    double begun, next;
};

/* Search the log every few seconds in a child process.  Call this often.  At the end, call
 * notify_unwatch() until it returns false, which happens soon.
 */
void notify_watch (const struct sweep *s, long trial, long attempt, struct notify_watch *w);
bool notify_unwatch (struct notify_watch *w);

/* Check notify.webhook.  Returns 0 if it is unset or names a usable URL, else -1 with 'err'. */
int webhook_check (const struct experiment *e, struct slurmdl_error *err);

/* ---- Decide which checkpoints of an experiment to keep, and remove the others ---- */

/* -- which checkpoints to keep -- */

struct gc_checkpoint {
    long trial;
    long attempt;
    int64_t step;
    double metric; /* logged at this step; not finite: there was no validation */
    bool accepted; /* the attempt's result is the trial's last accepted one */
    bool bad;      /* it does not verify, and is ignored */
    bool kept;     /* set by gc_mark() */
};

/* Set 'kept' of each checkpoint: the union of the 'experiment_best' best of all, the 'trial_best'
 * best and the 'trial_latest' latest of each trial.  Only finite metrics are ranked; of equal ones
 * the older (the lower step, then the lower trial) wins.  The latest have the highest steps.  If
 * several attempts saved the same step, only the one that a restore would take counts: the accepted
 * attempt's, else the highest attempt's.
 */
void gc_mark (const struct checkpoint_policy *policy, bool smaller_is_better,
              struct gc_checkpoint *list, size_t n);

/* -- files that trainers saved themselves (checkpoint_policy.files) -- */

/* A file below an attempt's folder, or below 'work' in it. */
struct trainer_file {
    char *path;
    const char *below; /* the path relative to that folder; points into 'path' */
    char *kind;        /* 'below' with # for each number: epoch_#.pt */
    long trial;
    long attempt;
    int64_t bytes;
    bool kept; /* set by trainer_files_mark() */
};

struct trainer_files {
    struct trainer_file *files; /* sorted by kind, trial and attempt */
    size_t n;
};

/* List the non-empty files of finished attempts that match one of 'patterns' (code.h).
 * Call trainer_files_free() in any case.  Returns -1 with errno on failure.
 */
int trainer_files_list (const struct sweep *s, char *const *patterns, struct trainer_files *list);

/* The same, and mark the files to keep.
 *
 * All files of one kind in an attempt form one checkpoint.  A trial that may continue keeps those
 * of its two newest attempts that have files and logged anything, and everything newer: these are
 * what trainer.h would resume from, and what it would fall back to if the newest were broken.
 * Every trial also keeps what the policy selects by the metric of the attempt's result.  If a trial
 * has results, attempts without one are ignored.  If the policy keeps best checkpoints, it also
 * keeps those of the best trial (best.h).
 */
int trainer_files_mark (const struct sweep *s, char *const *patterns, struct trainer_files *list);
void trainer_files_free (struct trainer_files *list);

/* -- removal -- */

enum gc_outcome {
    GC_KEPT,
    GC_DELETED,  /* in a dry run: would be deleted */
    GC_LEFTOVER, /* deleted; an interrupted save left it */
    GC_DAMAGED,  /* kept although it does not verify, because no other of its trial does */
};

struct gc_file {
    char *path;
    int64_t bytes;
    enum gc_outcome outcome;
};

struct gc_report {
    struct gc_file *files;
    size_t n;
};

/* Remove the checkpoints (ckpt/ of all attempts of all trials) that the experiment's policy does
 * not keep, oldest attempts and steps first.  With 'dry', remove nothing.  The caller must have
 * just read 'sweep', and no worker may be running.
 *
 * Checkpoints that the policy keeps are read and verified; if one is damaged, the next one is kept
 * instead.  Until the experiment has ended, an open or paused trial also keeps what its next
 * attempt would restore, or a trial that starts from it.  If the metrics of a trial cannot be read,
 * or none of its checkpoints verifies, nothing of that trial is removed.  The policy 0, 0, 0
 * removes everything, but only once the experiment has ended.  If best ones are kept, so is the
 * best trial's (best.h).
 *
 * Files that checkpoint_policy.files names are reported and removed as well.
 *
 * Call gc_report_free() in any case.  Returns -1 at the first file that cannot be removed; it and
 * all that follow are reported as kept.
 */
int gc_run (const struct sweep *sweep, bool dry, struct gc_report *report,
            struct slurmdl_error *err);
void gc_report_free (struct gc_report *report);

/* Remove hidden files that a killed writer left in the folder of an attempt that was given up.  If
 * its worker only hangs and is still writing one, it has lost the attempt anyway.
 */
void leftovers_clean_attempt (const struct sweep *s, long trial, long attempt);

/* ---- A worker: claims segments of a sweep and trains them until none is left ---- */

/* How a worker ended; also its exit status (launcher/sys/messages.h). */
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
    bool too_few_nodes;           /* too few nodes of the allocation are left to try again */
    bool idle;                    /* asked to stop because its GPUs were idle */
    struct failure_class verdict; /* of a failure; if it was stopped, only why and cause */
};

/* Create a worker that runs the attempts at one command, and remembers which nodes of its
 * allocation are bad or do not answer.
 */
struct worker *command_worker_create (void);
void command_worker_destroy (struct worker *w);

/* Those nodes, "n1,n2", which the caller frees; "": none. */
char *command_bad_nodes (const struct worker *w);

/* Run a command in a->dir like the attempt of a trial: in its working folder, in a container if it
 * has an image, and, if it has ranks, through srun on the good nodes of the allocation, watched by
 * the worker, which ends the step if a rank dies or hangs or a node is lost.  When this process is
 * asked to stop, or few of its 'seconds' (0: no limit) are left, ask the command to stop and allow
 * it worker.grace seconds.  Handles signals as worker_run() does.  Returns -1 with 'err' if the
 * command could not be started.
 */
int command_attempt (struct worker *w, const struct trial_attempt *a, double seconds,
                     struct command_report *r, struct slurmdl_error *err);

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
