/* SPDX-License-Identifier: Apache-2.0 */
/* Link or copy files, depending on who owns them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/storage/origin.h"

/* Make 'to' a hard link to 'from', which must never change.  If the file system or the permissions
 * do not allow that, make an fsynced copy.  Another user's file is always copied, because its owner
 * could still write to it; the copy records that owner (runtime/storage/origin.h).
 * Returns 0, or -1 with errno.
 */
int file_take (const char *from, const char *to);

/* The same for a file whose content may run code.  Fails with EPERM unless the file belongs to
 * root, this user or 'owner' and nobody else may write to it; ANYBODY disables that check.  The
 * copy counts as this user's own.
 */
enum { ANYBODY = -1 };
int file_take_of (const char *from, const char *to, uid_t owner);

/* The same for a file that may change: always makes a copy. */
int file_copy_of (const char *from, const char *to, uid_t owner);

/* 'to', which must also be open for reading, is a copy of 'from' that the user requested by 'name'.
 * Record the owner of the data in the copy and print a line about it, unless the user trusts it
 * ('trust').  ORIGIN_MARKED: the data is another user's.  ORIGIN_FAILED: failed, with errno.
 */
enum origin_result file_keep_owner (int from, int to, const char *name, bool trust);

/* Print that line. */
void complain_owner (const char *name, uint32_t owner);
