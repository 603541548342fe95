/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points and options of the commands about experiments, for main()'s table. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/code/code.h"
#include "launcher/config/diagnostics.h"
#include "launcher/config/edit.h"
#include "launcher/progress/progress.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/temporary_folder.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"

/* Options of the commands that start workers. */
struct start_options {
    bool local, detach, dry_run, no_workers;
    int64_t workers; /* 0: use the experiment's setting */
    char **sets;     /* KEY=VALUE, NULL-ended, or NULL */
};

/* Options of dl run. */
struct run_options {
    struct start_options start;
};

/* Options of dl job. */
struct job_options {
    struct start_options start;
    const char *name;
    int64_t nodes, ranks; /* ranks per node; 0: not given */
    const char *framework;
};

/* Options of dl try. */
struct try_options {
    char **sets;    /* KEY=VALUE, NULL-ended, or NULL */
    int64_t length; /* 0: not given */
};

/* Options of dl preview. */
struct preview_options {
    char **sets;    /* KEY=VALUE, NULL-ended, or NULL */
    double seconds; /* per unit of length; 0: not given */
    bool json;
};

/* Options of dl fork. */
struct fork_options {
    struct start_options start;
    bool trust;
    const char *file;
    int64_t seeds; /* 0: continue one trial from a checkpoint */
};

/* Options of dl import. */
struct import_options {
    const char *output;
    const char *from;
    const char *entrypoint;
    bool coverage;
};

/* Options of dl worker. */
struct worker_options {
    bool trust;
    const char *slot;
};

/* Options of dl ls. */
struct ls_options {
    bool all;
    const char *label;
    bool json;
};

/* Options of dl show. */
struct show_options {
    int64_t trials; /* rows to print; 0: all */
    const char *columns;
    const char *where;
    const char *sort;
    bool csv;
    bool provenance;
    bool values;
    bool json;
};

/* Options of dl logs. */
struct logs_options {
    bool follow;
    int64_t lines;   /* number of last lines to print; -1: all */
    int64_t attempt; /* 0: the last one */
};

/* Options of dl wait. */
struct wait_options {
    double timeout; /* seconds; negative: no timeout */
};

/* Options of dl resume. */
struct resume_options {
    struct start_options start;
    bool trust;
    bool wait;
};

/* Options of dl retry. */
struct retry_options {
    struct start_options start;
    bool trust;
};

/* Options of dl continue. */
struct continue_options {
    struct start_options start;
    bool trust;
    int64_t trials; /* 0: unchanged */
    int64_t length; /* 0: unchanged */
};

/* Options of dl scale. */
struct scale_options {
    bool trust;
};

/* Options of dl label, dl archive and dl exclude. */
struct mark_options {
    bool undo;
};

/* Options of dl export. */
struct export_options {
    const char *format;
    const char *output;
    bool follow;
    double seconds; /* 0: not given */
    bool safe_csv;
};

/* Options of dl gc. */
struct gc_options {
    bool dry_run;
};

/* Options of dl reproduce. */
struct reproduce_options {
    bool trust;
    bool dry_run;
};

/* Options of dl rm. */
struct rm_options {
    bool force;
};

/* Options of dl log. */
struct log_options {
    int64_t step; /* -1: not given */
};

/* Options of dl watch. */
struct watch_options {
    double seconds; /* 0: not given */
};

/* Options of dl best. */
struct best_options {
    const char *export_dir;
    bool trust;
    bool json;
};

/* Options of dl failures. */
struct failures_options {
    int64_t lines; /* -1: not given */
    bool json;
};

/* Options of dl goodput. */
struct goodput_options {
    bool csv;
    bool json;
};

/* Options of dl compare. */
struct compare_options {
    bool json;
};

/* Options of dl plot. */
struct plot_options {
    const char *output;
    const char *terminal;
    int64_t trials; /* 0: not given */
};

/* Options of dl top. */
struct top_options {
    bool watch;
    double seconds; /* 0: not given */
    bool json;
};

/* Options of dl notebook. */
struct notebook_options {
    int64_t idle; /* minutes; -1: not given, 0: never */
    const char *jupyter;
    bool network;
};

/* Options of dl search-server. */
struct search_server_options {
    const char *searcher;
};

/* Each command returns an exit status from launcher/sys/messages.h. */
int cmd_run (const struct command_line *line);
int cmd_try (const struct command_line *line);
int cmd_preview (const struct command_line *line);
int cmd_ls (const struct command_line *line);
int cmd_show (const struct command_line *line);
int cmd_logs (const struct command_line *line);
int cmd_stop (const struct command_line *line);
int cmd_resume (const struct command_line *line);
int cmd_gc (const struct command_line *line);
int cmd_job (const struct command_line *line);
int cmd_diff (const struct command_line *line);
int cmd_reproduce (const struct command_line *line);
int cmd_export (const struct command_line *line);
int cmd_import (const struct command_line *line);
int cmd_pause (const struct command_line *line);
int cmd_kill (const struct command_line *line);
int cmd_continue (const struct command_line *line);
int cmd_retry (const struct command_line *line);
int cmd_fork (const struct command_line *line);
int cmd_wait (const struct command_line *line);
int cmd_archive (const struct command_line *line);
int cmd_label (const struct command_line *line);
int cmd_exclude (const struct command_line *line);
int cmd_rm (const struct command_line *line);
int cmd_log (const struct command_line *line);
int cmd_worker (const struct command_line *line);
int cmd_scale (const struct command_line *line);
int cmd_requeue (const struct command_line *line);
int cmd_attend (const struct command_line *line);
int cmd_watch (const struct command_line *line);
int cmd_plot (const struct command_line *line);
int cmd_compare (const struct command_line *line);
int cmd_best (const struct command_line *line);
int cmd_failures (const struct command_line *line);
int cmd_goodput (const struct command_line *line);
int cmd_top (const struct command_line *line);
int cmd_shell (const struct command_line *line);
int cmd_notebook (const struct command_line *line);
int cmd_tensorboard (const struct command_line *line);
int cmd_search_server (const struct command_line *line);

/* Print the kinds of plot that dl plot can draw, for shell completion. */
void plot_words (void);

/* Print the words that may follow 'dl notebook', for shell completion. */
void notebook_words (void);

/* Print what the search will cost, as dl run --dry-run does. */
struct experiment;
void print_preview (const struct experiment *e);

/* ---- follow an experiment until it ends (follow.c) ---- */

/* Show progress until the sweep ends, is stopped, or runs out of workers.  If
 * standard output is not a terminal, print only changes that 'printed' does not have.
 */
int follow (struct sweep *s, struct executor *x, struct changes *printed);

/* From now on, ^C and SIGTERM stop the workers that follow() finds. */
void follow_signals (void);

/* Return the exit status for how an experiment ended that no longer runs. */
int follow_status (const struct sweep *s);

/* Wait until the experiment ends or is paused, and print the outcome.  Returns an
 * exit status: EXIT_NO_WORKERS if the experiment is unfinished but no worker is
 * active.
 */
int wait_while_at_work (struct sweep *s);

/* ---- freeze the code of an experiment and run trials from the frozen copy (freeze.c) ---- */

/* The code and provenance to store with a new experiment. */
struct code_of_run {
    struct code_files files;
    struct code_archive archive;
    struct frozen_code frozen;
    char *provenance;
};

/* Freeze the code of an experiment that will be created in 'experiments', and set
 * e->code->frozen.  If the code cannot be frozen, print why; trials then run directly
 * from the working directory.  Returns an exit status.
 */
int code_freeze (struct experiment *e, const char *experiments, struct code_of_run *r);
void code_of_run_free (struct code_of_run *r);

/* Print what would be frozen (dl run --dry-run). */
int code_preview (const struct experiment *e, const char *experiments);

/* Unpack the frozen code for the trials unless that is done already, so that the
 * workers do not all do it at once.  Prints errors and returns an exit status.
 */
int code_prepare (const struct sweep *s);

/* Make trials of this process and its children run in the copy of the frozen code.
 * With code.local, unpack a new copy into 'own', which the caller initializes to
 * zero and removes afterwards, even on failure.  Prints errors and returns an exit
 * status.
 */
int code_enter (struct sweep *s, struct scratch *own);

/* Collect what would be frozen from the working directory as it is now; a->data is
 * NULL if that is nothing.  Returns -1 with 'err' on failure.
 */
int code_now (const struct sweep *s, struct code_archive *a, struct slurmdl_error *err);

/* If the code changed and the experiment has no result yet, freeze it again and store
 * the digest for the event "resume"; otherwise store "".  If there are results, only
 * warn that the code changed.  Prints errors and returns an exit status.
 */
int code_mend (const struct sweep *s, char digest[DIGEST_SIZE]);

/* ---- print the state, faults, failures and workers of an experiment (overview.c) ---- */

/* If a fault paused the experiment, print the fault, the end of the log that shows
 * it, and what to do.
 */
void print_fault (const struct sweep *s);

/* Print the time limits that were reached, if any. */
void print_limits (const struct sweep *s);

/* If two trials are known to have written the same file in their shared working
 * directory, print its name and what to do.
 */
void print_shared_files (const struct sweep *s);

/* Print how many trials failed and the most frequent cause, and report trials whose
 * program ended early or did not resume from its checkpoint.
 */
void print_failed (const struct sweep *s);

/* Return the name of the state, such as "paused (fault)". */
const char *state_text (const struct sweep *s);

/* Write results.h5 of a finished sweep if the worker responsible for it died, and
 * print what the file lacks.
 */
void print_results (const struct sweep *s);

/* Print everything about the experiment except its trials. */
void print_overview (const struct sweep *s);

/* Return the seconds since the last heartbeat if the sweep should have workers but
 * none is active, else NaN.
 */
double sweep_idle (const struct sweep *s);

/* ---- the recorded provenance of an experiment (provenance.c) ---- */

/* Read the record; the caller owns the object.  Returns NULL after printing an error
 * if there is no record, or if it is not the one made with the experiment.
 */
json_t *provenance_read (const struct sweep *s);

/* Print the record (dl show --provenance).  Returns an exit status. */
int provenance_print (const struct sweep *s, bool as_json);

/* ---- check the command of an experiment (command_check.c) ---- */

struct experiment;

/* Check the groups of 'entrypoint', the trials' container, and that the program and
 * script exist.  With 'loads', first load the trials' environment.  Skips words that
 * only a shell can expand, and, unless 'local', programs that may exist only on the
 * compute nodes.
 *
 * Prints errors to standard error and returns an exit status.
 */
int command_check (struct experiment *e, bool local, bool loads);

/* Warn about everything in the file that is valid but probably a mistake. */
void command_warn (const struct experiment *e);

/* Only check that the program and script exist, if their paths are relative. */
void command_check_files (const struct experiment *e, struct problems *p);

/* ---- choose nodes and ranks for the GPUs of a trial (trial_shape.c) ---- */

struct experiment;
struct start_options;

/* If '*e' requests a number of GPUs but no nodes, choose nodes, ranks and a partition,
 * print the choice, and read the experiment again with it.  '*e' was read from 'path'
 * with 'edit'.  Returns an exit status; '*e' is freed unless that is 0.
 */
int gpus_to_nodes (struct experiment **e, const char *path, const struct edit *edit,
                   const struct start_options *opt);

/* ---- run one trial on this host, in a temporary directory (try_run.c) ---- */

struct code_archive;
struct trainer;

struct try_run {
    struct sweep sweep;
    struct sweep_trial *trial;    /* the caller sets its point and length */
    struct trial_attempt attempt; /* the first */
    struct log_socket socket;
    struct trainer *trainer;
    off_t shown; /* bytes of the log already shown */
    int status;  /* as of waitpid(2) */
    double seconds;
};

/* Create the directory in 'above' ($TMPDIR or /tmp if NULL) and the state of an
 * experiment with this one trial.  Returns -1 with 'err' on failure.  Call
 * try_run_close() in every case.
 */
int try_run_open (struct try_run *t, struct experiment *e, long number, const char *above,
                  struct slurmdl_error *err);

/* Unpack the frozen code of the directory 'root' so that the trial runs in its own
 * working directory.  The caller keeps ownership of 'root'.
 */
int try_run_take_code (struct try_run *t, const char *root, const struct code_archive *a,
                       struct slurmdl_error *err);

/* Print the trial's command without the shell or srun that wraps it. */
void try_run_print_command (const struct try_run *t);

/* Train to attempt.length and copy the output to standard output.  On SIGINT or
 * SIGTERM, ask the trainer to stop, as a preemption would.
 */
int try_run_train (struct try_run *t, struct slurmdl_error *err);
void try_run_close (struct try_run *t);

/* ---- dl scale, and the array tasks that an experiment has in Slurm's queue (scale.c) ---- */

/* Where a worker runs or will run: an array task or a local process. */
struct worker_slot {
    long job, task; /* for a local process, from its slot "local-JOB-TASK" */
    bool local;
    bool pending;
};

/* The caller frees the list. */
struct queue {
    struct worker_slot *list;
    long n;
};

/* Run squeue and add the tasks of the experiment's arrays, except those told to end.
 * Returns -1 with 'err' on failure.
 */
int queue_find (struct queue *q, const struct sweep *s, struct slurmdl_error *err);

/* Tell tasks of the first 'nsubmits' arrays to end as soon as they start, if they are
 * not in 'seen' and have no active worker.  This covers tasks that squeue failed to
 * list.
 */
int queue_retire_unseen (struct sweep *s, const struct queue *seen, size_t nsubmits,
                         struct slurmdl_error *err);
