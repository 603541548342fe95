/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints of an experiment stay, and the removal of the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sweep/sweep.h"

/* ---- which stay: pure ---- */

struct gc_checkpoint {
    long trial;
    long attempt;
    int64_t step;
    double metric; /* logged at this step; not finite: has no validation */
    bool accepted; /* its attempt's result is the trial's last accepted one */
    bool bad;      /* it does not verify: counts for nothing */
    bool kept;     /* the answer */
};

/* Set 'kept' of each: the union of the 'experiment_best' best of all, the
 * 'trial_best' best and the 'trial_latest' latest of each trial.  The best
 * are those whose metric is finite; of equal ones the older (the lower step,
 * then the lower trial) is the better.  The latest have the highest steps.
 * Of several attempts' checkpoints of one step only that which a restore
 * takes counts: the accepted attempt's, else the highest attempt's.
 *
 * Returns -1 if out of memory.
 */
int gc_mark (const struct gc_policy *policy, bool smaller_is_better, struct gc_checkpoint *list,
             size_t n);

/* It ended by itself: one that was stopped or killed may well go on. */
bool gc_is_over (const struct sweep *s);

/* The policy is 0, 0, 0, and it is over. */
bool gc_keeps_nothing (const struct sweep *s);

/* ---- the removal ---- */

enum gc_outcome {
    GC_KEPT,
    GC_DELETED,  /* in a dry run: would be */
    GC_LEFTOVER, /* the same, of a save that was cut short */
    GC_DAMAGED,  /* does not verify, stays: no other one of its trial does */
};

struct gc_file {
    char *path;
    int64_t bytes;
    enum gc_outcome outcome;
};

struct gc_report {
    struct gc_file *files;
    size_t n;
};

/* Remove the checkpoints (ckpt/ of all attempts of all trials) that the
 * policy of the experiment does not keep, those of the oldest attempts and
 * steps first; with 'dry' remove nothing.  's' must have been read just now,
 * and no worker be at work.
 *
 * What the policy keeps is read and verified; for one that is damaged the
 * next one is kept.  While the experiment has not ended, a trial that is open
 * or paused also keeps what its next attempt, or a trial that begins from
 * it, would restore.  Where the metrics cannot be read, or no checkpoint of a
 * trial verifies, nothing of the trial is removed.  A policy of 0, 0, 0
 * removes all, but only once the experiment has ended.  The best trial's stays
 * where best ones do (best.h).
 *
 * The files that checkpoint_policy.files names are reported and removed as
 * well (trainer_files.h).
 *
 * gc_report_free() in any case.  Returns -1 at the first file that cannot be
 * removed; it and what follows is then reported as kept.
 */
int gc_run (const struct sweep *s, bool dry, struct gc_report *report, struct slurmdl_error *err);
void gc_report_free (struct gc_report *report);
