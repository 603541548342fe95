/* SPDX-License-Identifier: Apache-2.0 */
/* Remove a folder and everything in it. */
#pragma once

/* Removes symbolic links without following them, and leaves mounted file systems alone (EXDEV).
 * Returns 0, or -1 with errno.
 */
int remove_tree (const char *path);
