/* SPDX-License-Identifier: Apache-2.0 */
/* Disk space that an experiment reserves, so that it can record results when the disk is full. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

/* Whether an errno means that the disk or the quota is full. */
bool disk_is_full (int e);

/* Create the file 'reserve' of an experiment unless it exists.  Returns 0, or -1 with 'err'. */
int disk_reserve_make (const char *dir, struct slurmdl_error *err);

/* Free the reserved space.  Returns -1 if there is none. */
int disk_reserve_spend (const char *dir);

/* Whether the reserve has been spent, so that workers wait for space; and the message to print. */
bool disk_reserve_is_spent (const char *dir);
#define DISK_RESERVE_SPENT "the disk or the quota is full: workers wait for space"

/* Try to write as many bytes to 'dir' as a reserve has.  Returns the errno if the disk is full, and
 * 0 on success or after any other error.
 */
int disk_error (const char *dir);
