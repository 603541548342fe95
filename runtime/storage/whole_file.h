/* SPDX-License-Identifier: Apache-2.0 */
/* A small file that is complete once it has its name. */
#pragma once

#include <stddef.h>

/* Replace the file of that name, accessible to this user alone (0600,
 * regardless of umask(2)).  It is not synced: nobody needs it after a crash.
 */
int message_put (const char *path, const void *data, size_t n);

/* Read it; the caller frees the data.  Returns -1 with ENOENT if it does not
 * exist, EBADMSG if it is not such a file, EPERM if it belongs to another user
 * or is not a regular file.
 */
int message_get (const char *path, void **data, size_t *n);
