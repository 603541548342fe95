/* SPDX-License-Identifier: Apache-2.0 */
/* Log scalars: a queue, and a thread that writes it to the file. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/error.h"
#include "runtime/journal.h"
#include "runtime/private.h"

enum {
    QUEUE_MAX = 1 << 20, /* rows that wait for a disk */
    HASH_SIZE = 4096,    /* > 2 * NAMES_MAX */
    SYNC_EVERY = 5,      /* s */
    RETRY_EVERY = 1,     /* s */
};
static const long batch_time = 100 * 1000 * 1000; /* ns */

struct queue {
    struct row *rows;
    size_t n, room;
};

struct slurmdl_metrics {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the writer */
    pthread_cond_t done; /* whoever waits in flush */
    pthread_t writer;
    pid_t pid; /* a child of fork() has no writer */

    /* under the lock */
    struct queue queue;
    char (*names)[NAME_SIZE];
    uint32_t nnames;
    uint16_t hash[HASH_SIZE]; /* index in names + 1 */
    uint64_t dropped;
    uint64_t asked;    /* flushes that were asked for ... */
    uint64_t answered; /* ... and answered */
    int error;         /* errno of the last try to write, 0: it went well */
    bool closing;

    /* the writer's */
    struct journal journal;
    struct queue pending;
    time_t synced;
};

/* ---- names ---- */

static uint32_t hash_name (const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* Index of the name, which is added if it is new; -1 with errno. */
static int find_name (struct slurmdl_metrics *m, const char *name)
{
    uint32_t at = hash_name (name) % HASH_SIZE;
    size_t len;

    for (; m->hash[at]; at = (at + 1) % HASH_SIZE)
        if (!strcmp (m->names[m->hash[at] - 1], name))
            return m->hash[at] - 1;
    len = strlen (name);
    if (len == 0 || len >= NAME_SIZE) {
        errno = EINVAL;
        return -1;
    }
    if (m->nnames == NAMES_MAX) {
        errno = ENOSPC;
        return -1;
    }
    memset (m->names[m->nnames], 0, NAME_SIZE);
    memcpy (m->names[m->nnames], name, len);
    m->hash[at] = (uint16_t)++m->nnames;
    return (int)m->nnames - 1;
}

/* ---- the queue ---- */

static int grow (struct queue *q)
{
    size_t room = q->room ? 2 * q->room : 1024;
    struct row *rows;

    if (q->n < q->room)
        return 0;
    if (q->room >= QUEUE_MAX
        || !(rows = realloc (q->rows, room * sizeof (*rows)))) {
        errno = ENOSPC;
        return -1;
    }
    q->rows = rows;
    q->room = room;
    return 0;
}

static double now (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int
push (struct slurmdl_metrics *m, const char *name, int64_t step, double value)
{
    struct row row = { .step = step, .time = now (), .value = value };
    int index = find_name (m, name);

    if (index < 0)
        return -1;
    if (grow (&m->queue) < 0) {
        m->dropped++;
        return -1;
    }
    row.name = (uint32_t)index;
    m->queue.rows[m->queue.n++] = row;
    if (m->queue.n == 1)
        pthread_cond_signal (&m->wake);
    return 0;
}

int slurmdl_metrics_log (struct slurmdl_metrics *m,
                         const char *name,
                         int64_t step,
                         double value)
{
    int rv;

    if (m->pid != getpid ()) {
        errno = EPERM;
        return -1;
    }
    pthread_mutex_lock (&m->lock);
    rv = push (m, name, step, value);
    pthread_mutex_unlock (&m->lock);
    return rv;
}

/* ---- the writer ---- */

static void sleep_until (struct slurmdl_metrics *m, long ns)
{
    struct timespec until;
    uint64_t asked = m->asked;

    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns % 1000000000;
    until.tv_sec += ns / 1000000000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!m->closing && m->asked == asked)
        if (pthread_cond_timedwait (&m->wake, &m->lock, &until) == ETIMEDOUT)
            break;
}

/* Wait for rows, then a while for more of them.  Under the lock. */
static void wait_for_rows (struct slurmdl_metrics *m)
{
    while (!m->closing && m->asked == m->answered && m->queue.n == 0
           && m->pending.n == 0)
        pthread_cond_wait (&m->wake, &m->lock);
    if (!m->closing && m->asked == m->answered)
        sleep_until (m, m->error ? RETRY_EVERY * 1000000000l : batch_time);
}

/* Rows that could not be written stay pending and the new ones wait: then
 * false.
 */
static bool take_rows (struct slurmdl_metrics *m)
{
    struct queue empty = m->pending;

    if (m->pending.n > 0)
        return false;
    m->pending = m->queue;
    m->queue = empty;
    return true;
}

static int
write_pending (struct slurmdl_metrics *m, uint32_t nnames, bool flush)
{
    struct journal *j = &m->journal;

    for (size_t i = 0; i < m->pending.n; i++)
        m->pending.rows[i].crc = row_crc (&m->pending.rows[i]);
    /* names below nnames are never changed, so the lock is not needed */
    if (nnames > j->names.n
        && journal_add_names (j,
                              (const char (*)[NAME_SIZE])m->names + j->names.n,
                              nnames - j->names.n)
               < 0)
        return -1;
    if (m->pending.n > 0
        && journal_add_rows (j, m->pending.rows, m->pending.n) < 0)
        return -1;
    m->pending.n = 0;
    if (flush || time (NULL) - m->synced >= SYNC_EVERY) {
        m->synced = time (NULL);
        return journal_sync (j);
    }
    return 0;
}

static void *write_rows (void *arg)
{
    struct slurmdl_metrics *m = arg;
    bool closing = false;

    pthread_mutex_lock (&m->lock);
    while (!closing || (m->error == 0 && m->queue.n > 0)) {
        wait_for_rows (m);
        bool all = take_rows (m);
        bool flush = m->closing || m->asked != m->answered;
        uint64_t asked = m->asked;
        uint32_t nnames = m->nnames;
        closing = m->closing;
        pthread_mutex_unlock (&m->lock);
        int e = write_pending (m, nnames, flush) < 0 ? errno : 0;
        pthread_mutex_lock (&m->lock);
        m->error = e;
        if (e || all)
            m->answered = asked;
        pthread_cond_broadcast (&m->done);
    }
    pthread_mutex_unlock (&m->lock);
    return NULL;
}

static int start_writer (struct slurmdl_metrics *m)
{
    sigset_t all;
    sigset_t old;
    int rc;

    /* signals are the program's business, not this thread's */
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &old);
    rc = pthread_create (&m->writer, NULL, write_rows, m);
    pthread_sigmask (SIG_SETMASK, &old, NULL);
    errno = rc;
    return rc ? -1 : 0;
}

/* ---- create, flush, destroy ---- */

static void init_locks (struct slurmdl_metrics *m)
{
    pthread_condattr_t attr;

    pthread_condattr_init (&attr);
    pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
    pthread_mutex_init (&m->lock, NULL);
    pthread_cond_init (&m->wake, &attr);
    pthread_cond_init (&m->done, NULL);
    pthread_condattr_destroy (&attr);
}

static void free_metrics (struct slurmdl_metrics *m)
{
    pthread_mutex_destroy (&m->lock);
    pthread_cond_destroy (&m->wake);
    pthread_cond_destroy (&m->done);
    free (m->queue.rows);
    free (m->pending.rows);
    free (m->names);
    free (m);
}

struct slurmdl_metrics *metrics_create (const char *dir,
                                        const struct journal_about *about,
                                        struct slurmdl_error *err)
{
    struct slurmdl_metrics *m = calloc (1, sizeof (*m));
    int e;

    if (!m || !(m->names = calloc (NAMES_MAX, NAME_SIZE))) {
        free (m);
        errorf (err, "out of memory");
        return NULL;
    }
    init_locks (m);
    m->pid = getpid ();
    m->synced = time (NULL);
    if (journal_create (&m->journal, dir, about, err) == 0) {
        find_name (m, "slurmdl");
        if (start_writer (m) == 0)
            return m;
        errorf (err, "cannot start a thread: %s", strerror (errno));
        journal_close (&m->journal);
    }
    e = errno;
    free_metrics (m);
    errno = e;
    return NULL;
}

struct slurmdl_metrics *slurmdl_metrics_create (const char *dir,
                                                struct slurmdl_error *err)
{
    struct journal_about about;

    context_about (&about);
    return metrics_create (dir, &about, err);
}

/* What a user is told, -1; or 0 if nothing is lost. */
static int report (const struct slurmdl_metrics *m, struct slurmdl_error *err)
{
    if (m->error) {
        errno = m->error;
        return errorf (err,
                       "%s: cannot write: %s; %zu metrics wait in memory, %llu "
                       "are lost",
                       m->journal.path,
                       strerror (m->error),
                       m->queue.n + m->pending.n,
                       (unsigned long long)m->dropped);
    }
    if (m->dropped) {
        errno = ENOSPC;
        return errorf (err,
                       "%s: %llu metrics are lost: they came while the disk "
                       "took none",
                       m->journal.path,
                       (unsigned long long)m->dropped);
    }
    return 0;
}

int slurmdl_metrics_flush (struct slurmdl_metrics *m, struct slurmdl_error *err)
{
    uint64_t ticket;
    int rv;

    if (m->pid != getpid ()) {
        errno = EPERM;
        return errorf (
            err, "metrics: this is a child of the process that opened them");
    }
    pthread_mutex_lock (&m->lock);
    ticket = ++m->asked;
    pthread_cond_signal (&m->wake);
    while (m->answered < ticket)
        pthread_cond_wait (&m->done, &m->lock);
    rv = report (m, err);
    pthread_mutex_unlock (&m->lock);
    return rv;
}

int slurmdl_metrics_destroy (struct slurmdl_metrics *m)
{
    int rv;

    if (!m)
        return 0;
    if (m->pid != getpid ())
        return 0; /* the memory is the parent's as well: leave all alone */
    pthread_mutex_lock (&m->lock);
    m->closing = true;
    pthread_cond_signal (&m->wake);
    pthread_mutex_unlock (&m->lock);
    pthread_join (m->writer, NULL);
    rv = report (m, NULL);
    if (journal_close (&m->journal) < 0)
        rv = -1;
    free_metrics (m);
    return rv;
}
