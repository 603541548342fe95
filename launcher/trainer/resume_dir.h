/* SPDX-License-Identifier: Apache-2.0 */
/* The folders in which a trial's files outlive an attempt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sweep/attempt.h"

/* {trial_dir}: the folder that all attempts of the trial share. */
void trial_dir (const struct trial_attempt *a, char *path, size_t size);

/* The newest attempt of the trial before this one, accepted or not, that has
 * 'file', or, if that is NULL, any file of its trainer; an empty file is none.
 * An attempt that failed before it logged anything has no files that count, and
 * neither has the one from which it went on; if one without files fails in the
 * same way, the files were not the cause, and all count again.
 *
 * Returns 0, or -1 if there is none.
 */
int attempt_with_files (const struct trial_attempt *a, const char *file, char *path, size_t size);

/* The same of what an attempt has left in its working folder: that folder. */
int attempt_with_work (const struct trial_attempt *a, char *path, size_t size);

/* A line if files of a newer attempt are passed over for that reason; returns
 * whether there is one.
 */
bool resume_note (const struct trial_attempt *a, char *line, size_t size);

/* Whether one folder has the file, or any file of its trainer. */
bool folder_has_files (const char *dir, const char *file);

/* Whether dl itself makes what has this name in an attempt's folder, but for
 * the folder of checkpoints.
 */
bool attempt_file_is_ours (const char *name);

/* Whether there is a row in an attempt's folder: its files may be there before
 * anything is logged.
 */
bool attempt_has_logged (const char *dir);

/* Call 'f' for each file and folder in 'dir', of an attempt or a trial, that
 * dl did not make.  Returns how many.
 */
int each_trainer_file (const char *dir, void (*f) (const char *dir, const char *name));

/* Add the paths of those in 'dir', of attempt_with_files() or a copy of it.
 * Returns -1 with errno.
 */
int list_trainer_files (const char *dir, char ***list);
