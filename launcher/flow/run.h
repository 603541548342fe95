/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a flow: its folder, its tasks, the cache and the jobs. */
#pragma once

#include <limits.h>

#include "launcher/code/archive.h"
#include "launcher/flow/file.h"
#include "launcher/flow/flow.h"
#include "launcher/sweep/conditions.h"
#include "launcher/sweep/event.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/digest.h"
#include "launcher/worker/worker.h"
#include "runtime/base/error.h"

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

/* Make the folder of a new run below 'root'.  'about' is completed with the
 * parameters; flow.json comes last.  Returns -1 with 'err'.
 */
int flow_create (struct flow_run *r, const char *root, struct slurmdl_error *err);
int flow_commit (struct flow_run *r, struct slurmdl_error *err);

/* Open the run that the user means: a folder, its name below --dir, or without
 * a number the newest of that name; NULL: the newest of all.  'own': it must
 * be this user's alone, for what it says is run.  flow_close() in any case.
 * Returns an exit status, after a line.
 */
int flow_open (struct flow_run *r, const struct command_line *line, const char *name, bool own);
void flow_close (struct flow_run *r);

/* The folder of the flow file below that of the frozen code: "", or "/sub". */
const char *flow_code_below (const struct flow_run *r);

/* Call 'f' for each run below 'root', by name. */
int flow_each (const char *root, void (*f) (const char *dir, void *arg), void *arg);

/* "DIR/steps/STEP", "DIR/steps/STEP/I", or a file there with a number (0: none). */
void flow_path (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s, long task,
                const char *file, long number);

/* The same of the attempt's folder, which is made with those above it; -1 with 'err'. */
int flow_make_folder (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s,
                      long task, long attempt, struct slurmdl_error *err);

/* ---- its log: what was started, what was tried, and what it left ---- */

/* Replay what is new in it; -1 with 'err'.  Everything below is as of the last call. */
int flow_sync (const struct flow_run *r, struct slurmdl_error *err);

/* Append an event, with the present time.  PUBLISH_LATE: others were faster, and the log was read.
 */
enum published flow_publish (const struct flow_run *r, struct event e, struct slurmdl_error *err);

/* The same until it is in the log, whatever others do; -1 with 'err'. */
int flow_insist (const struct flow_run *r, const struct event *e, struct slurmdl_error *err);

/* Begin and end the replay of a run that was opened; NULL with 'err'. */
struct flow_history *flow_history_open (struct flow_run *r, struct slurmdl_error *err);
void flow_history_close (struct flow_history *h);

/* A submission of a step, announced before it is made. */
struct flow_start {
    char *mode;         /* "step", "submit", "next" or "local" */
    char *host;         /* of the process that announced it, ... */
    int64_t pid, began; /* ... which process_id.h tells from others */
    char *jobs;         /* of an exit handler: "12 13", for which it waits */
    long job;           /* 0: not known */
};

/* The step that is the job which begins the next run; no flow file can have one of this name. */
#define FLOW_NEXT "next+"

/* The number of the newest start of a step, 0: none; start N, NULL: there is none; the job of the
 * newest start that has one, 0: none.
 */
long flow_starts (const struct flow_run *r, const struct flow_step *s);
const struct flow_start *flow_start_of (const struct flow_run *r, const struct flow_step *s,
                                        long n);
long flow_job (const struct flow_run *r, const struct flow_step *s);

/* What has become of an attempt. */
enum attempt_outcome {
    ATTEMPT_ERROR = -1, /* it could not be recorded */
    ATTEMPT_OPEN,       /* it runs, or has ended without a word */
    ATTEMPT_DONE,       /* it has a result */
    ATTEMPT_FAILED,
    ATTEMPT_FREE, /* by no fault of the step's */
    ATTEMPT_LAST, /* another try would fail, too */
    ATTEMPT_TOLD, /* to end */
};
struct flow_attempt {
    long start;
    char *host, *job;
    int64_t pid;
    enum attempt_outcome outcome;
    char *why; /* it failed, or NULL */
};

/* What is known of a task: its attempts, and its result, which has
 * { status, attempt, key, outputs, values, begin, end, flow, why }.
 */
struct flow_task {
    struct flow_attempt *attempts; /* K is attempts[K - 1] */
    size_t n;
    json_t *done;    /* NULL: none */
    long done_start; /* of it */
};
const struct flow_task *flow_task (const struct flow_run *r, const struct flow_step *s, long task);

/* Its result, of an exit handler that of the newest start; NULL: none. */
const json_t *flow_done (const struct flow_run *r, const struct flow_step *s, long task);

/* Attempts under one start; whether they were enough. */
struct flow_tries {
    long failed;
    long lost; /* ended without a word, by the loss of a node say, or by no fault of the step's */
    bool is_last;
};
enum { FLOW_LOST_MAX = 20 };
struct flow_tries flow_tries (const struct flow_task *t, long start);
bool flow_gives_up (const struct flow_step *s, const struct flow_tries *n);

/* The conditions of a step, as dl-show(1) explains them. */
struct conditions *flow_conditions (const struct flow_run *r, const struct flow_step *s);

/* Whether it is to end; say so, or that it goes on. */
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

/* The result of a task of on_exit, where nothing was run; -1 with 'err'. */
int flow_put_skipped (const struct flow_run *r, const struct flow_step *s, long task,
                      struct slurmdl_error *err);

/* Tasks of a step, -1: not known yet. */
long flow_width (const struct flow_run *r, const struct flow_step *s);

/* The element of its list that a task has; NULL: it has no list. */
json_t *flow_item (const struct flow_run *r, const struct flow_step *s, long task);

/* How many tasks of a step are in each state; returns its width. */
long flow_count (const struct flow_run *r, const struct flow_step *s, long counts[TASK_OK + 1]);

/* Whether by these all tasks of a step have a result. */
bool flow_all_done (long width, const long counts[TASK_OK + 1]);

/* Whether all tasks of a step have a result, one at least of them no skip in
 * '*ran' (if given).
 */
bool flow_is_done (const struct flow_run *r, const struct flow_step *s, bool *ran);

/* ---- a task ---- */

/* One task of a step. */
struct flow_scope {
    const struct flow_run *r;
    const struct flow_step *s;
    long task;
    long start;          /* its number */
    long attempt;        /* its number */
    const char *folder;  /* of its attempt */
    double end;          /* of its job, by the monotonic clock; 0: not known */
    const char *outcome; /* of on_exit: "completed" or "failed" ... */
    const char *failed;  /* ... and the steps that failed, "a b" */
};

/* 'text' with the values in it, lists with blanks between; the caller frees
 * it.  NULL with 'err'.
 */
char *flow_text (const struct flow_scope *c, const char *text, struct slurmdl_error *err);

/* The command and the variables that it needs, NULL-ended lists that the caller
 * frees (strings_free()).  No value is ever text of a shell: there it is the
 * value of a variable.  Returns -1 with 'err'.
 */
int flow_command (const struct flow_scope *c, char ***argv, char ***variables,
                  struct slurmdl_error *err);

/* Whether the step's condition holds; -1 with 'err'. */
int flow_condition (const struct flow_scope *c, bool *holds, struct slurmdl_error *err);

/* The file of an output, absolute; -1 with 'err'. */
int flow_output_path (const struct flow_scope *c, const struct flow_output *o, char path[PATH_MAX],
                      struct slurmdl_error *err);

/* Add NAME=VALUE of all that the command of an attempt gets to a NULL-ended
 * list.  Returns -1 with 'err'.
 */
int flow_variables (const struct flow_scope *c, char ***list, struct slurmdl_error *err);

/* Put the result of a task that need not be run: one that is to be skipped, or
 * was seen before.  All that it waits for must have ended.
 */
enum flow_need {
    NEED_ERROR = -1, /* 'err' says why it cannot be told */
    NEED_RUN,
    NEED_NOTHING, /* there is a result now */
};
enum flow_need flow_settle (const struct flow_scope *c, struct slurmdl_error *err);

/* The same of all tasks of a step: whether there is nothing left to run. */
bool flow_settle_step (const struct flow_run *r, const struct flow_step *s);

/* Try a task until it succeeds or has failed for good; 'start' is the number
 * under which it was started: a later one takes its place.  Returns
 * an exit status, after a line.
 */
int flow_task_run (const struct flow_run *r, const struct flow_step *s, long task, long start);

/* "train", or "train 3" of one with a list. */
void flow_task_name (char *buf, size_t size, const struct flow_step *s, long task);

/* ---- its command ---- */

/* How the command of an attempt has ended. */
struct attempt_end {
    struct command_report report;
    json_t *outputs; /* of one that succeeded, ... */
    json_t *values;  /* ... else NULL; the caller's */
};

/* Run it in the scope's folder, as the trainer of a trial is run.  Returns 0, or -1
 * with 'err', the reason for people, if it failed or has not left what it is
 * to leave.
 */
int attempt_run (const struct flow_scope *c, struct attempt_end *end, struct slurmdl_error *err);

/* The folder in which commands run: that of the flow file, or its frozen copy,
 * which is made if it is absent.
 */
int attempt_directory (const struct flow_run *r, char path[PATH_MAX], struct slurmdl_error *err);

/* { NAME: value } that the command has reported, for the caller to release; NULL
 * with 'err', the reason for people, if one that is declared is not there.
 */
json_t *flow_take_values (const struct flow_scope *c, struct slurmdl_error *err);

/* Add the words that run it, or resume that of an attempt before. */
int flow_sweep_command (const struct flow_scope *c, char ***argv, struct slurmdl_error *err);

/* Whether the experiment of an attempt before has completed. */
bool flow_sweep_is_over (const struct flow_scope *c);

/* Set the outputs and values of the best trial; -1 with 'err'. */
int flow_sweep_take (const struct flow_scope *c, struct attempt_end *end,
                     struct slurmdl_error *err);

/* End all sweeps of a run: their workers are jobs of their own. */
void flow_kill_sweeps (const struct flow_run *r);

/* ---- the cache ---- */

/* .dl-flow-cache-UID/KEY.N beside the flows: results of this user's tasks. */

/* The digest of a task's command, code, inputs and parameters; "" if it is not
 * to be cached.  Returns -1 with 'err' if an input is missing.
 */
int flow_key (const struct flow_scope *c, char key[DIGEST_SIZE], struct slurmdl_error *err);

/* The newest result of a key whose files are still what they were; NULL: there
 * is none.  The caller releases it.
 */
json_t *flow_cache_find (const struct flow_run *r, const char *key);
void flow_cache_put (const struct flow_run *r, const char *key, const json_t *done);

/* { "path": ..., "sha256": ..., "bytes": ..., "mtime": ... } of a regular file;
 * NULL with 'err'.
 */
json_t *flow_file (const char *path, struct slurmdl_error *err);

/* { "STEP": DIGEST }: of each step's part of the frozen code. */
json_t *flow_code_digests (const struct flow *f, const struct code_files *files,
                           const struct code_archive *a, struct slurmdl_error *err);

/* Say which files have changed, on all of which steps without 'code' depend.
 * Nothing is said if none have, or if there was no run before of this user's
 * that froze its code.
 */
void flow_say_code_change (const struct flow_run *r, const struct code_files *files,
                           const struct code_archive *now);

/* ---- jobs, and processes of this machine ---- */

/* The jobs that Slurm has of a flow. */
struct flow_job {
    long id;
    bool pending;
    char token[160];
};
struct flow_queue {
    struct flow_job *list;
    size_t n;
    long highest;
};
int flow_queue_read (const struct flow_run *r, struct flow_queue *q, struct slurmdl_error *err);

/* scancel them; -1 with 'err'. */
int flow_cancel (const struct flow_queue *q, struct slurmdl_error *err);

/* Submit job.sh with 'mode' and these arguments, at most once under the number 'n' of starts of
 * 's'.  Returns the job, -1 with 'err'.
 */
struct flow_request {
    const char *mode; /* "step", "submit" or "next" */
    const char *dependency, *array, *begin;
    const char *jobs; /* for which it waits: "12 13", or NULL */
};
long flow_submit_once (const struct flow_run *r, const struct flow_step *s, long n,
                       const struct flow_request *q, struct slurmdl_error *err);

/* The event "start" N of a step, by this process; 'host' is room for its name. */
enum { FLOW_HOST_SIZE = 65 };
struct event flow_start_event (const struct flow_step *s, long n, const char *mode,
                               char host[FLOW_HOST_SIZE]);

/* The process that announced a start. */
enum flow_process {
    PROCESS_ENDED, /* or there is no start */
    PROCESS_RUNS,  /* or that cannot be told */
    PROCESS_ELSEWHERE,
};
enum flow_process flow_start_process (const struct flow_start *start);

/* The text of job.sh. */
extern const char flow_job_script[];

/* Submit a job, or an array, for each step that lacks one; tasks that need not
 * be run get their result here.  'again': Slurm may have jobs of it already,
 * and is asked once.  Returns how many jobs were submitted, -1 with 'err'.
 */
long flow_submit (const struct flow_run *r, bool again, struct slurmdl_error *err);

/* A step with on_exit, whose job 'start' has begun: whether it had to be
 * submitted '*again', because others were after it; -1 with 'err'.
 */
int flow_exit_again (const struct flow_run *r, const struct flow_step *s, long start, bool *again,
                     struct slurmdl_error *err);

/* Run what is left, so many tasks at once.  Prints a line for each that ends.
 * Returns an exit status.
 */
int flow_local (const struct flow_run *r, long workers);

/* The process of this machine that works at a flow, 0: there is none. */
pid_t flow_local_process (const struct flow_run *r);

/* ---- commands ---- */

/* Of cmd_flow(); each returns an exit status. */
int flow_ls (const struct command_line *line);
int flow_show (const struct command_line *line);
int flow_graph (const struct command_line *line);
