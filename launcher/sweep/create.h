/* SPDX-License-Identifier: Apache-2.0 */
/* Create and remove the folder of an experiment, and copy a fork's checkpoint into it. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/error.h"

struct experiment;

/* The code that the trials run, and where it comes from (e->frozen_code). */
struct frozen_code {
    const struct code_archive *archive; /* NULL: the code is not frozen */
    const char *root;                   /* the folder that was frozen */
    const char *provenance;             /* JSON */
};

/* Create an experiment from 'e', which the caller keeps: the folder ROOT/NAME-0001, or the first
 * free number, with a copy of the experiment file and the first log entry.  Writes its path to
 * 'dir' and the id from its log to 'id'.  Returns -1 with 'err'.
 */
enum { SWEEP_ID_SIZE = 33 };
int sweep_create (const struct experiment *e, const char *root, char *dir, size_t size,
                  char id[SWEEP_ID_SIZE], struct slurmdl_error *err);

/* Make the folder ROOT/NAME-0001, or the first with a free number, and write its path to 'dir'.
 * Returns -1 with errno.
 */
int numbered_folder (const char *root, const char *name, mode_t mode, char *dir, size_t size);

/* Remove the experiment 'dir' with everything in it.  'dir' must contain a '/'.  Links are removed
 * rather than followed, and mounted file systems are left alone.
 */
int sweep_remove (const char *dir, struct slurmdl_error *err);

/* ---- the checkpoint with which every trial of a fork begins ---- */

/* Copy the checkpoint e->source_file, or e->source_files, into the folder of a new experiment as
 * files of an attempt, and e->source_shared as files of that attempt's trial.
 */
int fork_source_publish (const struct experiment *e, const char *dir, struct slurmdl_error *err);

/* Write the path of that attempt's folder in the experiment 'dir'. */
void fork_source_dir (char *buf, size_t size, const char *dir);

/* Copy the files that the experiment 'dir' keeps for {trial_dir} into a trial's folder 'trial'.
 * Call it before the trial's first attempt runs.
 */
int fork_source_hand_on (const char *dir, const char *trial, struct slurmdl_error *err);

/* Append to a NULL-ended list the paths of the files that all attempts of a trial share, from the
 * folder of a trial or of a fork's source.  Returns -1 with errno.
 */
int list_trial_files (const char *dir, char ***list);
