/* SPDX-License-Identifier: Apache-2.0 */
/* Create the folder of an experiment, with the source of a fork, and remove it. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/error.h"

struct experiment;

/* What the trials run, and where it comes from (e->frozen_code). */
struct frozen_code {
    const struct code_archive *archive; /* NULL: it is not frozen */
    const char *root;
    const char *provenance; /* JSON */
};

/* Create an experiment from 'e', which stays the caller's: the folder ROOT/NAME-0001 (or the first
 * free number) with a copy of the file and the first log entry.  Writes its path to 'dir' and the
 * id in its log to 'id'.
 */
enum { SWEEP_ID_SIZE = 33 };
int sweep_create (const struct experiment *e, const char *root, char *dir, size_t size,
                  char id[SWEEP_ID_SIZE], struct slurmdl_error *err);

/* Make the folder ROOT/NAME-0001, or the first with a free number, and write its path to 'dir'.
 * Returns -1 with errno.
 */
int numbered_folder (const char *root, const char *name, mode_t mode, char *dir, size_t size);

/* Remove the experiment 'dir' with everything in it; 'dir' contains a '/'.  Links are removed, not
 * followed, and mounted file systems stay.
 */
int sweep_remove (const char *dir, struct slurmdl_error *err);

/* ---- what every trial of a fork begins with ---- */

/* Copy the checkpoint e->source_file, or e->source_files, into a new experiment's folder as those
 * of an attempt, and e->source_shared as those of its trial.
 */
int fork_source_publish (const struct experiment *e, const char *dir, struct slurmdl_error *err);

/* The folder of the source's attempt in the experiment 'dir'. */
void fork_source_dir (char *buf, size_t size, const char *dir);

/* Before the first attempt of a trial runs: copy what the experiment 'dir' has for {trial_dir} into
 * the folder 'trial'.
 */
int fork_source_hand_on (const char *dir, const char *trial, struct slurmdl_error *err);

/* Add the paths of the files that all attempts of a trial share, in its folder or a source's.
 * Returns -1 with errno.
 */
int list_trial_files (const char *dir, char ***list);
