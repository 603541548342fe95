/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use to run the training program of a trial. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/sweep/attempt.h"
#include "launcher/sys/temporary_folder.h"

struct command_line;
struct slurmdl_metrics;
struct trainer;
struct trial_attempt;

/* ---- Run the command of one attempt, and read the metrics that it reports ---- */

/* The trainer's own command of an attempt (without srun and the container), the whole command, and
 * its environment (dl-trainer(7), HYPERPARAMETERS): NULL-ended lists of texts that the caller
 * frees.  attempt_command() returns NULL with 'err' if the container's image is gone.
 */
char **attempt_words (const struct trial_attempt *a);
char **attempt_command (const struct trial_attempt *a, struct slurmdl_error *err);
char **attempt_environment (const struct trial_attempt *a);

/* What a trainer leaves to the next one of the same worker. */
struct trainer_spare {
    char dir[4096], name[40];        /* of the spare metrics file */
    struct slurmdl_metrics *metrics; /* the file, open; NULL: there is none */
    int watch;                       /* inotify(7) descriptor; 0: not opened yet, -1: unavailable */
};

/* Create the attempt's folder with hparams.json and log, and start the command in its own process
 * group, with the log as its output.  NULL on failure.  'spare' may be NULL.
 */
struct trainer *trainer_start (const struct trial_attempt *a, struct trainer_spare *spare,
                               struct slurmdl_error *err);
void trainer_destroy (struct trainer *t); /* kills what still runs */
void trainer_forget_spare (struct trainer_spare *spare);

/* Descriptor to poll for output that metrics.pattern may match, or -1 if there is none; then call
 * trainer_read() periodically.
 */
int trainer_fd (const struct trainer *t);

/* Read metrics from new text in the log or metrics.file.  With 'last', also read a last line that
 * has no newline.
 */
void trainer_read (struct trainer *t, bool last);

/* The step of a report: 'step', or the one after the last report if 'step' is negative. */
int64_t trainer_step (struct trainer *t, int64_t step);

/* Log a metric for the trainer. */
int trainer_log (struct trainer *t, const char *name, int64_t step, double value);

/* Call this if the trainer succeeded without logging the experiment's first metric.  Returns
 * whether, by their output, earlier attempts had trained the segment to its end; their last values
 * then become this attempt's.
 */
bool trainer_had_nothing_to_do (struct trainer *t);

/* Whether a metric could not be logged or read.  trainer_unread() returns the errno if the last
 * output could not be read, else 0.
 */
bool trainer_lost_metrics (const struct trainer *t);
int trainer_unread (const struct trainer *t);

/* The owner of the files that this user creates in the attempt's folder; a file system may map it.
 */
uid_t trainer_owner (const struct trainer *t);

/* Whether somebody has removed, moved or replaced the attempt's folder. */
bool trainer_is_homeless (const struct trainer *t);

/* fsync what was logged through trainer_log(); -1 with 'err'. */
int trainer_flush (struct trainer *t, struct slurmdl_error *err);

/* The same in two halves: the first starts the fsync, the second waits for it. */
void trainer_flush_begin (struct trainer *t);
int trainer_flush_end (struct trainer *t, struct slurmdl_error *err);

/* Call this once the trainer has ended.  Returns true with the newest value of the experiment's
 * first metric if the attempt logged everything through trainer_log().  Otherwise, read the value
 * from the attempt's folder after trainer_flush().
 */
bool trainer_newest (struct trainer *t, int64_t *step, double *value);

/* Whether the command has ended.  Sets '*status' to its wait status if so. */
bool trainer_ended (struct trainer *t, int *status);

/* Call this once the trainer has ended: the peak memory in bytes of the largest process that was
 * waited for.
 */
int64_t trainer_peak (const struct trainer *t);

/* Whether the command has ended because it was asked to stop, but some of its processes are still
 * saving a checkpoint.
 */
bool trainer_lingers (const struct trainer *t);

/* Write a line of the worker's own to the log. */
void trainer_note (struct trainer *t, const char *text);

/* Kill srun itself, because it cannot end a step whose node is gone. */
void trainer_leave (struct trainer *t);

/* Send a signal to the trainer, or to its ranks through srun. */
void trainer_signal (struct trainer *t, int signal);

/* ---- A trial of several ranks ---- */

/* A step of the worker's job, and the command of each rank in it. */

/* Append the words that precede the trainer's command.  step_command() appends srun on all nodes of
 * the job or on those of the attempt, followed by `dl rank` if 'proxy' is set; within_command()
 * appends `dl within --`.
 */
void step_command (const struct trial_attempt *a, bool proxy, char ***words);
void within_command (char ***words);

/* Signal the ranks: SIGTERM asks them to stop; SIGKILL, sent repeatedly, ends them.  Initialise
 * '*ended' with 0.
 */
void step_signal (pid_t srun, int signal, double *ended);

/* End the step, and wait until it has ended. */
void step_end (pid_t srun, double *ended);

/* Folder of an attempt in which each rank of a job with roles records its end as "STATUS NODE", in
 * a file named after its number.
 */
#define ENDS_NAME "ends"

/* This environment variable has job_alone() (launcher/config/job_settings.h). */
#define ALONE_VARIABLE "DL_JOB_ALONE"

/* Seconds that a preempted task waits to be killed.  If it exited with status 0, Slurm would take
 * the job for complete and not requeue it.
 */
enum { PREEMPT_WAIT = 300 };

/* dl rank: the command that srun starts for each rank. */
int cmd_rank (const struct command_line *line);

/* ---- The socket by which `dl log` in a script reaches the worker ---- */

/* The worker is the only writer of metrics. */

/* The worker's side. */
struct log_socket {
    int fd; /* -1: none */
    struct scratch folder;
    char path[80];
};

/* Create the socket.  On failure, complain and set 'path' to ""; everything but `dl log` still
 * works.  Call log_socket_close() in any case.
 */
void log_socket_open (struct log_socket *s);
void log_socket_close (struct log_socket *s);

/* Answer one message that is waiting on s->fd. */
void log_socket_serve (struct log_socket *s, struct trainer *t);

/* The client's side: send 'text' to the worker at 'path' and wait for its answer.  Returns -1 with
 * 'err' on failure.
 */
int log_socket_send (const char *path, const char *text, struct slurmdl_error *err);

/* ---- The folders from which an attempt resumes ---- */

/* {trial_dir}, the folder that all attempts of the trial share. */
void trial_dir (const struct trial_attempt *a, char *path, size_t size);

/* The newest earlier attempt of the trial, accepted or not, that has a non-empty 'file', or any
 * file of its trainer if that is NULL.  An attempt that failed before it logged anything is
 * skipped, and so is the one it resumed from, whose files may be broken.  If an attempt without
 * files fails in the same way, the files were not the cause, and none is skipped any longer.
 *
 * Returns 0, or -1 if there is none.
 */
int attempt_with_files (const struct trial_attempt *a, const char *file, char *path, size_t size);

/* The same for files left in a working folder; writes that folder to 'path'. */
int attempt_with_work (const struct trial_attempt *a, char *path, size_t size);

/* Write a line if a newer attempt is skipped for that reason; returns whether one is. */
bool resume_note (const struct trial_attempt *a, char *line, size_t size);

/* Whether a folder contains 'file' or, if that is NULL, any file of its trainer. */
bool folder_has_files (const char *dir, const char *file);

/* Whether dl itself uses this name in an attempt's folder.  False for the folder of checkpoints. */
bool attempt_file_is_ours (const char *name);

/* Whether an attempt has logged a metric; its files may exist before it does. */
bool attempt_has_logged (const char *dir);

/* Call 'f' for each file and folder in 'dir', an attempt's or trial's folder, that dl did not
 * create.  Returns their number.
 */
int each_trainer_file (const char *dir, void (*f) (const char *dir, const char *name));

/* Append the paths of these files and folders to a list.  'dir' was found by attempt_with_files(),
 * or is a copy of such a folder.  Returns -1 with errno on failure.
 */
int list_trainer_files (const char *dir, char ***list);

/* ---- Detect files that several trials write in a folder that they share ---- */

/* An attempt has just ended: record in its folder which files of the shared folder have changed
 * since it began.
 */
void shared_files_note (const struct trial_attempt *a);

/* Call 'f' for each file recorded in an attempt's folder, with its path below the shared folder,
 * until it returns non-zero.
 */
int shared_files_each (const char *attempt, int (*f) (const char *path, long long size, void *arg),
                       void *arg);

struct shared_file {
    char path[4096]; /* below the shared folder */
    long trials[2];
    long others; /* number of other files that two trials wrote */
};

/* Find a file that two of the first trials wrote, judging by the times at which it changed.  Either
 * no single trial ran at all of these times, or its name does not belong to one trial and it
 * changed while two trials ran, and again after the first of them ended.  Returns whether there is
 * such a file.
 */
bool shared_files_find (const struct sweep *s, struct shared_file *found);

/* ---- The working folder of an attempt, and what becomes of its files ---- */

/* The working folder of an attempt stands beside the copy of the frozen code, so that '..' leads to
 * the same files.  Once the attempt has run for a while, 'work' in its folder is a link to it; when
 * it is over, 'work' is a folder with what its trainer wrote, if anything.  With WORK_SHARED, or
 * without frozen code, all attempts run in exp->dir.
 */

/* Set a->work to its path, or to "" if all attempts run in exp->dir. */
void work_folder_name (struct trial_attempt *a);

/* Create it, from the spare one if there is one. */
int work_folder_make (const struct trial_attempt *a, struct slurmdl_error *err);

/* Create the link 'work' in the attempt's folder. */
void work_folder_show (const struct trial_attempt *a);

/* Call this when nothing of the attempt runs any more.  If nothing was written and 'keep' is set,
 * the folder becomes the spare one.
 */
void work_folder_settle (const struct trial_attempt *a, bool keep);

/* The same for an earlier attempt, whose worker left it behind. */
void work_folder_settle_earlier (const struct trial_attempt *a, long number);

/* Replace absolute paths of frozen scripts in the command 'text' with those in the working folder.
 * The caller frees the result.
 */
char *work_folder_command (const struct trial_attempt *a, const char *text);
