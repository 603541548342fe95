/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process. */
#ifndef LAUNCHER_SYS_USER_H
#define LAUNCHER_SYS_USER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

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

#endif
