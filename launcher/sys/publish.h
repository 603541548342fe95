/* SPDX-License-Identifier: Apache-2.0 */
/* Change shared state: create a complete file under a name not yet taken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

/* No component of a path may be a symbolic link (runtime/storage/inside.h).
 * Where a group shares a folder, its members may remove files and make new
 * ones, but nobody changes a file of another: its owner has written it.
 */

/* Put 'len' bytes under 'path' if no such file exists: a temporary file in
 * the same folder is written, synced and closed, then gets the name by
 * link_if_absent() (runtime/storage/link.h).
 *
 * Returns 0 if the file is now there and is ours, 1 if somebody else's is,
 * -1 on failure with errno and 'err' set, and then 'path' is not ours.
 */
int publish_if_absent (const char *path, const char *buf, size_t len, struct slurmdl_error *err);

/* What a file depends on: begun when the file is written, so that the disk does
 * both at once, and ended before it gets its name, which it does not get if
 * that fails (-1 with errno and 'err').
 */
struct publish_after {
    void (*begin) (void *arg);
    int (*end) (void *arg, struct slurmdl_error *err);
    void *arg;
};

/* publish_if_absent() into an open folder, which is left to be synced (and is
 * what 'path' says, for messages); 'after' may be NULL.
 */
int publish_unsynced_at (int folder, const char *path, const char *buf, size_t len,
                         const struct publish_after *after, struct slurmdl_error *err);

/* Put them under 'path' in place of what has the name, which nobody sees in
 * part: the old file or the new one is there.  Nobody else may write to it.
 */
int publish_replace (const char *path, const char *buf, size_t len, struct slurmdl_error *err);

/* The same of a file that the user names, where symbolic links of his own are
 * followed: 'file' is what is replaced.  A device or a pipe (false) is written
 * into.
 */
bool publish_output_path (const char *path, char *file, size_t size);
int publish_output (const char *path, const char *buf, size_t len, struct slurmdl_error *err);

/* Create a folder; one that exists is fine.  Returns 0, or -1 with errno. */
int folder_create (const char *path, struct slurmdl_error *err);
