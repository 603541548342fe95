/* SPDX-License-Identifier: Apache-2.0 */
/* Which files that trainers saved themselves stay (checkpoint_policy.files). */
#pragma once

#include "launcher/sweep/sweep.h"

/* A file below an attempt's folder, or below 'work' in it. */
struct trainer_file {
    char *path;
    const char *below; /* its name there, a part of 'path' */
    char *kind;        /* the same with # for each number: epoch_#.pt */
    long trial;
    long attempt;
    int64_t bytes;
    bool kept; /* the answer */
};

struct trainer_files {
    struct trainer_file *files; /* by kind, trial and attempt */
    size_t n;
};

/* List the files of attempts that are over, match one of 'patterns'
 * (pattern_list.h) and are not empty.  trainer_files_free() in any case.
 * Returns -1 with errno.
 */
int trainer_files_list (const struct sweep *s, char *const *patterns, struct trainer_files *list);

/* The same, and mark those that stay.
 *
 * What an attempt has of one kind is one checkpoint.  Of a trial that may go on
 * those of the two newest attempts that have some and logged anything stay,
 * with all that is newer: what resume_dir.h would hand on, and what it would if
 * the newest was broken.  Besides, and of trials that have ended, those stay
 * that the policy selects; the metric is that of the attempt's result.  If a
 * trial has results, attempts without one do not count.  Where the policy keeps
 * best ones, that of the best trial (best.h) stays.
 */
int trainer_files_mark (const struct sweep *s, char *const *patterns, struct trainer_files *list);
void trainer_files_free (struct trainer_files *list);
