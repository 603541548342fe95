/* SPDX-License-Identifier: Apache-2.0 */
/* dl watch-ranks: see whether the ranks of a node hang; dump their stacks. */
#include "launcher/debug/watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/debug/folder.h"
#include "launcher/debug/hang.h"
#include "launcher/sys/say.h"
#include "runtime/base/clock.h"

enum { LONG_AGO = 1000, READY_FD = 3 };

static double clamp (double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static double touch_every (const struct watcher *w)
{
    return clamp (w->limit / 10, 0.5, 10);
}

static void watch_ranks (struct watcher *w)
{
    double tick = clamp (w->limit / 50, 0.2, 2);
    double look_every = clamp (w->limit / 50, 0.2, 10);
    double sample_every = clamp (w->limit / 40, 0.5, 20);

    srand48 (getpid ()); /* not in step with what the ranks do */
    for (roots_find (&w->roots); !watcher_is_over (w) && !w->roots.step_ended;
         roots_find (&w->roots)) {
        double now = monotonic ();
        if (now - w->touched >= touch_every (w))
            watcher_touch (w);
        if (w->roots.n > 0) {
            hang_serve (w);
            if (now - w->looked >= look_every) {
                watcher_look (w, 0);
                w->looked = now;
            }
            if (now - w->sampled >= sample_every && watcher_count_quiet (w, w->limit / 4) > 0)
                watcher_sample (w);
            hang_check_end (w);
            hang_check (w);
            hang_check_part (w);
        }
        roots_wait (&w->roots, w->roots.n > 0 ? tick * (0.5 + drand48 ()) : watcher_idle (w));
    }
}

static void remove_file (const char *dir, const char *name, void *arg)
{
    char path[PATH_MAX];

    (void)arg;
    snprintf (path, sizeof (path), "%s/%s", dir, name);
    unlink (path);
}

static void clear_flag (const char *dir, const char *name, void *arg)
{
    (void)dir;
    (void)name;
    *(bool *)arg = false;
}

static void clean_up (struct watcher *w)
{
    bool is_last = true;

    watcher_forget (w);
    debug_each (w->folder.path, "watch-", clear_flag, &is_last);
    if (is_last)
        debug_each (w->folder.path, "pipe_", remove_file, NULL);
    rmdir (w->dir); /* if nothing was written */
}

/* The plugin's socket. */
static int find_step_end (void)
{
    struct stat st;

    return fstat (0, &st) == 0 && S_ISSOCK (st.st_mode) ? 0 : -1;
}

static int watch_create (const struct settings *st, struct watcher *w)
{
    const char *job = getenv ("SLURM_JOB_ID") ?: "";
    const char *step = getenv ("SLURM_STEP_ID") ?: "";
    struct slurmdl_error err = { "" };

    w->dir = st->args[0];
    w->limit = strtod (st->args[1], NULL);
    w->task = atoi (st->args[2]);
    w->kills = st->nargs > 3 && !strcmp (st->args[3], "kill");
    gethostname (w->host, sizeof (w->host) - 1);
    snprintf (w->host, sizeof (w->host), "%s", getenv ("SLURMD_NODENAME") ?: strdupa (w->host));
    snprintf (w->node, sizeof (w->node), "%s", getenv ("SLURM_NODEID") ?: "0");
    w->roots.step_end = find_step_end ();
    w->begun = monotonic ();
    w->touched = -LONG_AGO;
    if (w->limit <= 0)
        return EXIT_USAGE;
    if (own_folder_open (&w->folder, w->dir, 0755, &err) < 0)
        return fail (&err);
    w->served = debug_newest (w->folder.path);
    w->roots.ranks = ranks_create ("/proc", job, step, &err);
    w->progress = progress_create ("/proc");
    return w->roots.ranks && w->progress ? EXIT_OK : EXIT_FAILED;
}

int cmd_watch_ranks (const struct settings *st)
{
    struct watcher *w = calloc (1, sizeof (*w));
    int rv = EXIT_FAILED;

    close (READY_FD); /* for the plugin: the end of the step is seen now */
    if (w && (rv = watch_create (st, w)) == EXIT_OK) {
        watch_ranks (w);
        clean_up (w);
    }
    if (w) {
        ranks_destroy (w->roots.ranks);
        progress_destroy (w->progress);
    }
    free (w);
    return rv;
}
