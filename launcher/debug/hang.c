/* SPDX-License-Identifier: Apache-2.0 */
/* Detect hangs of the ranks of a step, and act on them. */
#include "launcher/debug/hang.h"

#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "launcher/debug/watcher_dump.h"
#include "runtime/base/clock.h"

enum {
    AFTER_END_SECONDS = 30, /* without progress after a rank has ended */
    REASON_SECONDS = 5,     /* from the folder of a dump to its reason */
    OTHERS_SECONDS = 90,    /* for the dumps of the other nodes */
    ABORT_SECONDS = 10,
    PART_FACTOR = 3, /* of the limit, if some ranks make progress */
};

/* SIGABRT: Python's faulthandler says where it was, and the step's status is
 * 134.  Not before all nodes have written.
 */
static void end_ranks (struct watcher *w)
{
    double until = monotonic () + OTHERS_SECONDS;
    const struct rank_process *p;
    char path[PATH_MAX];
    struct stat st;
    size_t n;

    debug_path (path, sizeof (path), w->folder.path, w->served, "line");
    while (stat (path, &st) < 0 && monotonic () < until && watcher_has_ranks (w))
        poll (NULL, 0, 200);
    watcher_forget (w); /* Slurm may end this with the last rank */
    ranks_look (w->roots.ranks);
    p = ranks_all (w->roots.ranks, &n);
    for (size_t i = n; i-- > 0;) {
        kill (p[i].pid, SIGCONT);
        kill (p[i].pid, SIGABRT);
    }
    until = monotonic () + ABORT_SECONDS;
    while (monotonic () < until && watcher_has_ranks (w))
        poll (NULL, 0, 200);
    ranks_look (w->roots.ranks);
    p = ranks_all (w->roots.ranks, &n);
    for (size_t i = 0; i < n; i++)
        kill (p[i].pid, SIGKILL);
}

void hang_check (struct watcher *w)
{
    char reason[256];

    if (!watcher_all_quiet (w, w->limit)) {
        if (watcher_count_quiet (w, w->limit / 2) == 0)
            w->hang_reported = w->part_reported = false;
        return;
    }
    if (!w->hang_reported) {
        snprintf (reason, sizeof (reason), "no progress for %.0f s%s", w->limit,
                  w->kills ? ", the step is ended" : "");
        if (watcher_request (w, DEBUG_HANG, reason) < 0)
            return;
    }
    w->hang_reported = true;
    if (w->kills)
        end_ranks (w);
}

/* Some go on: they may save or evaluate for the others; or be in a loop. */
void hang_check_part (struct watcher *w)
{
    size_t quiet = watcher_count_quiet (w, PART_FACTOR * w->limit);
    char reason[256];

    if (w->hang_reported || w->part_reported || quiet == 0 || quiet * 2 < w->roots.n)
        return;
    snprintf (reason, sizeof (reason),
              "%zu of %zu ranks on %s have made no progress for %.0f s while "
              "others have",
              quiet, w->roots.n, w->host, PART_FACTOR * w->limit);
    w->part_reported = watcher_request (w, DEBUG_PART, reason) == 0;
}

void hang_check_end (struct watcher *w)
{
    double now = monotonic ();
    double wait = fmin (w->limit / 2, AFTER_END_SECONDS);
    char end[400];
    char reason[512];

    if (w->roots.ended_at <= 0 || w->end_reported || w->hang_reported
        || now - w->roots.ended_at < wait || !watcher_all_quiet (w, wait))
        return;
    snprintf (reason, sizeof (reason), "%s, and %zu rank%s on %s wait%s for it",
              roots_end (&w->roots, w->folder.path, end, sizeof (end)), w->roots.n,
              w->roots.n == 1 ? "" : "s", w->host, w->roots.n == 1 ? "s" : "");
    if (watcher_request (w, DEBUG_END, reason) == 0)
        w->end_reported = w->hang_reported = true;
}

/* A dump's folder comes before its reason, unless the process that requested
 * it has died.
 */
static bool has_reason (struct watcher *w, long dump, const char *reason)
{
    double now = monotonic ();

    if (!*reason && w->without_reason != dump) {
        w->without_reason = dump;
        w->since = now;
    }
    return *reason || now - w->since > REASON_SECONDS;
}

void hang_serve (struct watcher *w)
{
    long newest = debug_newest (w->folder.path);
    char reason[DEBUG_LINE];

    while (w->served < newest) {
        enum debug_cause cause =
            debug_cause (w->folder.path, w->served + 1, reason, sizeof (reason));
        if (!has_reason (w, w->served + 1, reason))
            return;
        watcher_dump (w, w->served + 1);
        if (cause == DEBUG_HANG) {
            w->hang_reported = true;
            if (w->kills)
                end_ranks (w);
        } else if (cause != DEBUG_REQUEST)
            w->end_reported = w->part_reported = true;
    }
}
