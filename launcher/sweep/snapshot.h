/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a sweep's searcher that cost no more than what changes in them. */
#pragma once

#include "launcher/sweep/sweep.h"

/* A copy on write, which goes on independently; an event that is applied to the
 * sweep meanwhile may show in it.  The caller ends it before events are read or
 * published: "continue" makes another searcher.  Returns NULL with errno
 * ENOMEM.
 */
struct searcher *sweep_snapshot (struct sweep *s);
void sweep_end_snapshot (const struct sweep *s, struct searcher *snapshot);

/* Have the sweep's searcher where searcher_extend() may free it.  Returns -1
 * with errno ENOMEM; it is then as it was.
 */
int sweep_unshare_searcher (struct sweep *s);
void sweep_destroy_searcher (struct sweep *s);
