/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of one attempt, and read what it reports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sweep/attempt.h"

/* The command of an attempt, the trainer's own words of it (without srun and
 * what starts a container), and the variables of that (dl-trainer(7),
 * HYPERPARAMETERS): NULL-ended lists of texts that the caller frees, or NULL.
 */
char **attempt_words (const struct trial_attempt *a);
char **attempt_command (const struct trial_attempt *a);
char **attempt_environment (const struct trial_attempt *a);

struct trainer;
struct slurmdl_metrics;

/* What a worker's trainers, one after the other, leave to the next one. */
struct trainer_spare {
    char dir[4096], name[40];        /* of that file, as long as it has ... */
    struct slurmdl_metrics *metrics; /* ... no attempt; NULL: there is none */
    int watch;                       /* inotify(7), 0: not open yet, -1: there is none */
};

/* Make the attempt's folder with hparams.json and log, and start the command
 * in a process group of its own, with the log as its output.  NULL on failure.
 * 'spare' may be NULL.
 */
struct trainer *trainer_start (const struct trial_attempt *a, struct trainer_spare *spare,
                               struct slurmdl_error *err);
void trainer_destroy (struct trainer *t); /* kills what still runs */
void trainer_forget_spare (struct trainer_spare *spare);

/* Descriptor to poll for output that metrics.pattern looks at.  -1: there is
 * none; then call trainer_read() now and then.
 */
int trainer_fd (const struct trainer *t);

/* Take the metrics from what is new in the log or metrics.file; at its end
 * ('last') also from a line without an end.
 */
void trainer_read (struct trainer *t, bool last);

/* The step of a report that says 'step', or, if that is negative, of one that
 * follows the last.
 */
int64_t trainer_step (struct trainer *t, int64_t step);

/* Log a metric for the trainer. */
int trainer_log (struct trainer *t, const char *name, int64_t step, double value);

/* It has ended well without a value of the experiment's first metric: whether
 * the attempts before it had trained the segment to its end, by what they have
 * printed.  Their last values are then this attempt's.
 */
bool trainer_had_nothing_to_do (struct trainer *t);

/* A metric could not be logged, or what was printed last not be read; errno of
 * the latter, 0: it could.
 */
bool trainer_lost_metrics (const struct trainer *t);
int trainer_unread (const struct trainer *t);

/* Somebody has removed, moved or replaced the attempt's folder meanwhile. */
bool trainer_is_homeless (const struct trainer *t);

/* Write what was logged through trainer_log() to the disk; -1 with 'err'. */
int trainer_flush (struct trainer *t, struct slurmdl_error *err);

/* Its two halves: the first does not wait. */
void trainer_flush_begin (struct trainer *t);
int trainer_flush_end (struct trainer *t, struct slurmdl_error *err);

/* Once it has ended: the newest value of the experiment's first metric, if all
 * that the attempt has logged came through trainer_log(); else false, and the
 * attempt's folder has it after trainer_flush().
 */
bool trainer_newest (struct trainer *t, int64_t *step, double *value);

/* Whether the command has ended; '*status' is then that of waitpid(). */
bool trainer_ended (struct trainer *t, int *status);

/* Once it has ended: bytes of the largest of its processes that were waited
 * for.
 */
int64_t trainer_peak (const struct trainer *t);

/* Whether other processes of the command, which has ended because it was
 * asked to stop, are still saving what they have.
 */
bool trainer_lingers (const struct trainer *t);

/* Send a signal to the trainer, or through srun to its ranks. */
void trainer_signal (struct trainer *t, int signal);
