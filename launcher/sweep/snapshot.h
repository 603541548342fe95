/* SPDX-License-Identifier: Apache-2.0 */
/* Cheap copies of a sweep's searcher: only pages that change take memory. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Make a copy-on-write snapshot of the searcher.  Changes to the snapshot do not affect the sweep,
 * but an event that is applied to the sweep may show up in the snapshot.  End it before you read or
 * publish events, because EVENT_CONTINUE replaces the searcher.
 */
struct searcher *sweep_snapshot (struct sweep *s);
void sweep_end_snapshot (const struct sweep *s, struct searcher *snapshot);

/* Move the sweep's searcher from the shared mapping to the heap, so that searcher_extend() may free
 * it.
 */
void sweep_unshare_searcher (struct sweep *s);
void sweep_destroy_searcher (struct sweep *s);
