/* SPDX-License-Identifier: Apache-2.0 */
/* The folders in which a trial's files outlive an attempt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sweep/attempt.h"

/* {trial_dir}: the folder that all attempts of the trial share. */
void trial_dir (const struct trial_attempt *a, char *path, size_t size);

/* The newest attempt of the trial before this one, accepted or not, that has
 * 'file', or, if that is NULL, any file of its trainer.  Returns 0, or -1 if
 * there is none.
 */
int attempt_with_files (const struct trial_attempt *a,
                        const char *file,
                        char *path,
                        size_t size);

/* The same of one folder. */
bool folder_has_files (const char *dir, const char *file);

/* Call 'f' for each file and folder in 'dir', of an attempt or a trial, that
 * dl did not make.  Returns how many.
 */
int each_trainer_file (const char *dir,
                       void (*f) (const char *dir, const char *name));
