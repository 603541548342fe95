/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of one attempt, and read the metrics that it reports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sweep/attempt.h"

/* The trainer's own command of an attempt (without srun and the container), the whole command, and
 * its environment (dl-trainer(7), HYPERPARAMETERS): NULL-ended lists of texts that the caller
 * frees.  attempt_command() returns NULL with 'err' if the container's image is gone.
 */
char **attempt_words (const struct trial_attempt *a);
char **attempt_command (const struct trial_attempt *a, struct slurmdl_error *err);
char **attempt_environment (const struct trial_attempt *a);

struct trainer;
struct slurmdl_metrics;

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
