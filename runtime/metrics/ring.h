/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on their way from any thread to the one that writes them. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "runtime/metrics/file.h"

/* A bounded queue without locks.  A place is taken by moving 'tail'; the row
 * in it is there when its word 'crc' has the number of the lap.  Memory is
 * used for the rows that wait only.
 */
enum { RING_SIZE = 1 << 20, CACHE_LINE = 64 };

struct ring {
    _Alignas(CACHE_LINE) atomic_ulong tail; /* places taken, ever */
    _Alignas(CACHE_LINE) atomic_ulong head; /* places free again, ever */
    unsigned long taken;                    /* the reader's: rows read, ever */
    struct row *rows;
};

/* 0, or -1 with ENOMEM */
int ring_open (struct ring *r);
void ring_close (struct ring *r);

/* Any thread; row->crc is not used.  Returns the row's number, from 0 on, or
 * -1 if there is no room.
 */
long ring_put (struct ring *r, const struct row *row);

/* The reader: up to 'n' rows, oldest first. */
size_t ring_take (struct ring *r, struct row *rows, size_t n);

/* Places that are free again so far. */
static inline unsigned long ring_freed (const struct ring *r)
{
    return atomic_load (&r->head);
}

/* Rows put so far, also those whose thread is not done with it yet. */
static inline unsigned long ring_count (const struct ring *r)
{
    return atomic_load (&r->tail);
}
