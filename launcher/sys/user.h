/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "runtime/base/error.h"

/* Name of the user, the number of one that has none; good until the next call.
 */
const char *user_name (void);

/* Whether it is this user's, and nobody else may write to it: a group that has
 * nobody else may.
 */
bool user_writes_alone (const struct stat *st);

/* The same of a folder that is closed to every group; -1 with errno, EPERM:
 * others may write to it.
 */
int user_folder_check (const char *path);

/* Whether a path is no symbolic link, or one that this user or root has made:
 * in a folder that others may write to theirs lead anywhere.
 */
bool user_may_follow (const char *path);

/* Whether it is neither this user's nor root's. */
bool user_is_of_others (const struct stat *st);

/* Open what a user has named, to write into it from its beginning.  Another
 * user's file would show him what is written, and his pipe would keep us:
 * NULL with EPERM, and ELOOP for his link.
 */
FILE *user_open_output (const char *path, struct slurmdl_error *err);

/* Who may give another file or folder the name of one of this user's in the
 * folder 'path': 0 nobody else; 1 a group, -1 everybody, each with 'err'.
 */
int user_names_check (const char *path, struct slurmdl_error *err);

/* TMPDIR, or /tmp where that is none, or others may exchange what is in it. */
const char *user_tmp (void);
