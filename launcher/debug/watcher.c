/* SPDX-License-Identifier: Apache-2.0 */
/* Observe the progress of the ranks of a node. */
#include "launcher/debug/watcher.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/debug/folder.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"

enum {
    START_SECONDS = 2,       /* until all tasks run, if there are several */
    FIRST_RANK_SECONDS = 60, /* until the first one is found */
    LATE_SECONDS = 60,       /* until all nodes have a watcher */
};

/* The step's standard error stays open as long as this lives.  A task that
 * was not found may not have started its program yet, while others have ended.
 */
bool watcher_is_over (const struct watcher *w)
{
    double now = monotonic ();

    if (w->roots.n > 0)
        return false;
    if (kill (w->task, 0) == 0)
        return w->roots.ended_at <= 0 && now - w->begun > FIRST_RANK_SECONDS;
    return w->roots.ended_at > 0 || !strchr (getenv ("SLURM_GTIDS") ?: "", ',')
           || now - w->begun > START_SECONDS;
}

double watcher_idle (const struct watcher *w)
{
    double last = w->roots.ended_at > 0 ? w->roots.ended_at : w->begun;

    return monotonic () - last < START_SECONDS ? 0.1 : 1;
}

bool watcher_has_ranks (void *arg)
{
    struct watcher *w = arg;

    roots_find (&w->roots);
    return w->roots.n > 0;
}

void watcher_look (struct watcher *w, double asked)
{
    const struct rank_process *all;
    size_t n;

    all = ranks_all (w->roots.ranks, &n);
    progress_look (w->progress, all, n, monotonic (), asked);
}

void watcher_sample (struct watcher *w)
{
    double since = monotonic () - w->limit / 4;

    samples_take (&w->samples, &w->roots, w->progress, since);
    watcher_look (w, since);
    w->sampled = monotonic ();
}

size_t watcher_count_quiet (const struct watcher *w, double seconds)
{
    double now = monotonic ();
    size_t n = 0;

    for (size_t i = 0; i < w->roots.n; i++)
        n += now - progress_last (w->progress, w->roots.list[i].rank, now) >= seconds;
    return n;
}

/* On a busy node the watcher may begin late. */
static bool may_still_come (const struct watcher *w)
{
    return w->most + 1 < environment_number ("SLURM_STEP_NUM_NODES", 1)
           && monotonic () - w->begun < LATE_SECONDS;
}

/* When ranks of other nodes made progress last: not after this.  That all of
 * a node have ended is some, too.
 */
static void observe_others (struct watcher *w)
{
    struct debug_others o = debug_others (w->folder.path, w->node);
    double now = monotonic ();

    if (o.n > w->most)
        w->most = o.n;
    if (o.n < w->nothers || may_still_come (w))
        w->others = now;
    else if (o.n > 0 && now - o.quiet > w->others)
        w->others = now - o.quiet;
    w->nothers = o.n;
}

bool watcher_all_quiet (struct watcher *w, double seconds)
{
    double since = monotonic () - seconds;

    if (w->roots.last_end > since || watcher_count_quiet (w, seconds) < w->roots.n)
        return false;
    observe_others (w);
    return w->others <= since;
}

void watcher_touch (struct watcher *w)
{
    double now = monotonic ();
    double last = w->roots.last_end > w->begun ? w->roots.last_end : w->begun;
    char path[PATH_MAX];
    char line[128];

    for (size_t i = 0; i < w->roots.n; i++) {
        double at = progress_last (w->progress, w->roots.list[i].rank, now);
        last = at > last ? at : last;
    }
    snprintf (line, sizeof (line), "%s %.1f\n", w->host, now - last);
    snprintf (path, sizeof (path), "%s/watch-%s", w->folder.path, w->node);
    debug_write (path, line);
    w->touched = now;
    observe_others (w);
}

void watcher_forget (struct watcher *w)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/watch-%s", w->folder.path, w->node);
    unlink (path);
}
