/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of one attempt, and read the metrics that it reports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sweep/attempt.h"

/* The trainer's own command of an attempt (without srun and the container), the whole command, and
 * its environment (dl-trainer(7), HYPERPARAMETERS): NULL-ended lists of texts that the caller
 * frees, or NULL.
 */
char **attempt_words (const struct trial_attempt *a);
char **attempt_command (const struct trial_attempt *a);
char **attempt_environment (const struct trial_attempt *a);

struct trainer;
struct slurmdl_metrics;

/* What the trainers of a worker hand on to the next one. */
struct trainer_spare {
    char dir[4096], name[40];        /* of the spare metrics file */
    struct slurmdl_metrics *metrics; /* the file, open; NULL: there is none */
    int watch;                       /* inotify(7), 0: not opened yet, -1: not available */
};

/* Create the attempt's folder with hparams.json and log, and start the command in its own process
 * group, with the log as its output.  NULL on failure.  'spare' may be NULL.
 */
struct trainer *trainer_start (const struct trial_attempt *a, struct trainer_spare *spare,
                               struct slurmdl_error *err);
void trainer_destroy (struct trainer *t); /* kills what still runs */
void trainer_forget_spare (struct trainer_spare *spare);

/* Descriptor to poll for output that metrics.pattern may match; -1: there is none, so call
 * trainer_read() now and then.
 */
int trainer_fd (const struct trainer *t);

/* Read metrics from what is new in the log or metrics.file; at its end ('last') also from a line
 * without a newline.
 */
void trainer_read (struct trainer *t, bool last);

/* The step of a report: 'step', or the one after the last report if 'step' is negative. */
int64_t trainer_step (struct trainer *t, int64_t step);

/* Log a metric for the trainer. */
int trainer_log (struct trainer *t, const char *name, int64_t step, double value);

/* The trainer succeeded without logging the experiment's first metric: whether earlier attempts had
 * trained the segment to its end, by what they printed.  Their last values then become this
 * attempt's.
 */
bool trainer_had_nothing_to_do (struct trainer *t);

/* Whether a metric could not be logged or read; the errno of a failure to read what was printed
 * last, or 0.
 */
bool trainer_lost_metrics (const struct trainer *t);
int trainer_unread (const struct trainer *t);

/* Whether somebody has removed, moved or replaced the attempt's folder. */
bool trainer_is_homeless (const struct trainer *t);

/* fsync what was logged through trainer_log(); -1 with 'err'. */
int trainer_flush (struct trainer *t, struct slurmdl_error *err);

/* The same in two halves, of which the first does not wait. */
void trainer_flush_begin (struct trainer *t);
int trainer_flush_end (struct trainer *t, struct slurmdl_error *err);

/* Once it has ended: the newest value of the experiment's first metric, if everything that the
 * attempt logged came through trainer_log(); else false, and the attempt's folder has the value
 * after trainer_flush().
 */
bool trainer_newest (struct trainer *t, int64_t *step, double *value);

/* Whether the command has ended; '*status' is then its wait status. */
bool trainer_ended (struct trainer *t, int *status);

/* Once it has ended: the peak memory in bytes of its largest process that was waited for. */
int64_t trainer_peak (const struct trainer *t);

/* Whether the command has ended because it was asked to stop, but other processes of it are still
 * saving a checkpoint.
 */
bool trainer_lingers (const struct trainer *t);

/* A line of the worker's own, in the log. */
void trainer_note (struct trainer *t, const char *text);

/* Kill srun itself, which cannot end a step whose host is gone. */
void trainer_leave (struct trainer *t);

/* Send a signal to the trainer, or to its ranks through srun. */
void trainer_signal (struct trainer *t, int signal);
