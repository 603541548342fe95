/* SPDX-License-Identifier: Apache-2.0 */
/* Give a file that never changes another name, or copy it. */
#pragma once

#include <sys/types.h>

/* Where the file system and the permissions allow it, 'to' is a hard link, else
 * a copy that is synced.  The file of another user, who could still write to
 * it, is copied.  Returns -1 with errno.
 */
int file_take (const char *from, const char *to);

/* The same for a file whose content may run code: one of root's, this user's or
 * 'owner', to which nobody else may write, or ANYBODY's.  Else EPERM.
 */
enum { ANYBODY = -1 };
int file_take_of (const char *from, const char *to, uid_t owner);
