/* SPDX-License-Identifier: Apache-2.0 */
/* Write the stacks of all ranks of a node to the folder. */
#include "launcher/debug/watcher_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/debug/dump.h"
#include "launcher/sys/say.h"
#include "runtime/base/clock.h"

enum {
    DUMP_SECONDS = 60,
    OTHERS_SECONDS = 90, /* NFS shows a new file to other nodes late */
    DUMPS_MAX = 5,       /* that one watcher requests */
};

static void dump_one (struct watcher *w, long dump, long rank, double until)
{
    const struct rank_process *p;
    char file[32];
    char path[PATH_MAX];
    char *text = NULL;
    size_t size = 0;
    size_t n;
    FILE *f;

    p = ranks_of (w->roots.ranks, rank, &n);
    if (n == 0 || !(f = open_memstream (&text, &size)))
        return;
    dump_rank (f, w->host, p, n, until);
    if (fclose (f) == 0) {
        snprintf (file, sizeof (file), "rank-%ld", rank);
        debug_path (path, sizeof (path), w->folder.path, dump, file);
        debug_write (path, text);
    }
    free (text);
}

/* PyTorch writes its flight recorder when its pipe is written to; only that
 * of a process of this node has a reader.
 */
static void ask_recorder (const char *dir, const char *name, void *arg)
{
    char path[PATH_MAX];
    int fd;

    (void)arg;
    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if ((fd = open (path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        return;
    if (write (fd, "1", 1) < 0)
        complain ("%s: %s", path, strerror (errno));
    close (fd);
}

void watcher_dump (struct watcher *w, long dump)
{
    double until = monotonic () + DUMP_SECONDS;
    char path[PATH_MAX];
    char file[64];

    debug_each (w->folder.path, "pipe_", ask_recorder, NULL);
    ranks_look (w->roots.ranks);
    for (size_t i = 0; i < w->roots.n; i++) {
        dump_one (w, dump, w->roots.list[i].rank, until);
        watcher_touch (w);
    }
    snprintf (file, sizeof (file), "node-%s", w->node);
    debug_path (path, sizeof (path), w->folder.path, dump, file);
    debug_write (path, "");
    w->served = dump;
    watcher_look (w, INFINITY);
}

/* The watcher that requested it reports, once all nodes have written. */
static void report (struct watcher *w, long dump, const char *reason)
{
    long missing = debug_wait (w->folder.path, dump, OTHERS_SECONDS, watcher_has_ranks, w);
    struct stack *stacks;
    size_t *group;
    size_t n = debug_read (w->folder.path, dump, &stacks, &group);
    char where[DEBUG_LINE / 2] = "";
    char line[DEBUG_LINE * 2];
    char more[64] = "";
    char path[PATH_MAX];

    if (n > 0)
        stacks_line (stacks, group, n, where, sizeof (where));
    if (missing > 0)
        snprintf (more, sizeof (more), "; %ld nodes did not answer", missing);
    snprintf (line, sizeof (line), "%s: %s%s; stacks of all ranks: %s/dump-%ld", reason,
              *where ? where : "no stacks", more, w->dir, dump);
    complain ("%s", line);
    debug_path (path, sizeof (path), w->folder.path, dump, "line");
    debug_write (path, line);
    free (stacks);
    free (group);
}

int watcher_request (struct watcher *w, enum debug_cause cause, const char *reason)
{
    long dump = w->served + 1;

    if (w->own_dumps >= DUMPS_MAX)
        return 0;
    if (debug_request (w->folder.path, dump, cause, reason) == 0) {
        w->own_dumps++;
        watcher_dump (w, dump);
        report (w, dump, reason);
    } else if (errno == EEXIST) {
        return -1;
    } else {
        w->own_dumps = DUMPS_MAX;
        complain ("%s; no stacks: %s: %s", reason, w->dir, strerror (errno));
    }
    return 0;
}
