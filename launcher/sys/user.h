/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process, and checks of file ownership. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "runtime/base/error.h"

/* The name of this user, or of another one, or the number if there is no name.  Valid until the
 * next call.
 */
const char *user_name (void);
const char *user_name_of (uid_t uid);

/* Whether a file belongs to this user and nobody else may write to it.  A group that has no other
 * member may.
 */
bool user_writes_alone (const struct stat *st);

/* Check the same for a folder, but allow no group to write to it.  Returns -1 with errno; EPERM
 * means that others may write to it.
 */
int user_folder_check (const char *path);

/* Whether a path is not a symbolic link, or is one that this user or root created.  In a folder
 * that others can write to, another user's link may lead anywhere.
 */
bool user_may_follow (const char *path);

/* Whether a file belongs to neither this user nor root. */
bool user_is_of_others (const struct stat *st);

/* Open a file that the user names and truncate it for writing.  Returns NULL with EPERM if it is
 * another user's file, which would disclose our output, or another user's pipe, which could block
 * us; and with ELOOP if it belongs to another user symbolic link.
 */
FILE *user_open_output (const char *path, struct slurmdl_error *err);

/* Find out who else can replace this user's files in the folder 'path'.  Sets 'err' unless nobody
 * can.
 */
enum name_writers { NAMES_OF_EVERYBODY = -1, NAMES_OF_NOBODY, NAMES_OF_GROUP };
enum name_writers user_names_check (const char *path, struct slurmdl_error *err);

/* TMPDIR, or /tmp if TMPDIR is unset, not a folder, or others could replace files in it. */
const char *user_tmp (void);
