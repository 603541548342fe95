/* SPDX-License-Identifier: Apache-2.0 */
/* Give a file that never changes another name, or copy it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the file system and the permissions allow it, 'to' is a hard link, else
 * a copy that is synced.  The file of another user, who could still write to
 * it, is copied, and the copy says whose it was (runtime/storage/origin.h).
 * Returns -1 with errno.
 */
int file_take (const char *from, const char *to);

/* The same for a file whose content may run code: one of root's, this user's or
 * 'owner', to which nobody else may write, or ANYBODY's.  Else EPERM.  The copy
 * counts as this user's own.
 */
enum { ANYBODY = -1 };
int file_take_of (const char *from, const char *to, uid_t owner);

/* The same of a file that may change: always a copy. */
int file_copy_of (const char *from, const char *to, uid_t owner);

/* 'to', open for reading too, is a copy of 'from' that the user has asked for
 * under 'name': it keeps whose data it has, and a line says so, unless he takes
 * them for his own.  1: it has another user's data, 0: it has not, -1 with
 * errno.
 */
int file_keep_owner (int from, int to, const char *name, bool trust);

/* The line. */
void say_owner (const char *name, uint32_t owner);
