/* SPDX-License-Identifier: Apache-2.0 */
/* Read small files. */
#ifndef LAUNCHER_SYS_SMALL_FILE_H
#define LAUNCHER_SYS_SMALL_FILE_H

#include <stddef.h>

#include "runtime/slurmdl.h"

/* Open a file that is known to be there; waits for a name that a network
 * file system does not show yet.  Returns -1 with errno.
 */
int file_open (const char *path, int flags);

/* Read a regular file of at most 'max' bytes into memory that the caller frees;
 * a NUL follows the '*len' bytes (len may be NULL).  A name that is known to
 * exist but that this host does not see yet is asked for again for a while.
 *
 * Returns NULL on failure with errno and 'err' set.
 */
char *file_read (const char *path,
                 size_t max,
                 size_t *len,
                 struct slurmdl_error *err);

#endif
