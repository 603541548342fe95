/* SPDX-License-Identifier: Apache-2.0 */
/* The writer thread. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/futex.h"
#include "runtime/base/thread.h"
#include "runtime/metrics/metrics.h"

enum { BATCH_TIME = 100, SYNC_EVERY = 5000, AGAIN = 1000, AGAIN_MOST = 16000 };

/* Up to SYNC_HERE bytes, this thread syncs itself.  From SYNC_AT bytes on, a sync
 * does not wait for its turn.
 */
enum { SYNC_HERE = 4 << 20, SYNC_AT = 64 << 20 };

static bool hurried (const struct slurmdl_metrics *m)
{
    return atomic_load (&m->closing) || atomic_load (&m->asked) != atomic_load (&m->answered);
}

static bool has_work (const struct slurmdl_metrics *m)
{
    return m->nrows > 0 || m->pending || ring_count (&m->ring) != m->ring.taken
           || atomic_load (&m->items) || hurried (m) || metrics_file_is_done (&m->file);
}

/* Wait until there is work, or it is time to sync. */
static void wait_for_work (struct slurmdl_metrics *m)
{
    for (;;) {
        unsigned wakeups = atomic_load (&m->wakeups);
        long ms = m->file.dirty ? SYNC_EVERY - elapsed (&m->synced) : -1;
        atomic_store (&m->idle, 1);
        if (has_work (m) || (m->file.dirty && ms <= 0))
            break;
        futex_wait (&m->wakeups, wakeups, ms);
    }
    atomic_store (&m->idle, 0);
}

/* Wait a while for more work.  The wake-up for the work already known may arrive
 * only now.
 */
static void wait_for_more (struct slurmdl_metrics *m)
{
    unsigned wakeups = atomic_load (&m->wakeups);
    bool much = ring_count (&m->ring) - m->ring.taken >= BATCH;
    long most = m->pause ? m->pause : BATCH_TIME;
    struct timespec begin;
    long left;

    if (hurried (m) || (much && !m->pause))
        return;
    clock_gettime (CLOCK_MONOTONIC, &begin);
    while (atomic_load (&m->wakeups) == wakeups && (left = most - elapsed (&begin)) > 0)
        futex_wait (&m->wakeups, wakeups, left);
}

static int write_names (struct slurmdl_metrics *m)
{
    struct metrics_file *j = &m->file;
    unsigned n = atomic_load (&m->nnames);

    if (n <= j->names.n)
        return 0;
    return metrics_file_add_names (j, (const char (*)[NAME_SIZE])m->names + j->names.n,
                                   n - j->names.n);
}

static void recorder_drain (struct slurmdl_metrics *m)
{
    m->nrows = ring_take (&m->ring, m->rows, BATCH);
    for (size_t i = 0; i < m->nrows; i++) {
        struct row *row = &m->rows[i];
        if (row->name & STEP_OF_LAST) {
            row->name &= ~STEP_OF_LAST;
            row->step = m->last_step;
        }
        m->last_step = row->step;
    }
    if (atomic_load (&m->waiters)) {
        atomic_fetch_add (&m->room, 1);
        futex_wake (&m->room);
    }
    rows_seal (m->rows, m->nrows);
}

static int write_rows (struct slurmdl_metrics *m)
{
    if (m->nrows == 0)
        recorder_drain (m);
    if (m->nrows == 0)
        return 0;
    if (write_names (m) < 0 || metrics_file_add_rows (&m->file, m->rows, m->nrows) < 0)
        return -1;
    atomic_fetch_add (&m->written, m->nrows);
    m->nrows = 0;
    return 0;
}

static void take_items (struct slurmdl_metrics *m)
{
    struct item *item = atomic_exchange (&m->items, NULL);

    while (item) {
        struct item *next = item->next;
        if (item->record.step == NO_STEP)
            item->record.step = m->last_step;
        item->next = m->pending;
        m->pending = item;
        item = next;
    }
}

static void drop_items (struct slurmdl_metrics *m, size_t n)
{
    for (; n > 0; n--) {
        struct item *item = m->pending;
        m->pending = item->next;
        atomic_fetch_sub (&m->waiting, item_size (item));
        free (item);
    }
}

static int write_items (struct slurmdl_metrics *m)
{
    struct record records[GROUP];
    const void *data[GROUP];
    size_t n = 0;

    if (!m->pending)
        take_items (m);
    for (struct item *i = m->pending; i && n < GROUP; i = i->next) {
        records[n] = i->record;
        data[n++] = i->data;
    }
    if (n == 0)
        return 0;
    if (write_names (m) < 0 || metrics_file_add_records (&m->file, records, data, n) < 0)
        return -1;
    drop_items (m, n);
    return 0;
}

/* Write everything that was queued before, and perhaps more. */
static int recorder_flush (struct slurmdl_metrics *m)
{
    unsigned long rows = ring_count (&m->ring);

    do {
        if (write_rows (m) < 0 || write_items (m) < 0)
            return -1;
        /* a thread may have reserved its slot but not written its row yet */
        if (m->nrows == 0 && (long)(rows - atomic_load (&m->written)) > 0
            && ring_count (&m->ring) != m->ring.taken)
            sched_yield ();
    } while ((long)(rows - atomic_load (&m->written)) > 0 || m->pending || atomic_load (&m->items));
    return 0;
}

/* Record losses in the file, so that its readers learn of them. */
static void note_lost (struct slurmdl_metrics *m)
{
    long lost = atomic_load (&m->lost);
    char json[64];

    if (lost == m->lost_noted)
        return;
    snprintf (json, sizeof (json), "{\"lost\": %ld}", lost);
    if (metrics_event (m, "lost", m->last_step, json) == 0)
        m->lost_noted = lost;
}

/* If there is much to sync, leave it to another thread so that rows need not wait. */
static int recorder_sync (struct slurmdl_metrics *m, bool now)
{
    struct metrics_file *j = &m->file;
    bool due = elapsed (&m->synced) >= SYNC_EVERY;
    bool much = j->dirty >= SYNC_HERE;

    if (now || (due && !much && !j->work)) {
        clock_gettime (CLOCK_MONOTONIC, &m->synced);
        return metrics_file_sync (j);
    }
    if (due && !j->work)
        clock_gettime (CLOCK_MONOTONIC, &m->synced);
    return metrics_file_tend (j, due || j->dirty >= SYNC_AT, &m->wakeups);
}

static int write_and_sync (struct slurmdl_metrics *m, bool now)
{
    if (recorder_flush (m) < 0)
        return -1;
    note_lost (m);
    if (now && recorder_flush (m) < 0)
        return -1;
    return recorder_sync (m, now);
}

static void record_failure (struct slurmdl_metrics *m, int e)
{
    atomic_store (&m->error, e);
    if (e && !m->pause)
        atomic_fetch_add (&m->troubles, 1);
    m->pause = !e ? 0 : m->pause ? 2 * m->pause : AGAIN;
    if (m->pause > AGAIN_MOST)
        m->pause = AGAIN_MOST;
}

static void recorder_end (struct slurmdl_metrics *m)
{
    unsigned long rows = ring_count (&m->ring) - atomic_load (&m->written);
    long lost = (long)rows;

    take_items (m);
    for (; m->pending; lost++)
        drop_items (m, 1);
    if (lost > 0)
        metrics_lose (m, lost);
    if (metrics_file_close (&m->file) < 0 && !atomic_load (&m->error))
        atomic_store (&m->error, errno);
    atomic_store (&m->ended, 1);
    futex_wake (&m->ended);
}

static void *recorder_thread (void *arg)
{
    struct slurmdl_metrics *m = arg;
    bool closing;

    do {
        wait_for_work (m);
        wait_for_more (m);
        closing = atomic_load (&m->closing);
        unsigned asked = atomic_load (&m->asked);
        bool now = closing || asked != atomic_load (&m->answered);
        errno = 0;
        int rv = write_and_sync (m, now);
        record_failure (m, rv == 0 ? 0 : errno ? errno : EIO);
        atomic_store (&m->answered, asked);
        if (now)
            futex_wake (&m->answered);
    } while (!closing);
    recorder_end (m);
    return NULL;
}

int recorder_start (struct slurmdl_metrics *m)
{
    clock_gettime (CLOCK_MONOTONIC, &m->synced);
    return thread_start (&m->writer, recorder_thread, m);
}

bool recorder_join (struct slurmdl_metrics *m, long ms)
{
    struct timespec begin;
    long left = ms;

    clock_gettime (CLOCK_MONOTONIC, &begin);
    while (!atomic_load (&m->ended) && (left = ms - elapsed (&begin)) > 0)
        futex_wait (&m->ended, 0, left);
    if (!atomic_load (&m->ended)) {
        pthread_detach (m->writer);
        return false;
    }
    pthread_join (m->writer, NULL);
    return true;
}
