/* SPDX-License-Identifier: Apache-2.0 */
/* Remove a folder with all that is in it. */
#pragma once

/* Links are removed, not followed, and what is mounted there stays (EXDEV).
 * Returns 0, or -1 with errno.
 */
int remove_tree (const char *path);
