/* SPDX-License-Identifier: Apache-2.0 */
/* What takes the disk long is done by a thread of its own, while records are
 * added: to sync the file, and to make a larger one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/futex.h"
#include "runtime/base/thread.h"
#include "runtime/metrics/journal_file.h"
#include "runtime/storage/link.h"

/* A smaller file is copied when its room is used up: that takes no time. */
enum { LARGE = 1 << 20 };

struct journal_work {
    pthread_t thread;
    int (*run) (struct journal_work *w);
    int (*end) (struct journal *j, struct journal_work *w);
    atomic_uint *bell;
    atomic_bool done;
    int error;           /* errno of run(), 0: it went well */
    struct journal from; /* the journal at the beginning, with a copy of fd */
    struct journal to;   /* with more room; fd -1: none */
    char tmp[40];
};

static int run_sync (struct journal_work *w)
{
    if (fdatasync (w->from.fd) < 0)
        return -1;
    return w->from.fresh ? link_sync_folder (w->from.folder) : 0;
}

static int end_sync (struct journal *j, struct journal_work *w)
{
    if (w->error == 0 || w->from.files != j->files)
        return 0;
    j->suspect = true;
    j->fresh = w->from.fresh;
    j->dirty += w->from.dirty;
    errno = w->error;
    return -1;
}

static int run_growth (struct journal_work *w)
{
    if (journal_make_file (w->tmp, &w->to) < 0)
        return -1;
    return journal_copy_columns (&w->from, &w->to, NULL, 0) < 0
                   || fsync (w->to.fd) < 0
               ? -1
               : 0;
}

/* What was added meanwhile is copied, too.  A failure does no harm: there is
 * room, and when it is used up the same is done at once.
 */
static int end_growth (struct journal *j, struct journal_work *w)
{
    uint64_t dirty = j->dirty;

    if (w->error == 0 && w->from.files == j->files
        && journal_copy_columns (j, &w->to, NULL, 0) == 0
        && journal_give_name (&w->to, w->tmp) == 0) {
        close (j->fd);
        w->to.work = j->work;
        w->to.kept = j->kept;
        w->to.dirty += dirty;
        *j = w->to;
        return 0;
    }
    if (w->to.fd >= 0) {
        close (w->to.fd);
        unlinkat (j->folder, w->tmp, 0);
    }
    j->refused = j->rows.n;
    return 0;
}

/* A quarter of the room is used: the rest is for the time that this takes. */
static bool needs_room (const struct column *c)
{
    return c->room * c->size >= LARGE && c->n > c->room / 4;
}

bool journal_needs_room (const struct journal *j)
{
    return !j->suspect && j->rows.n >= 2 * j->refused
           && (needs_room (&j->rows) || needs_room (&j->bytes));
}

static void *work (void *arg)
{
    struct journal_work *w = arg;
    atomic_uint *bell = w->bell;

    w->error = w->run (w) < 0 ? errno : 0;
    atomic_store (&w->done, true);
    /* who ends the work joins this thread: the bell is there until then */
    atomic_fetch_add (bell, 1);
    futex_wake (bell);
    return NULL;
}

static struct journal_work *create_work (const struct journal *j,
                                         atomic_uint *bell)
{
    struct journal_work *w = calloc (1, sizeof (*w));

    if (!w)
        return NULL;
    w->from = w->to = *j;
    w->to.fd = -1;
    w->from.kept = w->to.kept = NULL; /* the caller goes on changing it */
    w->bell = bell;
    if ((w->from.fd = fcntl (j->fd, F_DUPFD_CLOEXEC, 0)) >= 0)
        return w;
    free (w);
    return NULL;
}

static void free_work (struct journal_work *w)
{
    int e = errno;

    close (w->from.fd);
    free (w);
    errno = e;
}

void journal_begin_growth (struct journal *j, atomic_uint *bell)
{
    struct journal_work *w = create_work (j, bell);

    if (!w)
        return;
    link_tmp_name (w->tmp, sizeof (w->tmp), "");
    for (int i = 0; i < COLUMNS; i++)
        if (needs_room (&j->columns[i]))
            w->to.columns[i].room *= JOURNAL_GROWTH;
    w->run = run_growth;
    w->end = end_growth;
    if (thread_start (&w->thread, work, w) == 0)
        j->work = w;
    else
        free_work (w);
}

int journal_begin_sync (struct journal *j, atomic_uint *bell)
{
    struct journal_work *w = j->suspect ? NULL : create_work (j, bell);

    if (!w)
        return -1;
    w->run = run_sync;
    w->end = end_sync;
    if (thread_start (&w->thread, work, w) < 0) {
        free_work (w);
        return -1;
    }
    j->work = w;
    j->dirty = 0;
    j->fresh = false;
    return 0;
}

int journal_end_work (struct journal *j)
{
    struct journal_work *w = j->work;
    int rv;

    if (!w)
        return 0;
    pthread_join (w->thread, NULL);
    rv = w->end (j, w);
    j->work = NULL;
    free_work (w);
    return rv;
}

bool journal_is_done (const struct journal *j)
{
    return j->work && atomic_load (&j->work->done);
}
