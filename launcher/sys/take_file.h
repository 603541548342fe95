/* SPDX-License-Identifier: Apache-2.0 */
/* Give a file that never changes another name, or copy it. */
#ifndef LAUNCHER_SYS_TAKE_FILE_H
#define LAUNCHER_SYS_TAKE_FILE_H

#include <stdbool.h>

/* Where the file system and the permissions allow it, 'to' is a hard link, else
 * a copy that is synced.  With 'own' the file of another user, who could still
 * write to it, is copied.  Returns -1 with errno.
 */
int file_take (const char *from, const char *to, bool own);

#endif
