/* SPDX-License-Identifier: Apache-2.0 */
/* Give a finished file its name, if no other file has it. */
#pragma once

#include <stddef.h>

struct slurmdl_error;

/* A name in the folder of 'path' that no other process uses. */
void link_tmp_name (char *buf, size_t size, const char *path);

/* Give the synced file 'tmp', in the same folder, the name 'path', and sync
 * the folder.  Correct without locks, and after a lost reply of a network
 * file system (link(2), BUGS).  Where hard links are refused, 'path' becomes
 * a symbolic link to 'tmp'.
 *
 * LINKED: the name is ours, and 'tmp' is used up.  LINK_TAKEN: another file has
 * it; LINK_FAILED: errno says why; in both cases 'tmp' is still there.
 */
enum link_result { LINK_FAILED = -1, LINKED, LINK_TAKEN };
enum link_result link_if_absent (const char *tmp, const char *path);

/* The same for two names in an open folder, which the caller syncs. */
enum link_result link_unsynced_at (int folder, const char *tmp, const char *name);

/* As link_replace(), for two names in an open folder, which is synced. */
int link_replace_at (int folder, const char *tmp, const char *name);

/* The same, replacing a file of this process's own that has the name.  Returns
 * 0, or -1 with errno.
 */
int link_replace (const char *tmp, const char *path);

/* Whether a file that a user names may be replaced: 0 if it is a regular one,
 * or none; else -1 with EINVAL: a device or a pipe would give way to a file.
 */
int link_may_replace (const char *path, struct slurmdl_error *err);

/* fsync() of a folder, where that can be done. */
int link_sync_folder (int folder);
