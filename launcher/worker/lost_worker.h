/* SPDX-License-Identifier: Apache-2.0 */
/* Why the worker that was at this place before is gone. */
#pragma once

#include <stdbool.h>

struct worker_exit {
    bool counted;  /* the trainer's fault: counts towards max_restarts */
    bool requeued; /* Slurm has begun the job again */
    char why[160]; /* "": nothing is known */
};

/* Read what Slurm says about the worker that had this place before: by
 * SLURM_RESTART_COUNT that the job was requeued, by DL_LAST_STATUS, which the
 * batch script sets, how the step before this one ended.  Only where that may
 * have been for want of memory is something asked: `sacct`, once, or the
 * counters at 'root' (oom.h).
 */
void worker_exit_read (const char *root, struct worker_exit *l);

/* Whether 'slot' is one of an array of Slurm's. */
bool worker_exit_can_ask (const char *slot);

/* Ask Slurm for the state in which the job of the worker at 'slot' has ended,
 * or was before it was requeued: `sacct`, or where that knows nothing `scontrol
 * show job`, once each.  Fills 'l', unless the slot is none of an array's or
 * Slurm does not know.
 */
void worker_exit_ask (const char *slot, struct worker_exit *l);
