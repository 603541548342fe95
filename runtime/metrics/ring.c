/* SPDX-License-Identifier: Apache-2.0 */
/* A queue with many writers and one reader. */
#include "runtime/metrics/ring.h"

#include <sys/mman.h>

/* Free memory in batches of this many rows. */
enum { GIVE_BACK = 4096 };

int ring_open (struct ring *r)
{
    size_t size = RING_SIZE * sizeof (struct row);
    void *p = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);

    if (p == MAP_FAILED)
        return -1;
    /* clearing a huge page would take as long as thousands of rows */
    madvise (p, size, MADV_NOHUGEPAGE);
    *r = (struct ring){ .rows = p };
    return 0;
}

void ring_close (struct ring *r)
{
    if (r->rows)
        munmap (r->rows, RING_SIZE * sizeof (struct row));
    r->rows = NULL;
}

static struct row *ring_row (const struct ring *r, unsigned long number)
{
    return &r->rows[number % RING_SIZE];
}

/* Laps count from 1, because fresh memory is 0. */
static uint32_t lap (unsigned long number)
{
    return (uint32_t)(number / RING_SIZE) + 1;
}

long ring_put (struct ring *r, const struct row *row)
{
    unsigned long t = atomic_load_explicit (&r->tail, memory_order_relaxed);
    struct row *to;

    do {
        unsigned long h = atomic_load_explicit (&r->head, memory_order_acquire);
        /* a stale 't' may be below 'h'; the exchange then reads it again */
        if ((long)(t - h) >= RING_SIZE)
            return -1;
    } while (!atomic_compare_exchange_weak (&r->tail, &t, t + 1));
    to = ring_row (r, t);
    to->step = row->step;
    to->time = row->time;
    to->value = row->value;
    to->name = row->name;
    __atomic_store_n (&to->crc, lap (t), __ATOMIC_RELEASE);
    return (long)t;
}

/* Clear the memory of slots before writers can use them again. */
static void give_back (struct ring *r)
{
    unsigned long h = atomic_load_explicit (&r->head, memory_order_relaxed);

    for (; r->taken - h >= GIVE_BACK; h += GIVE_BACK) {
        madvise (ring_row (r, h), GIVE_BACK * sizeof (struct row), MADV_DONTNEED);
        atomic_store_explicit (&r->head, h + GIVE_BACK, memory_order_release);
    }
}

size_t ring_take (struct ring *r, struct row *rows, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++, r->taken++) {
        const struct row *from = ring_row (r, r->taken);
        if (__atomic_load_n (&from->crc, __ATOMIC_ACQUIRE) != lap (r->taken))
            break;
        rows[i] = *from;
    }
    give_back (r);
    return i;
}
