/* SPDX-License-Identifier: Apache-2.0 */
/* The working folder of an attempt, and where its files go. */
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

/* Make 'to' a working copy of the frozen code in 'from'; what .dlignore there and code.exclude name
 * is linked.
 */
int work_folder_copy (const struct experiment *e, const char *from, const char *to,
                      struct slurmdl_error *err);

/* When nothing runs in such a copy any more: move what was written there to the folder 'work' in
 * 'dir'.
 */
void work_folder_take (const char *from, const char *to, const char *dir);

/* The command 'text' with absolute paths of frozen scripts replaced by those in the working folder.
 * The caller frees it.
 */
char *work_folder_command (const struct trial_attempt *a, const char *text);
