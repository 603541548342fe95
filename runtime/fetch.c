/* SPDX-License-Identifier: Apache-2.0 */
/* Read parts of a checkpoint by several threads, and verify them. */
#include "runtime/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/check.h"
#include "runtime/crew.h"

/* How far the disk is ahead of who reads; shorter runs are not worth a call. */
enum { AHEAD = 256 << 20, RUN_MIN = 64 << 10 };

/* ---- what is to be read ---- */

void fetch_free (struct fetch *f)
{
    free (f->list);
    f->list = NULL;
    f->n = f->room = 0;
}

static struct fetch_part *add (struct fetch *f)
{
    struct fetch_part *list;
    size_t room = f->room ? 2 * f->room : 64;

    if (f->n == f->room) {
        if (!(list = realloc (f->list, room * sizeof (*list))))
            return NULL;
        f->list = list;
        f->room = room;
    }
    return &f->list[f->n++];
}

static int first_place (uint64_t at, uint64_t at_slab, uint64_t n, void *arg)
{
    (void)at_slab;
    (void)n;
    *(uint64_t *)arg = at;
    return 1;
}

int fetch_add (struct fetch *f,
               const struct manifest_row *row,
               const struct slab *to,
               void *data)
{
    struct slab tensor = slab_whole ((int)row->ndims, row->dims);
    struct shard_row whole;
    struct slab both;

    for (uint32_t i = 0; row->bytes && i < manifest_shards (row); i++) {
        const struct shard_row *shard = manifest_shard (f->m, row, i, &whole);
        struct slab s = shard_slab (row, shard);
        struct fetch_part *p;
        uint64_t at = 0;
        if (slab_elements (&s) == 0 || !slab_overlap (&s, to, &both))
            continue;
        if (!(p = add (f)))
            return -1;
        slab_walk (&tensor, &s, first_place, &at);
        *p = (struct fetch_part){ row, *shard, *to, data, 0 };
        p->at = row->offset + at * slurmdl_type_size (row->type);
    }
    return 0;
}

int fetch_add_whole (struct fetch *f, const struct manifest_row *row)
{
    struct slab all = slab_whole ((int)row->ndims, row->dims);

    return fetch_add (f, row, &all, NULL);
}

/* ---- to read it ---- */

struct fetching {
    const struct fetch *f;
    atomic_size_t next;
    atomic_int *cancel;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t done; /* bytes */
    int error;
    bool over;
};

static uint64_t bytes_of (const struct fetch_part *p)
{
    struct slab s = shard_slab (p->row, &p->shard);

    return slab_elements (&s) * slurmdl_type_size (p->row->type);
}

static void say_done (struct fetching *g, uint64_t bytes, int error)
{
    pthread_mutex_lock (&g->lock);
    g->done += bytes;
    if (error && !g->error)
        g->error = error;
    pthread_cond_signal (&g->moved);
    pthread_mutex_unlock (&g->lock);
}

static bool has_failed (struct fetching *g)
{
    bool failed;

    pthread_mutex_lock (&g->lock);
    failed = g->error || g->over;
    pthread_mutex_unlock (&g->lock);
    return failed;
}

static void *read_some (void *arg)
{
    struct fetching *g = arg;
    size_t i;

    while (!has_failed (g) && (i = atomic_fetch_add (&g->next, 1)) < g->f->n) {
        const struct fetch_part *p = &g->f->list[i];
        int e = 0;
        if (read_shard (g->f->fd, p->row, &p->shard, &p->to, p->data, g->cancel)
            < 0)
            e = errno ? errno : EIO;
        say_done (g, bytes_of (p), e);
    }
    return NULL;
}

/* ---- ahead of who reads ---- */

struct advice {
    int fd;
    uint64_t offset, size; /* of the tensor, of an element */
};

static int advise (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
{
    const struct advice *a = arg;

    (void)at_slab;
    if (n * a->size < RUN_MIN)
        return 1;
    posix_fadvise (a->fd,
                   (off_t)(a->offset + at_tensor * a->size),
                   (off_t)(n * a->size),
                   POSIX_FADV_WILLNEED);
    return 0;
}

static bool wait_for_readers (struct fetching *g, uint64_t asked)
{
    bool go_on;

    pthread_mutex_lock (&g->lock);
    while (!g->error && !g->over && asked > g->done + AHEAD)
        pthread_cond_wait (&g->moved, &g->lock);
    go_on = !g->error && !g->over;
    pthread_mutex_unlock (&g->lock);
    return go_on;
}

/* The kernel's own guess is small; and the call returns only when the disk
 * has as much to do as it takes at once.
 */
static void *look_ahead (void *arg)
{
    struct fetching *g = arg;
    uint64_t asked = 0;

    for (size_t i = 0; i < g->f->n && wait_for_readers (g, asked); i++) {
        const struct fetch_part *p = &g->f->list[i];
        struct slab tensor = slab_whole ((int)p->row->ndims, p->row->dims);
        struct slab s = shard_slab (p->row, &p->shard);
        struct advice a = { g->f->fd,
                            p->row->offset,
                            slurmdl_type_size (p->row->type) };
        slab_walk (&tensor, &s, advise, &a);
        asked += bytes_of (p);
    }
    return NULL;
}

/* ---- all of it ---- */

static int by_place (const void *a, const void *b)
{
    const struct fetch_part *x = a;
    const struct fetch_part *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

int fetch_run (struct fetch *f, long threads, atomic_int *cancel)
{
    struct fetching g = { .f = f, .cancel = cancel };
    pthread_t ahead;
    bool looks;

    pthread_mutex_init (&g.lock, NULL);
    pthread_cond_init (&g.moved, NULL);
    if (f->n)
        qsort (f->list, f->n, sizeof (*f->list), by_place);
    looks = f->n > 1 && pthread_create (&ahead, NULL, look_ahead, &g) == 0;
    crew_run (threads < (long)f->n ? threads : (long)f->n, read_some, &g);
    pthread_mutex_lock (&g.lock);
    g.over = true;
    pthread_cond_signal (&g.moved);
    pthread_mutex_unlock (&g.lock);
    if (looks)
        pthread_join (ahead, NULL);
    pthread_cond_destroy (&g.moved);
    pthread_mutex_destroy (&g.lock);
    errno = g.error;
    return g.error ? -1 : 0;
}
