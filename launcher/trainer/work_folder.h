/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which an attempt runs, and where its files go. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/sweep/attempt.h"

/* The working folder of an attempt stands beside the copy of the frozen code,
 * so that '..' leads to the same files as there; once it has run for a
 * while, 'work' in the attempt's folder is a link to it.  When the attempt is
 * over, 'work' is a folder with what its trainer wrote, if anything.  With
 * WORK_SHARED, or where no code is frozen, all attempts run in exp->dir.
 */

/* Name it: a->work, "" if all run in exp->dir. */
void work_folder_name (struct trial_attempt *a);

/* Make it, of the spare one if there is one. */
int work_folder_make (const struct trial_attempt *a, struct slurmdl_error *err);

/* Show it in the attempt's folder. */
void work_folder_show (const struct trial_attempt *a);

/* Nothing of the attempt runs any more.  If nothing was written and 'keep' is
 * set, it becomes the spare one.
 */
void work_folder_settle (const struct trial_attempt *a, bool keep);

/* The same of an attempt before it, which its worker has left. */
void work_folder_settle_earlier (const struct trial_attempt *a, long number);

/* Make 'to' a working copy of the frozen code in 'from': what .dlignore there
 * and code.exclude name is linked.
 */
int work_folder_copy (const struct experiment *e, const char *from, const char *to,
                      struct slurmdl_error *err);

/* Nothing runs in such a copy any more: what was written there becomes the
 * folder 'work' in 'dir'.
 */
void work_folder_take (const char *from, const char *to, const char *dir);

/* What the trainer calls 'text', a command: scripts that were frozen and are
 * named by their whole path are those of the working folder.  The caller frees
 * it.
 */
char *work_folder_command (const struct trial_attempt *a, const char *text);
