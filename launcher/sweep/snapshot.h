/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a sweep's searcher that cost no more than what changes in them. */
#pragma once

#include "launcher/sweep/sweep.h"

/* A copy on write, which goes on independently; an event that is applied to the
 * sweep meanwhile may show in it.  The caller ends it before events are read or
 * published: "continue" makes another searcher.
 */
struct searcher *sweep_snapshot (struct sweep *s);
void sweep_end_snapshot (const struct sweep *s, struct searcher *snapshot);

/* Move the sweep's searcher to where searcher_extend() may free it. */
void sweep_unshare_searcher (struct sweep *s);
void sweep_destroy_searcher (struct sweep *s);
