/* SPDX-License-Identifier: Apache-2.0 */
/* Queue names, scalars and records for the writer thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/base/utf8.h"
#include "runtime/metrics/metrics.h"

enum {
    URGE = RING_SIZE / 16, /* wake the writer after this many rows */
    PATIENCE = 1000,       /* ms that a stuck disk may hold up a call */
};

/* A fork changes it for the whole process, so it is global. */
static atomic_uint generation;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

static void count_fork (void)
{
    atomic_fetch_add_explicit (&generation, 1, memory_order_relaxed);
}

static void watch_metrics_forks (void)
{
    pthread_atfork (NULL, NULL, count_fork);
}

void metrics_adopt (struct slurmdl_metrics *m)
{
    pthread_once (&watching, watch_metrics_forks);
    m->generation = atomic_load (&generation);
}

bool metrics_ours (const struct slurmdl_metrics *m)
{
    return m->generation == atomic_load_explicit (&generation, memory_order_relaxed);
}

int metrics_not_ours (struct slurmdl_error *err)
{
    errno = EPERM;
    return errorf (err, "metrics: this is a child of the process that opened them");
}

/* Use the time of the kernel's last tick, a few ms old.  Reading the exact clock
 * would cost as much as everything else.
 */
static double metrics_time (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME_COARSE, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint32_t hash_name (const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h % HASH_SIZE;
}

/* Advance '*at' to the slot of the name, or to a free one. */
static struct slurmdl_metric *find_name (const struct slurmdl_metrics *m, const char *name,
                                         uint32_t *at)
{
    unsigned i;

    for (; (i = atomic_load_explicit (&m->hash[*at], memory_order_acquire));
         *at = (*at + 1) % HASH_SIZE)
        if (!strcmp (m->names[i - 1], name))
            return &m->metrics[i - 1];
    return NULL;
}

/* The caller holds the lock. */
static struct slurmdl_metric *intern_name (struct slurmdl_metrics *m, const char *name, uint32_t at)
{
    unsigned n = atomic_load (&m->nnames);
    struct retention *r = m->retention;

    if (n == NAMES_MAX) {
        errno = ENOSPC;
        return NULL;
    }
    memcpy (m->names[n], name, strlen (name) + 1);
    m->metrics[n] =
        (struct slurmdl_metric){ m, r && r->metric && !strcmp (r->metric, name) ? r : NULL, n };
    atomic_store (&m->nnames, n + 1);
    atomic_store_explicit (&m->hash[at], (uint16_t)(n + 1), memory_order_release);
    return &m->metrics[n];
}

struct slurmdl_metric *metrics_name (struct slurmdl_metrics *m, const char *name)
{
    struct slurmdl_metric *found;
    uint32_t at;

    if (!name || !*name || strnlen (name, NAME_SIZE) == NAME_SIZE) {
        errno = EINVAL;
        return NULL;
    }
    at = hash_name (name);
    if ((found = find_name (m, name, &at)))
        return found;
    if (!is_utf8 (name)) {
        errno = EINVAL;
        return NULL;
    }
    if (!metrics_ours (m)) { /* the parent may have held the lock at the fork */
        metrics_not_ours (NULL);
        return NULL;
    }
    pthread_mutex_lock (&m->lock);
    if (!(found = find_name (m, name, &at)))
        found = intern_name (m, name, at);
    pthread_mutex_unlock (&m->lock);
    return found;
}

void metrics_lose (struct slurmdl_metrics *m, long n)
{
    if (atomic_fetch_add (&m->lost, n) == 0)
        atomic_fetch_add (&m->troubles, 1);
    errno = ENOSPC;
}

void metrics_wake (struct slurmdl_metrics *m)
{
    atomic_fetch_add (&m->wakeups, 1);
    futex_wake (&m->wakeups);
}

/* The row is in the queue before we read 'idle', and the writer sets 'idle' before
 * it looks into the queue, so at least one of the two notices the other.
 */
static void wake_writer (struct slurmdl_metrics *m, long number)
{
    if (number % URGE == 0 || (atomic_load (&m->idle) && atomic_exchange (&m->idle, 0)))
        metrics_wake (m);
}

/* The ring is full.  Wait as long as the disk makes progress.  After a disk has
 * made none for PATIENCE, do not wait again until it does.
 */
static long wait_for_room (struct slurmdl_metrics *m, const struct row *row)
{
    unsigned long head = ring_freed (&m->ring);
    struct timespec begin;
    long number = -1;

    clock_gettime (CLOCK_MONOTONIC, &begin);
    atomic_fetch_add (&m->waiters, 1);
    while (!atomic_load (&m->error) && atomic_load (&m->stalled) != head) {
        unsigned room = atomic_load (&m->room);
        if ((number = ring_put (&m->ring, row)) >= 0)
            break;
        futex_wait (&m->room, room, 1);
        if (ring_freed (&m->ring) != head) {
            head = ring_freed (&m->ring);
            clock_gettime (CLOCK_MONOTONIC, &begin);
        } else if (elapsed (&begin) >= PATIENCE)
            atomic_store (&m->stalled, head);
    }
    atomic_fetch_sub (&m->waiters, 1);
    return number;
}

static int put_row (const struct slurmdl_metric *metric, uint32_t flags, int64_t step, double value)
{
    struct slurmdl_metrics *m = metric->metrics;
    struct row row = {
        .step = step, .time = metrics_time (), .value = value, .name = metric->index | flags
    };
    long number;

    if (!metrics_ours (m))
        return metrics_not_ours (NULL);
    if ((number = ring_put (&m->ring, &row)) < 0 && (number = wait_for_room (m, &row)) < 0) {
        metrics_lose (m, 1);
        return -1;
    }
    wake_writer (m, number);
    return 0;
}

int slurmdl_log_to (struct slurmdl_metric *metric, int64_t step, double value)
{
    if (!metric) {
        errno = EINVAL;
        return -1;
    }
    if (!metric->metrics)
        return 0;
    if (metric->scored)
        retain_score (metric->scored, metric->scored->metric, step, value);
    return put_row (metric, 0, step, value);
}

int metrics_epoch (struct slurmdl_metrics *m, double epoch)
{
    const struct slurmdl_metric *metric = metrics_name (m, "epoch");

    return metric ? put_row (metric, STEP_OF_LAST, 0, epoch) : -1;
}

int slurmdl_metrics_log (struct slurmdl_metrics *m, const char *name, int64_t step, double value)
{
    struct slurmdl_metric *metric;

    if (!metrics_ours (m))
        return metrics_not_ours (NULL);
    if (!(metric = metrics_name (m, name))) {
        if (errno == ENOSPC)
            metrics_lose (m, 1);
        return -1;
    }
    return slurmdl_log_to (metric, step, value);
}

struct item *item_create (struct slurmdl_metrics *m, const char *name, int64_t step,
                          enum slurmdl_kind kind, size_t size)
{
    const struct slurmdl_metric *metric;
    struct item *item;

    if (!metrics_ours (m)) {
        metrics_not_ours (NULL);
        return NULL;
    }
    if (size > RECORD_MAX) {
        errno = EINVAL;
        return NULL;
    }
    metric = metrics_name (m, name);
    item = metric && atomic_load (&m->waiting) + size <= RECORDS_MAX
               ? malloc (sizeof (*item) + size)
               : NULL;
    if (!item) {
        if (metric || errno == ENOSPC)
            metrics_lose (m, 1);
        return NULL;
    }
    item->record = (struct record){
        .step = step, .time = metrics_time (), .bytes = size, .name = metric->index, .kind = kind
    };
    return item;
}

void item_put (struct slurmdl_metrics *m, struct item *item)
{
    atomic_fetch_add (&m->waiting, item_size (item));
    item->next = atomic_load (&m->items);
    while (!atomic_compare_exchange_weak (&m->items, &item->next, item))
        ;
    if (atomic_load (&m->idle) && atomic_exchange (&m->idle, 0))
        metrics_wake (m);
}
