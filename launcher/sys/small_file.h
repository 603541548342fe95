/* SPDX-License-Identifier: Apache-2.0 */
/* Read small files. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/error.h"

/* Open a file of an experiment that is known to be there, as inside_open() does
 * (runtime/storage/inside.h); waits for a name that a network file system does
 * not show yet.  Returns -1 with errno.
 */
int file_open (const char *path, int flags);

/* Read a regular file of an experiment, of at most 'max' bytes, into memory
 * that the caller frees; a NUL follows the '*len' bytes (len may be NULL).  A
 * name that is known to exist but that this host does not see yet is asked for
 * again for a while.
 *
 * Returns NULL on failure with errno and 'err' set: EBADMSG if it is a
 * symbolic link, no regular file, or larger.
 */
char *file_read (const char *path, size_t max, size_t *len, struct slurmdl_error *err);

/* The same without waiting; 'owner' (if given) is the file's. */
char *file_read_now (const char *path, size_t max, size_t *len, uid_t *owner,
                     struct slurmdl_error *err);

/* The same for a file that the user names, be it a link; EINVAL or EFBIG. */
char *file_read_named (const char *path, size_t max, size_t *len, struct slurmdl_error *err);

/* The first 'max' bytes of a regular file that the user or the system names,
 * be it a link, or one of proc(5), whose sizes are 0; a NUL follows.  The
 * caller frees them.  Returns NULL with errno.
 */
char *file_text (const char *path, size_t max);

/* The last 'size' bytes of the file behind a descriptor, which is closed, with
 * a 0 behind them.  Returns how many; 0 also of fd -1, and on failure.
 */
size_t file_tail (int fd, char *buf, size_t size);
