/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a name that others know, too: it is made, or it is one's own.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"

/* Make a folder with this mode (0700: umask(2) never adds to it), and those
 * above it that lack.  One that is there is taken only if it is a folder, no
 * link to one, and belongs to this user: EPERM, or ENOTDIR.
 */
int own_folder_make (const char *path, mode_t mode, struct slurmdl_error *err);

/* The same, and open: 'path' leads to what is in it, whatever others give its
 * name to afterwards.  It is one of this process alone.
 */
struct own_folder {
    int fd;
    char path[32];
};

int own_folder_open (struct own_folder *f, const char *path, mode_t mode,
                     struct slurmdl_error *err);
void own_folder_close (struct own_folder *f);

/* Remove the files in it, itself by its name if it is then empty, and close. */
void own_folder_remove (struct own_folder *f, const char *path);
