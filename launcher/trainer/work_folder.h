/* SPDX-License-Identifier: Apache-2.0 */
/* The working folder of an attempt, and what becomes of its files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sweep/attempt.h"

/* The working folder of an attempt stands beside the copy of the frozen code, so that '..' leads to
 * the same files.  Once the attempt has run for a while, 'work' in its folder is a link to it; when
 * it is over, 'work' is a folder with what its trainer wrote, if anything.  With WORK_SHARED, or
 * without frozen code, all attempts run in exp->dir.
 */

/* Set a->work to its path, or to "" if all attempts run in exp->dir. */
void work_folder_name (struct trial_attempt *a);

/* Create it, from the spare one if there is one. */
int work_folder_make (const struct trial_attempt *a, struct slurmdl_error *err);

/* Create the link 'work' in the attempt's folder. */
void work_folder_show (const struct trial_attempt *a);

/* Call this when nothing of the attempt runs any more.  If nothing was written and 'keep' is set,
 * the folder becomes the spare one.
 */
void work_folder_settle (const struct trial_attempt *a, bool keep);

/* The same for an earlier attempt, whose worker left it behind. */
void work_folder_settle_earlier (const struct trial_attempt *a, long number);

/* Make 'to' a working copy of the frozen code in 'from'.  Files named by code.exclude or .dlignore
 * there are symbolic links instead.
 */
int work_folder_copy (const struct experiment *e, const char *from, const char *to,
                      struct slurmdl_error *err);

/* Call this when nothing runs in such a copy any more.  Moves what was written there to the folder
 * 'work' in 'dir'.
 */
void work_folder_take (const char *from, const char *to, const char *dir);

/* Replace absolute paths of frozen scripts in the command 'text' with those in the working folder.
 * The caller frees the result.
 */
char *work_folder_command (const struct trial_attempt *a, const char *text);
