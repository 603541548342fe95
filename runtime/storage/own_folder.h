/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a name that others know, too: it is made, or it is one's own.
 */
#pragma once

#include <sys/types.h>

#include "runtime/slurmdl.h"

/* Make a folder with this mode (0700: umask(2) never adds to it), and those
 * above it that lack.  One that is there is taken only if it is a folder, no
 * link to one, and belongs to this user: EPERM, or ENOTDIR.
 */
int own_folder_make (const char *path, mode_t mode, struct slurmdl_error *err);
