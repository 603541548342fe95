/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: join, timeline, trouble and statistics. */
#include <errno.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/futex.h"
#include "runtime/comm/engine/engine.h"

/* Tensors that this rank has submitted are completed first.  After that the others
 * need not ask it.
 */
static int begin_join (struct engine *e, unsigned *seen, uint64_t *joins)
{
    pthread_mutex_lock (&e->lock);
    if (e->joining != JOIN_NO || e->closing || e->left || e->code) {
        pthread_mutex_unlock (&e->lock);
        errno = EINVAL;
        return -1;
    }
    e->joining = JOIN_ASKED;
    e->hurry = true;
    *seen = atomic_load (&e->joined);
    *joins = e->joins;
    pthread_mutex_unlock (&e->lock);
    engine_wake (e);
    return 0;
}

static int end_join (struct engine *e, uint64_t joins, long *last, struct slurmdl_error *err)
{
    int rv = 0;

    pthread_mutex_lock (&e->lock);
    if (e->joins == joins) {
        errno = e->code ? e->code : ECONNRESET;
        rv = errorf (err, "%s", e->why.text);
    } else if (last) {
        *last = e->last_to_join;
    }
    pthread_mutex_unlock (&e->lock);
    return rv;
}

int slurmdl_join (struct slurmdl_comm *c, long *last, struct slurmdl_error *err)
{
    struct engine *e = engine_enter (c, true, err);
    unsigned seen;
    uint64_t joins;
    int saved;
    int rv;

    if (!e)
        return -1;
    if (begin_join (e, &seen, &joins) < 0) {
        rv = errorf (err, "another thread has joined already, or is closing");
    } else {
        while (atomic_load (&e->joined) == seen)
            futex_wait (&e->joined, seen, -1);
        rv = end_join (e, joins, last, err);
    }
    saved = errno;
    engine_leave (e);
    errno = saved;
    return rv;
}

int slurmdl_timeline (struct slurmdl_comm *c, const char *path, int cycles,
                      struct slurmdl_error *err)
{
    struct engine *e = engine_enter (c, path != NULL, err);
    struct timeline *t = NULL, *before;
    int rv = 0;

    if (!e)
        return path ? -1 : 0;
    if (path
        && timeline_open (&t, path, e->rank, slurmdl_comm_host (c, e->rank), cycles, err) < 0) {
        engine_leave (e);
        return -1;
    }
    pthread_mutex_lock (&e->lock);
    before = e->timeline;
    e->timeline = t;
    pthread_mutex_unlock (&e->lock);
    if (timeline_close (before) < 0)
        rv = errorf (err, "the previous timeline is incomplete");
    engine_leave (e);
    return rv;
}

int slurmdl_comm_trouble (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    struct engine *e = engine_enter (c, false, err);
    int news;

    if (!e)
        return 0;
    pthread_mutex_lock (&e->lock);
    news = e->news;
    e->news = false;
    if (news && err)
        *err = e->trouble;
    pthread_mutex_unlock (&e->lock);
    engine_leave (e);
    return news;
}

void slurmdl_comm_stats (struct slurmdl_comm *c, struct slurmdl_comm_stats *stats)
{
    struct engine *e = engine_enter (c, false, NULL);

    memset (stats, 0, sizeof (*stats));
    if (!e)
        return;
    pthread_mutex_lock (&e->lock);
    *stats = e->stats;
    stats->fusion_bytes = e->fusion;
    stats->cycle_ms = e->cycle * 1e3;
    pthread_mutex_unlock (&e->lock);
    engine_leave (e);
}
