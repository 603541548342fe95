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
#include "runtime/metrics/file_create.h"
#include "runtime/storage/link.h"

/* A smaller file is copied when its room is used up: that takes no time. */
enum { LARGE = 1 << 20 };

struct metrics_file_work {
    pthread_t thread;
    int (*run) (struct metrics_file_work *w);
    int (*end) (struct metrics_file *f, struct metrics_file_work *w);
    atomic_uint *bell;
    atomic_bool done;
    int error;                /* errno of run(), 0: it went well */
    struct metrics_file from; /* as it began, with a copy of fd */
    struct metrics_file to;   /* with more room; fd -1: none */
    char tmp[40];
};

static int run_sync (struct metrics_file_work *w)
{
    if (fdatasync (w->from.fd) < 0)
        return -1;
    return w->from.fresh ? link_sync_folder (w->from.folder) : 0;
}

static int end_sync (struct metrics_file *f, struct metrics_file_work *w)
{
    if (w->error == 0 || w->from.files != f->files)
        return 0;
    f->suspect = true;
    f->fresh = w->from.fresh;
    f->dirty += w->from.dirty;
    errno = w->error;
    return -1;
}

static int run_growth (struct metrics_file_work *w)
{
    if (metrics_file_make (w->tmp, &w->to) < 0)
        return -1;
    return metrics_file_copy_columns (&w->from, &w->to, NULL, 0) < 0 || fsync (w->to.fd) < 0 ? -1
                                                                                             : 0;
}

/* What was added meanwhile is copied, too.  A failure does no harm: there is
 * room, and when it is used up the same is done at once.
 */
static int end_growth (struct metrics_file *f, struct metrics_file_work *w)
{
    uint64_t dirty = f->dirty;

    if (w->error == 0 && w->from.files == f->files
        && metrics_file_copy_columns (f, &w->to, NULL, 0) == 0
        && metrics_file_give_name (&w->to, w->tmp) == 0) {
        close (f->fd);
        w->to.work = f->work;
        w->to.kept = f->kept;
        w->to.dirty += dirty;
        *f = w->to;
        return 0;
    }
    if (w->to.fd >= 0) {
        close (w->to.fd);
        unlinkat (f->folder, w->tmp, 0);
    }
    f->refused = f->rows.n;
    return 0;
}

/* A quarter of the room is used: the rest is for the time that this takes. */
static bool needs_room (const struct column *c)
{
    return c->room * c->size >= LARGE && c->n > c->room / 4;
}

bool metrics_file_needs_room (const struct metrics_file *f)
{
    return !f->suspect && f->rows.n >= 2 * f->refused
           && (needs_room (&f->rows) || needs_room (&f->bytes));
}

static void *work (void *arg)
{
    struct metrics_file_work *w = arg;
    atomic_uint *bell = w->bell;

    w->error = w->run (w) < 0 ? errno : 0;
    atomic_store (&w->done, true);
    /* who ends the work joins this thread: the bell is there until then */
    atomic_fetch_add (bell, 1);
    futex_wake (bell);
    return NULL;
}

static struct metrics_file_work *create_work (const struct metrics_file *f, atomic_uint *bell)
{
    struct metrics_file_work *w = calloc (1, sizeof (*w));

    if (!w)
        return NULL;
    w->from = w->to = *f;
    w->to.fd = -1;
    w->from.kept = w->to.kept = NULL; /* the caller goes on changing it */
    w->bell = bell;
    if ((w->from.fd = fcntl (f->fd, F_DUPFD_CLOEXEC, 0)) >= 0)
        return w;
    free (w);
    return NULL;
}

static void free_work (struct metrics_file_work *w)
{
    int e = errno;

    close (w->from.fd);
    free (w);
    errno = e;
}

void metrics_file_begin_growth (struct metrics_file *f, atomic_uint *bell)
{
    struct metrics_file_work *w = create_work (f, bell);

    if (!w)
        return;
    link_tmp_name (w->tmp, sizeof (w->tmp), "");
    for (int i = 0; i < COLUMNS; i++)
        if (needs_room (&f->columns[i]))
            w->to.columns[i].room *= ROOM_GROWTH;
    w->run = run_growth;
    w->end = end_growth;
    if (thread_start (&w->thread, work, w) == 0)
        f->work = w;
    else
        free_work (w);
}

int metrics_file_begin_sync (struct metrics_file *f, atomic_uint *bell)
{
    struct metrics_file_work *w = f->suspect ? NULL : create_work (f, bell);

    if (!w)
        return -1;
    w->run = run_sync;
    w->end = end_sync;
    if (thread_start (&w->thread, work, w) < 0) {
        free_work (w);
        return -1;
    }
    f->work = w;
    f->dirty = 0;
    f->fresh = false;
    return 0;
}

int metrics_file_end_work (struct metrics_file *f)
{
    struct metrics_file_work *w = f->work;
    int rv;

    if (!w)
        return 0;
    pthread_join (w->thread, NULL);
    rv = w->end (f, w);
    f->work = NULL;
    free_work (w);
    return rv;
}

bool metrics_file_is_done (const struct metrics_file *f)
{
    return f->work && atomic_load (&f->work->done);
}
