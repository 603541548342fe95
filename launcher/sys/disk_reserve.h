/* SPDX-License-Identifier: Apache-2.0 */
/* Space that an experiment keeps for its results when the disk is full. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

/* Whether an errno means that a disk or a quota is full. */
bool disk_is_full (int e);

/* Make the file 'reserve' of an experiment, if it is not there. */
int disk_reserve_make (const char *dir, struct slurmdl_error *err);

/* Give its space back.  Returns -1 if there was none. */
int disk_reserve_spend (const char *dir);

/* Whether it was spent: workers wait for space; and the message about it. */
bool disk_reserve_is_spent (const char *dir);
#define DISK_RESERVE_SPENT "the disk or the quota is full: workers wait for space"

/* Try to write to 'dir' as much as a reserve has.  Returns 0, or the errno
 * of a full disk; all other errors are 0, too.
 */
int disk_error (const char *dir);
