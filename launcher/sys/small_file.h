/* SPDX-License-Identifier: Apache-2.0 */
/* Read small files. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/error.h"

/* Write 'name' if it is absolute, else "DIR/NAME".  Returns the length, as snprintf() does. */
int path_from (char path[PATH_MAX], const char *dir, const char *name);

/* Write "FOLDER/NAME", or only one of them if the other is "".  Returns the length, as snprintf()
 * does.
 */
int path_join (char path[PATH_MAX], const char *folder, const char *name);

/* Open a file of an experiment that is known to exist, as inside_open() does
 * (runtime/storage/inside.h).  If a network file system does not show the name yet, retry for a
 * while.  Returns a descriptor, or -1 with errno.
 */
int file_open (const char *path, int flags);

/* Read a regular file of an experiment, of at most 'max' bytes, into memory that the caller frees.
 * A NUL follows the '*len' bytes; 'len' may be NULL.  Retries for a while if this host does not see
 * the name yet, because the caller knows that the file exists.
 *
 * Returns NULL on failure with errno and 'err'.  EBADMSG: the file is a symbolic link, not a
 * regular file, or larger than 'max'.
 */
char *file_read (const char *path, size_t max, size_t *len, struct slurmdl_error *err);

/* The same without retries.  'owner', if not NULL, gets the owner of the file. */
char *file_read_now (const char *path, size_t max, size_t *len, uid_t *owner,
                     struct slurmdl_error *err);

/* The same for a file that the user names, which may be a symbolic link.  Fails with EINVAL if it
 * is not a regular file, or EFBIG if it is too large.
 */
char *file_read_named (const char *path, size_t max, size_t *len, struct slurmdl_error *err);

/* Read the first 'max' bytes of a regular file that the user or the system names.  It may be a
 * symbolic link, or a file of proc(5), whose size is 0.  A NUL follows the text, which the caller
 * frees.  Returns NULL with errno on failure.
 */
char *file_text (const char *path, size_t max);

/* Read the end of the file 'fd' into 'buf', NUL-terminated, and close 'fd'.  Returns the number of
 * bytes, or 0 on failure or if 'fd' is -1.
 */
size_t file_tail (int fd, char *buf, size_t size);
