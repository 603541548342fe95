/* SPDX-License-Identifier: Apache-2.0 */
/* Create and replace files atomically, also between nodes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/storage/link.h"

/* No component of a path may be a symbolic link (runtime/storage/inside.h).  If a group shares a
 * folder, its members may remove and create files, but nobody modifies another user's file: every
 * file was written by its owner.
 */

/* Create 'path' with 'len' bytes unless it exists: write, fsync and close a temporary file in the
 * same folder, then name it by link_if_absent() (runtime/storage/link.h).
 *
 * Returns LINKED if this call created the file, LINK_TAKEN if another process did, or LINK_FAILED
 * with errno and 'err'.  After a failure 'path' is not ours.
 */
enum link_result publish_if_absent (const char *path, const char *buf, size_t len,
                                    struct slurmdl_error *err);

/* Work that must be complete before the file appears.  begin() is called when the file is written,
 * so that the disk does both at once; end() is called before the file gets its name.  If end()
 * fails (-1 with errno and 'err'), the file does not appear.
 */
struct publish_after {
    void (*begin) (void *arg);
    int (*end) (void *arg, struct slurmdl_error *err);
    void *arg;
};

/* publish_if_absent() in an open folder, which the caller must fsync.  'folder' must be the folder
 * of 'path', which is for messages.  'after' may be NULL.
 */
enum link_result publish_unsynced_at (int folder, const char *path, const char *buf, size_t len,
                                      const struct publish_after *after, struct slurmdl_error *err);

/* Replace 'path' atomically: readers see either the old file or the new one.  Nobody else may write
 * to it.
 */
int publish_replace (const char *path, const char *buf, size_t len, struct slurmdl_error *err);

/* The same for a file that the user names, following the user's own symbolic links.
 * publish_output_path() writes to 'file' the path that would be replaced; it returns false for a
 * device or a pipe, which publish_output() writes to directly.
 */
bool publish_output_path (const char *path, char *file, size_t size);
int publish_output (const char *path, const char *buf, size_t len, struct slurmdl_error *err);

/* Create a folder unless it exists.  Returns 0, or -1 with errno and 'err'. */
int folder_create (const char *path, struct slurmdl_error *err);
