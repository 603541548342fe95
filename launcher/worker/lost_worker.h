/* SPDX-License-Identifier: Apache-2.0 */
/* Find out why a worker died, and how far its attempt got. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

struct worker_exit {
    bool counted;  /* the trainer is at fault: counts towards max_restarts */
    bool requeued; /* Slurm has requeued the job */
    char why[160]; /* "": unknown */
};

/* Find out why the previous worker in this place ended.  SLURM_RESTART_COUNT reveals a requeue, and
 * DL_LAST_STATUS, set by the batch script, how the previous step ended.  If the step may have run
 * out of memory, run `sacct` once, or read the counters below 'root' (oom.h).
 */
void worker_exit_read (const char *root, struct worker_exit *l);

/* Whether 'slot' belongs to a job array. */
bool worker_exit_can_ask (const char *slot);

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
