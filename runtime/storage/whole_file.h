/* SPDX-License-Identifier: Apache-2.0 */
/* A small file that is whole when it has its name. */
#pragma once

#include <stddef.h>

/* Put it in the place of what has the name, for this user alone (0600, whatever
 * umask(2) says).  Nobody needs it after a crash, so it is not synced.
 */
int message_put (const char *path, const void *data, size_t n);

/* The caller frees it.  -1 with ENOENT if it is not there, EBADMSG if it is no
 * message, EPERM if another user has put it, or it is no file.
 */
int message_get (const char *path, void **data, size_t *n);
