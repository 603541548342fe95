/* SPDX-License-Identifier: Apache-2.0 */
/* Decide which checkpoints of an experiment to keep, and remove the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sweep/sweep.h"

struct checkpoint_policy;

/* ---- which checkpoints to keep ---- */

struct gc_checkpoint {
    long trial;
    long attempt;
    int64_t step;
    double metric; /* logged at this step; not finite: there was no validation */
    bool accepted; /* the attempt's result is the trial's last accepted one */
    bool bad;      /* it does not verify, and is ignored */
    bool kept;     /* set by gc_mark() */
};

/* Set 'kept' of each checkpoint: the union of the 'experiment_best' best of all, the 'trial_best'
 * best and the 'trial_latest' latest of each trial.  Only finite metrics are ranked; of equal ones
 * the older (the lower step, then the lower trial) wins.  The latest have the highest steps.  If
 * several attempts saved the same step, only the one that a restore would take counts: the accepted
 * attempt's, else the highest attempt's.
 */
void gc_mark (const struct checkpoint_policy *policy, bool smaller_is_better,
              struct gc_checkpoint *list, size_t n);

/* ---- files that trainers saved themselves (checkpoint_policy.files) ---- */

/* A file below an attempt's folder, or below 'work' in it. */
struct trainer_file {
    char *path;
    const char *below; /* the path relative to that folder; points into 'path' */
    char *kind;        /* 'below' with # for each number: epoch_#.pt */
    long trial;
    long attempt;
    int64_t bytes;
    bool kept; /* set by trainer_files_mark() */
};

struct trainer_files {
    struct trainer_file *files; /* sorted by kind, trial and attempt */
    size_t n;
};

/* List the non-empty files of finished attempts that match one of 'patterns' (pattern_list.h).
 * Call trainer_files_free() in any case.  Returns -1 with errno on failure.
 */
int trainer_files_list (const struct sweep *s, char *const *patterns, struct trainer_files *list);

/* The same, and mark the files to keep.
 *
 * All files of one kind in an attempt form one checkpoint.  A trial that may continue keeps those
 * of its two newest attempts that have files and logged anything, and everything newer: these are
 * what resume_dir.h would resume from, and what it would fall back to if the newest were broken.
 * Every trial also keeps what the policy selects by the metric of the attempt's result.  If a trial
 * has results, attempts without one are ignored.  If the policy keeps best checkpoints, it also
 * keeps those of the best trial (best.h).
 */
int trainer_files_mark (const struct sweep *s, char *const *patterns, struct trainer_files *list);
void trainer_files_free (struct trainer_files *list);

/* ---- removal ---- */

enum gc_outcome {
    GC_KEPT,
    GC_DELETED,  /* in a dry run: would be deleted */
    GC_LEFTOVER, /* deleted; an interrupted save left it */
    GC_DAMAGED,  /* kept although it does not verify, because no other of its trial does */
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

/* Remove the checkpoints (ckpt/ of all attempts of all trials) that the experiment's policy does
 * not keep, oldest attempts and steps first.  With 'dry', remove nothing.  The caller must have
 * just read 'sweep', and no worker may be running.
 *
 * Checkpoints that the policy keeps are read and verified; if one is damaged, the next one is kept
 * instead.  Until the experiment has ended, an open or paused trial also keeps what its next
 * attempt would restore, or a trial that starts from it.  If the metrics of a trial cannot be read,
 * or none of its checkpoints verifies, nothing of that trial is removed.  The policy 0, 0, 0
 * removes everything, but only once the experiment has ended.  If best ones are kept, so is the
 * best trial's (best.h).
 *
 * Files that checkpoint_policy.files names are reported and removed as well.
 *
 * Call gc_report_free() in any case.  Returns -1 at the first file that cannot be removed; it and
 * all that follow are reported as kept.
 */
int gc_run (const struct sweep *sweep, bool dry, struct gc_report *report,
            struct slurmdl_error *err);
void gc_report_free (struct gc_report *report);

/* Remove hidden files that a killed writer left in the folder of an attempt that was given up.  If
 * its worker only hangs and is still writing one, it has lost the attempt anyway.
 */
void leftovers_clean_attempt (const struct sweep *s, long trial, long attempt);
