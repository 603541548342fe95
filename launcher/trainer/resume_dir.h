/* SPDX-License-Identifier: Apache-2.0 */
/* The folders from which an attempt resumes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sweep/attempt.h"

/* {trial_dir}, the folder that all attempts of the trial share. */
void trial_dir (const struct trial_attempt *a, char *path, size_t size);

/* The newest earlier attempt of the trial, accepted or not, that has a non-empty 'file', or any
 * file of its trainer if that is NULL.  An attempt that failed before it logged anything is
 * skipped, and so is the one it resumed from, whose files may be broken.  If an attempt without
 * files fails in the same way, the files were not the cause, and none is skipped any longer.
 *
 * Returns 0, or -1 if there is none.
 */
int attempt_with_files (const struct trial_attempt *a, const char *file, char *path, size_t size);

/* The same for files left in a working folder; writes that folder to 'path'. */
int attempt_with_work (const struct trial_attempt *a, char *path, size_t size);

/* Write a line if a newer attempt is skipped for that reason; returns whether one is. */
bool resume_note (const struct trial_attempt *a, char *line, size_t size);

/* Whether a folder contains 'file' or, if that is NULL, any file of its trainer. */
bool folder_has_files (const char *dir, const char *file);

/* Whether dl itself uses this name in an attempt's folder.  False for the folder of checkpoints. */
bool attempt_file_is_ours (const char *name);

/* Whether an attempt has logged a metric; its files may exist before it does. */
bool attempt_has_logged (const char *dir);

/* Call 'f' for each file and folder in 'dir', an attempt's or trial's folder, that dl did not
 * create.  Returns their number.
 */
int each_trainer_file (const char *dir, void (*f) (const char *dir, const char *name));

/* Append the paths of these files and folders to a list.  'dir' was found by attempt_with_files(),
 * or is a copy of such a folder.  Returns -1 with errno on failure.
 */
int list_trainer_files (const char *dir, char ***list);
