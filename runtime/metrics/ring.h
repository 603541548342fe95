/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of rows from any thread to the writer. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "runtime/metrics/file.h"

/* The queue is bounded and has no locks.  A thread claims a place by advancing 'tail'; the row is
 * complete when its word 'crc' contains the number of the lap.  Only queued rows use memory.
 */
enum { RING_SIZE = 1 << 20, CACHE_LINE = 64 };

struct ring {
    _Alignas(CACHE_LINE) atomic_ulong tail; /* places claimed since the start */
    _Alignas(CACHE_LINE) atomic_ulong head; /* places freed since the start */
    unsigned long taken;                    /* the reader's: rows read since the start */
    struct row *rows;
};

/* Returns 0, or -1 with ENOMEM. */
int ring_open (struct ring *r);
void ring_close (struct ring *r);

/* Add a row, whose 'crc' is ignored; any thread may call this.  Returns the number of the row (from
 * 0), or -1 if there is no room.
 */
long ring_put (struct ring *r, const struct row *row);

/* For the reader: remove up to 'n' rows, oldest first. */
size_t ring_take (struct ring *r, struct row *rows, size_t n);

/* Number of places freed so far. */
static inline unsigned long ring_freed (const struct ring *r)
{
    return atomic_load (&r->head);
}

/* Number of rows added so far, including those that are not complete yet. */
static inline unsigned long ring_count (const struct ring *r)
{
    return atomic_load (&r->tail);
}
