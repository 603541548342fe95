/* SPDX-License-Identifier: Apache-2.0 */
/* Open files in a folder that others may write to. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "runtime/base/error.h"

/* The user chooses the path of an experiment, which is canonical once it was
 * opened (realpath(3)).  Other members of a group may have put there what is
 * inside: no component of a path given here may be a symbolic link.
 */

/* Open a regular file, or with O_DIRECTORY a folder; never waits for a pipe.
 * O_CLOEXEC is implied.  A link that link_if_absent() made because hard links
 * are refused, to a hidden file of the same folder, is followed if nothing is
 * created.  'st' (may be NULL) is filled in.
 *
 * Returns a descriptor, or -1 with errno: ELOOP for a symbolic link, EINVAL for
 * anything but a regular file, or as openat(2).
 */
int inside_open (const char *path, int flags, mode_t mode, struct stat *st);

/* The same for one name in an open folder. */
int inside_open_at (int folder, const char *name, int flags, mode_t mode, struct stat *st);

/* Open the folder that contains 'path', also for fsync(); 'name' (may be NULL)
 * is set to the last component, a part of 'path'.
 */
int inside_parent (const char *path, const char **name);

/* Close a folder (-1: none), keep errno, and return 'rv'. */
int inside_close (int folder, int rv);

/* Whether a name without its folder comes from link_tmp_name(). */
bool inside_is_hidden (const char *name);

/* Whether that user or root owns a file, and nobody else may write to it. */
bool inside_is_of (const struct stat *st, uid_t owner);

/* unlinkat(2) without a symbolic link on the way. */
int inside_unlink (const char *path, int flags);

/* Make a folder: 0, or -1 with errno, EEXIST if something has the name. */
int inside_mkdir (const char *path, mode_t mode);

/* ---- where a path may be inside, or be the user's own ---- */

/* From now on others may write to 'dir', absolute and canonical, until
 * inside_leave() was called as often.  Returns -1 if out of memory.
 */
int inside_enter (const char *dir);
void inside_leave (const char *dir);

/* Whether a path is in such a folder. */
bool inside_has (const char *path);

/* inside_open() for a path in such a folder.  For any other path, symbolic
 * links are followed; it must be a regular file or a folder as well.
 */
int inside_open_any (const char *path, int flags, mode_t mode, struct stat *st);

int inside_unlink_any (const char *path, int flags);

/* Text for an errno of these functions. */
const char *inside_error (int e);

/* Create a folder with this mode (0700: umask(2) never adds to it), and missing
 * parents.  An existing one is accepted only if it is a folder, not a link, and
 * belongs to this user: EPERM, or ENOTDIR.
 */
int own_folder_make (const char *path, mode_t mode, struct slurmdl_error *err);

/* The same, and open: 'path' leads to its contents whatever others do to its
 * name afterwards.  It belongs to this process alone.
 */
struct own_folder {
    int fd;
    char path[32];
};

int own_folder_open (struct own_folder *f, const char *path, mode_t mode,
                     struct slurmdl_error *err);
void own_folder_close (struct own_folder *f);

/* Remove its files, remove it by its name if it is then empty, and close it. */
void own_folder_remove (struct own_folder *f, const char *path);
