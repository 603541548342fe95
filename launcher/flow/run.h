/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a flow: its folder, its tasks, the cache and the jobs. */
#pragma once

#include <limits.h>

#include "launcher/code/code.h"
#include "launcher/flow/file.h"
#include "launcher/flow/flow.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/conditions.h"
#include "launcher/sweep/event.h"
#include "launcher/sweep/tries.h"
#include "launcher/sys/digest.h"
#include "launcher/worker/worker.h"
#include "runtime/base/error.h"

struct command_line;

/* ---- its folder ---- */

/* NAME-0001/
 *   flow.json        what is run: parameters, digests of flow.conf and code
 *   flow.conf        as submitted
 *   job.sh           of the jobs
 *   code.tar.zst, code/
 *   log/             a decision log (launcher/sweep/log.h): what was started, tried and left
 *   steps/STEP/I/a.K/     the folder of attempt K at task I (in 'work' what its
 *                         command wrote into its working folder)
 */
struct flow_history;
struct flow_run {
    char dir[PATH_MAX]; /* canonical */
    struct flow *flow;
    json_t *about;         /* flow.json */
    char pin[DIGEST_SIZE]; /* digest of it */
    struct flow_history *history;
};

/* Create the folder of a new run below 'root', and fill in 'about'; flow_commit() then writes
 * flow.json, which makes the folder a run.  Both return -1 with 'err'.
 */
int flow_create (struct flow_run *r, const char *root, struct slurmdl_error *err);
int flow_commit (struct flow_run *r, struct slurmdl_error *err);

/* Open the run that the user means: a folder, a name below --dir or, without a number, the newest
 * run of that name; NULL means the newest of all.  With 'own', reject a run that belongs to another
 * user or that others may write to, because dl is about to execute what it says.  On failure
 * complains and returns an exit status, else 0; call flow_close() in either case.
 */
int flow_open (struct flow_run *r, const struct command_line *line, const char *name, bool own);
void flow_close (struct flow_run *r);

/* The folder of the flow file below that of the frozen code: "", or "/sub". */
const char *flow_code_below (const struct flow_run *r);

/* Call 'f' for each run below 'root', by name. */
int flow_each (const char *root, int (*f) (const char *dir, void *arg), void *arg);

/* Write the path "DIR/steps/STEP", "DIR/steps/STEP/TASK" (unless 'task' is negative), or that of a
 * file there, with the suffix ".NUMBER" unless 'number' is 0.
 */
void flow_path (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s, long task,
                const char *file, long number);

/* Write the path of an attempt's folder, and create it with its parents; -1 with 'err'. */
int flow_make_folder (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s,
                      long task, long attempt, struct slurmdl_error *err);

/* ---- its log: what was started, what was tried, and what it left ---- */

/* Read and replay new entries; -1 with 'err'.  The functions below answer as of the last call. */
int flow_sync (const struct flow_run *r, struct slurmdl_error *err);

/* Append an event with the present time.  PUBLISH_LATE: another process was faster, so the log was
 * synced and the caller decides anew.
 */
enum published flow_publish (const struct flow_run *r, struct event e, struct slurmdl_error *err);

/* Append an event that no other one makes obsolete, retrying until it is in the log; -1 with 'err'.
 */
int flow_insist (const struct flow_run *r, const struct event *e, struct slurmdl_error *err);

/* Open the log of a run whose flow file was read; flow_sync() then replays it.  NULL with 'err'. */
struct flow_history *flow_history_open (struct flow_run *r, struct slurmdl_error *err);
void flow_history_close (struct flow_history *h);

/* A submission of a step.  dl announces it before it calls sbatch, so that a submitter that dies in
 * between leaves a trace.
 */
struct flow_start {
    char *mode;         /* "step", "submit", "next" or "local" */
    char *host;         /* the process that announced it, ... */
    int64_t pid, began; /* ... as process_id.h identifies it */
    char *jobs;         /* the jobs that an exit handler waits for: "12 13" */
    long job;           /* 0: not known */
};

/* The name under which the log keeps the job that starts the next run of a recurring flow; no step
 * can have this name.
 */
#define FLOW_NEXT "next+"

/* Whether a process still runs; 'began' 0: not known. */
enum { FLOW_HOST_SIZE = 65 };
enum flow_process {
    PROCESS_ENDED, /* or none was recorded */
    PROCESS_RUNS,  /* or dl cannot tell */
    PROCESS_ELSEWHERE,
};
enum flow_process flow_process (const char *host, int64_t pid, int64_t began);

/* The number of a step's newest start (0: none); its start N (NULL: none); the job of its newest
 * start that has one (0: none).
 */
long flow_starts (const struct flow_run *r, const struct flow_step *s);
const struct flow_start *flow_start_of (const struct flow_run *r, const struct flow_step *s,
                                        long n);
long flow_job (const struct flow_run *r, const struct flow_step *s);

/* How an attempt ended. */
enum attempt_outcome {
    ATTEMPT_ERROR = -1, /* it could not be recorded */
    ATTEMPT_OPEN,       /* it still runs, or died before it could record its end */
    ATTEMPT_DONE,       /* it has a result */
    ATTEMPT_FAILED,     /* the failure counts towards retries */
    ATTEMPT_FREE,       /* it failed, but does not count: the step was not to blame */
    ATTEMPT_LAST,       /* it failed, and another attempt would fail, too */
    ATTEMPT_TOLD,       /* a signal asked it to end */
};
struct flow_attempt {
    long start;
    char *host, *job;
    int64_t pid;
    enum attempt_outcome outcome;
    char *why; /* the reason of a failure, or NULL */
};

/* A task: its attempts and its result, an object with the members status, key, outputs, values,
 * begin, end, flow and why.
 */
struct flow_task {
    struct flow_attempt *attempts; /* K is attempts[K - 1] */
    size_t n;
    json_t *done;    /* NULL: none */
    long done_start; /* the start that it belongs to */
};
const struct flow_task *flow_task (const struct flow_run *r, const struct flow_step *s, long task);

/* The result of a task (NULL: none).  An exit handler has one for each start; only the newest
 * counts. */
const json_t *flow_done (const struct flow_run *r, const struct flow_step *s, long task);

/* Count the attempts of one start, and decide whether to give up. */
bool flow_gives_up (const struct flow_step *s, const struct flow_task *t, long start,
                    struct tries *n);

/* The conditions of a step; dl-show(1) explains them. */
struct conditions *flow_conditions (const struct flow_run *r, const struct flow_step *s);

/* Whether `dl flow stop` stopped the run; record a stop, or a resume. */
bool flow_is_stopped (const struct flow_run *r);
int flow_mark (const struct flow_run *r, bool stop, struct slurmdl_error *err);

/* ---- how far its tasks are ---- */

enum flow_task_state {
    TASK_WAITING,
    TASK_RUNNING,
    TASK_FAILED,
    TASK_SKIPPED,
    TASK_CACHED,
    TASK_OK,
};
extern const char *const task_states[];
enum flow_task_state flow_task_state (const struct flow_run *r, const struct flow_step *s,
                                      long task);

/* Record that an exit handler was skipped because nothing ran; -1 with 'err'. */
int flow_put_skipped (const struct flow_run *r, const struct flow_step *s, long task,
                      struct slurmdl_error *err);

/* The number of a step's tasks; -1 while its list is unknown. */
long flow_width (const struct flow_run *r, const struct flow_step *s);

/* The list element of a task, which the caller releases; NULL if the step has no list. */
json_t *flow_item (const struct flow_run *r, const struct flow_step *s, long task);

/* Count the tasks of a step in each state, and return its width. */
long flow_count (const struct flow_run *r, const struct flow_step *s, long counts[TASK_OK + 1]);

/* Whether all tasks have a result, by the counts above. */
bool flow_all_done (long width, const long counts[TASK_OK + 1]);

/* Whether all tasks of a step have a result; '*ran' (if not NULL): whether at least one of them was
 * not skipped.
 */
bool flow_is_done (const struct flow_run *r, const struct flow_step *s, bool *ran);

/* ---- a task ---- */

/* A task of a step, and the circumstances in which its texts are expanded and its command runs. */
struct flow_scope {
    const struct flow_run *r;
    const struct flow_step *s;
    struct worker *worker; /* runs the attempts */
    long task;
    long start;          /* numbers of the start ... */
    long attempt;        /* ... and of the attempt */
    const char *folder;  /* the attempt's */
    double end;          /* when its job ends, by the monotonic clock; 0: not known */
    const char *outcome; /* for exit handlers: "completed" or "failed" ... */
    const char *failed;  /* ... and the steps that failed: "a b" */
};

/* Expand the {names} in 'text'; the elements of a list are separated by spaces.  The caller frees
 * the result.  NULL with 'err'.
 */
char *flow_text (const struct flow_scope *c, const char *text, struct slurmdl_error *err);

/* Expand the entrypoint into the words of a command and the variables that it needs, two NULL-ended
 * lists that the caller frees with strings_free().  A shell command gets its values as variables,
 * so that no value is ever parsed by the shell.  Returns -1 with 'err'.
 */
int flow_command (const struct flow_scope *c, char ***argv, char ***variables,
                  struct slurmdl_error *err);

/* Whether the step's condition holds; -1 with 'err'. */
int flow_condition (const struct flow_scope *c, bool *holds, struct slurmdl_error *err);

/* Write the absolute path of an output; -1 with 'err'. */
int flow_output_path (const struct flow_scope *c, const struct flow_output *o, char path[PATH_MAX],
                      struct slurmdl_error *err);

/* Append the environment of the command, NAME=VALUE, to a NULL-ended list; -1 with 'err'. */
int flow_variables (const struct flow_scope *c, char ***list, struct slurmdl_error *err);

/* Record the result of a task that need not run, because it is skipped or its result is cached.
 * Call it only when everything that the task waits for has ended.
 */
enum flow_need {
    NEED_ERROR = -1, /* 'err' says why dl cannot tell */
    NEED_RUN,
    NEED_NOTHING, /* the task has a result now */
};
enum flow_need flow_settle (const struct flow_scope *c, struct slurmdl_error *err);

/* Do the same for all tasks of a step; returns whether nothing is left to run. */
bool flow_settle_step (const struct flow_run *r, const struct flow_step *s);

/* Run attempts at a task until it succeeds, fails for good, or a start later than 'start' takes
 * over. On failure complains; returns an exit status.
 */
int flow_task_run (const struct flow_run *r, const struct flow_step *s, long task, long start);

/* Write "train", or "train 3" for a step with a list. */
void flow_task_name (char *buf, size_t size, const struct flow_step *s, long task);

/* ---- its command ---- */

/* How the command of an attempt ended. */
struct attempt_end {
    struct command_report report;
    json_t *outputs; /* after success, for the caller to release, ... */
    json_t *values;  /* ... else NULL */
};

/* Run the command as the trainer of a trial runs.  Returns 0, or -1 with the reason in 'err' if it
 * failed or did not leave all of its outputs and values.
 */
int attempt_run (const struct flow_scope *c, struct attempt_end *end, struct slurmdl_error *err);

/* Write the folder in which commands run: that of the flow file, or its frozen copy, which is
 * created if absent.
 */
int attempt_directory (const struct flow_run *r, char path[PATH_MAX], struct slurmdl_error *err);

/* Read the values that the command reported into an object { NAME: value }, which the caller
 * releases. NULL with the reason in 'err' if a declared value is missing.
 */
json_t *flow_take_values (const struct flow_scope *c, struct slurmdl_error *err);

/* A step that is a sweep: append the words of the `dl run` that begins it, or of the `dl resume`
 * that continues the experiment of an earlier attempt.
 */
int flow_sweep_command (const struct flow_scope *c, char ***argv, struct slurmdl_error *err);

/* Whether the experiment of an earlier attempt has completed. */
bool flow_sweep_is_over (const struct flow_scope *c);

/* Take the outputs and values of the best trial; -1 with 'err'. */
int flow_sweep_take (const struct flow_scope *c, struct attempt_end *end,
                     struct slurmdl_error *err);

/* Kill all sweeps of a run, whose workers are jobs of their own. */
void flow_kill_sweeps (const struct flow_run *r);

/* ---- the cache ---- */

/* The files .dl-flow-cache-UID/KEY.N beside the flows hold the results of this user's tasks. */

/* Compute the digest of a task's command, code, inputs and parameters, or "" if the task must not
 * be cached.  Returns -1 with 'err' if an input is missing.
 */
int flow_key (const struct flow_scope *c, char key[DIGEST_SIZE], struct slurmdl_error *err);

/* Find the newest result with this key whose files have not changed since, for the caller to
 * release; NULL if there is none.
 */
json_t *flow_cache_find (const struct flow_run *r, const char *key);
void flow_cache_put (const struct flow_run *r, const char *key, const json_t *done);

/* Describe a regular file as { "path": ..., "sha256": ..., "bytes": ..., "mtime": ... }; NULL with
 * 'err'.
 */
json_t *flow_file (const char *path, struct slurmdl_error *err);

/* Map each step to the digest of its part of the frozen code. */
json_t *flow_code_digests (const struct flow *f, const struct code_files *files,
                           const struct code_archive *a, struct slurmdl_error *err);

/* Print which files changed since the previous run, because steps without 'code' depend on all of
 * them. Prints nothing if no file changed, or if the previous run is another user's or has no
 * frozen code.
 */
void flow_say_code_change (const struct flow_run *r, const struct code_files *files,
                           const struct code_archive *now);

/* ---- jobs, and processes of this machine ---- */

/* The jobs of a flow that Slurm lists; slurm_jobs_free() releases them. */
struct flow_queue {
    struct slurm_jobs jobs;
    long highest; /* of this user's other jobs, too */
};
bool flow_job_is_of (const struct slurm_job *j, const struct flow_run *r,
                     const struct flow_step *s);
int flow_queue_read (const struct flow_run *r, struct flow_queue *q, struct slurmdl_error *err);

/* Cancel them; -1 with 'err'. */
int flow_cancel (const struct flow_queue *q, struct slurmdl_error *err);

/* Submit job.sh as start 'n' of a step.  If another process announced this start first, wait for
 * its job instead, so that each start has at most one.  Returns the job, or -1 with 'err'.
 */
struct flow_request {
    const char *mode; /* "step", "submit" or "next" */
    const char *dependency, *array, *begin;
    const char *jobs; /* the jobs that it waits for: "12 13", or NULL */
};
long flow_submit_once (const struct flow_run *r, const struct flow_step *s, long n,
                       const struct flow_request *q, struct slurmdl_error *err);

/* The event with which this process announces start N; 'host' receives the name of this host. */
struct event flow_start_event (const struct flow_step *s, long n, const char *mode,
                               char host[FLOW_HOST_SIZE]);

/* The text of job.sh, which the caller frees. */
char *flow_job_script (void);

/* Submit a job or an array for each step that lacks one, and record the results of tasks that need
 * not run.  With 'again', first ask Slurm which jobs it already has.  Returns the number of jobs
 * submitted, or -1 with 'err'.
 */
long flow_submit (const struct flow_run *r, bool again, struct slurmdl_error *err);

/* When the job of an exit handler begins: submit it '*again' if other steps have got new jobs since
 * it was submitted, so that it runs after them, too.  Returns -1 with 'err'.
 */
int flow_exit_again (const struct flow_run *r, const struct flow_step *s, long start, bool *again,
                     struct slurmdl_error *err);

/* Run the remaining tasks, 'workers' at a time, and print a line when one ends.  Returns an exit
 * status.
 */
int flow_local (const struct flow_run *r, long workers);

/* The process of this host that runs the flow with --local; 0: none. */
pid_t flow_local_process (const struct flow_run *r);

/* ---- commands ---- */

/* Subcommands of cmd_flow(); each returns an exit status. */
int flow_ls (const struct command_line *line);
int flow_show (const struct command_line *line);
int flow_graph (const struct command_line *line);
