/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps: the stacks of all ranks of a node, written to the folder. */
#pragma once

#include "launcher/debug/folder.h"
#include "launcher/debug/watcher.h"

/* Write the stacks of this node's ranks for a dump that was requested. */
void watcher_dump (struct watcher *w, long dump);

/* Request the next dump, take part in it and report the result.  Of several
 * watchers that find the same, one requests; the others find the request.
 * Returns -1 in the others, which are to wait for that.
 */
int watcher_request (struct watcher *w, enum debug_cause cause, const char *reason);
