/* SPDX-License-Identifier: Apache-2.0 */
/* Find out why a worker died, and how far its attempt got. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

struct worker_exit {
    bool counted;  /* the trainer's fault: counts towards max_restarts */
    bool requeued; /* Slurm has restarted the job */
    char why[160]; /* "": unknown */
};

/* Find out why the previous worker in this place ended: SLURM_RESTART_COUNT shows a requeue,
 * DL_LAST_STATUS, which the batch script sets, how the previous step ended.  If that may have been
 * for lack of memory, ask `sacct` once, or read the counters below 'root' (oom.h).
 */
void worker_exit_read (const char *root, struct worker_exit *l);

/* Whether 'slot' belongs to a job array. */
bool worker_exit_can_ask (const char *slot);

/* Ask Slurm for the state in which the job of the worker at 'slot' ended, or was requeued: `sacct`,
 * or, if that knows nothing, `scontrol show job`, once each.  Leaves 'l' alone if the slot belongs
 * to no array or Slurm does not know.
 */
void worker_exit_ask (const char *slot, struct worker_exit *l);

enum attempt_progress {
    PROGRESS_NONE,
    PROGRESS_FILES, /* it left files that differ from those it was given */
    PROGRESS_STEPS, /* it logged a step that the trial had not reached */
};

/* How much further an attempt got than the earlier attempts at its segment.  The first of them
 * makes no progress by definition.
 */
enum attempt_progress attempt_progress (const struct sweep *s, long trial, long attempt);

/* Seconds that an attempt ran whose worker 'nonce' died: from its first file to the last sign of
 * life of either, by the mtimes of the files, which come from one clock.  0: it never started.
 */
double attempt_seconds (const struct sweep *s, long trial, long attempt, const char *nonce);
