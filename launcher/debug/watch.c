/* SPDX-License-Identifier: Apache-2.0 */
/* dl watch: beside the ranks of a node; keeps the stacks of ranks that hang. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/debug/debug.h"
#include "launcher/debug/dump.h"
#include "launcher/debug/progress.h"
#include "launcher/debug/roots.h"
#include "launcher/debug/sample.h"
#include "launcher/sys/say.h"
#include "launcher/sys/settings.h"
#include "runtime/base/clock.h"

enum {
    NO_RANKS_SECONDS = 2,    /* that no rank was found and the task is gone */
    START_SECONDS = 2,       /* until all tasks run, if there are several */
    FIRST_RANK_SECONDS = 60, /* until the first one is found */
    AFTER_END_SECONDS = 30, /* quiet after a rank has ended: they wait for it */
    DUMP_SECONDS = 60,
    REASON_SECONDS = 5,  /* after which somebody who asked has died */
    OTHERS_SECONDS = 90, /* NFS shows a new file to other nodes late */
    ABORT_SECONDS = 10,
    DUMPS_MAX = 5, /* of its own accord */
    LONG_AGO = 1000,
    PATIENCE = 3, /* times as long if some ranks go on */
};

struct watch {
    const char *dir;
    double limit;
    pid_t task; /* the one that started this */
    bool kills;
    char host[64];
    char node[32];
    struct roots roots;
    struct progress *progress;
    struct samples samples;
    double begun, touched, looked, sampled;
    double others; /* when they made progress last */
    long nothers;  /* watchers of other nodes */
    long served;   /* number of the last dump that this node is in */
    int own_dumps;
    bool told_hang, told_end, told_part;
    long without_reason; /* this dump, since then */
    double since;
};

static double clamp (double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static double touch_every (const struct watch *w)
{
    return clamp (w->limit / 10, 0.5, 10);
}

/* ---- which ranks there are ---- */

/* The step's standard error stays open as long as this lives.  A task that
 * was not found may not have started its program yet, while others have ended.
 */
static bool is_over (const struct watch *w)
{
    double now = monotonic ();

    if (w->roots.n > 0)
        return false;
    if (kill (w->task, 0) == 0)
        return w->roots.ended_at <= 0 && now - w->begun > FIRST_RANK_SECONDS;
    return w->roots.ended_at > 0 || !strchr (getenv ("SLURM_GTIDS") ?: "", ',')
           || now - w->begun > START_SECONDS;
}

/* Until the next look if there is no rank. */
static double idle (const struct watch *w)
{
    double last = w->roots.ended_at > 0 ? w->roots.ended_at : w->begun;

    return monotonic () - last < START_SECONDS ? 0.1 : 1;
}

static bool has_ranks (void *arg)
{
    struct watch *w = arg;

    roots_find (&w->roots);
    return w->roots.n > 0;
}

/* ---- progress ---- */

static void look (struct watch *w, int quiet)
{
    const struct rank_process *all;
    size_t n;

    all = ranks_all (w->roots.ranks, &n);
    progress_look (w->progress, all, n, monotonic (), quiet);
}

/* Ranks that show nothing outside: does their main thread go on? */
static void take_samples (struct watch *w)
{
    samples_take (&w->samples, &w->roots, w->progress, w->limit / 4);
    look (w, 1);
    w->sampled = monotonic ();
}

/* How many of this node's ranks have shown nothing for so long. */
static size_t count_quiet (const struct watch *w, double seconds)
{
    double now = monotonic ();
    size_t n = 0;

    for (size_t i = 0; i < w->roots.n; i++)
        n += now - progress_last (w->progress, w->roots.list[i].rank, now)
             >= seconds;
    return n;
}

/* When ranks of other nodes made progress last: not after this.  That all of
 * a node have ended is some, too.
 */
static void hear_others (struct watch *w)
{
    struct debug_others o = debug_others (w->dir, w->node);
    double now = monotonic ();

    if (o.n < w->nothers)
        w->others = now;
    else if (o.n > 0 && now - o.quiet > w->others)
        w->others = now - o.quiet;
    w->nothers = o.n;
}

/* All ranks of the step. */
static bool all_quiet (struct watch *w, double seconds)
{
    double since = monotonic () - seconds;

    if (w->roots.last_end > since || count_quiet (w, seconds) < w->roots.n)
        return false;
    hear_others (w);
    return w->others <= since;
}

/* Say that this one lives, and since when its ranks show nothing. */
static void touch (struct watch *w)
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
    snprintf (path, sizeof (path), "%s/watch-%s", w->dir, w->node);
    debug_write (path, line);
    w->touched = now;
    hear_others (w);
}

/* ---- a dump ---- */

static void dump_one (struct watch *w, long dump, long rank, double until)
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
        debug_path (path, sizeof (path), w->dir, dump, file);
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

static void serve (struct watch *w, long dump)
{
    double until = monotonic () + DUMP_SECONDS;
    char path[PATH_MAX];
    char file[64];

    debug_each (w->dir, "pipe_", ask_recorder, NULL);
    ranks_look (w->roots.ranks);
    for (size_t i = 0; i < w->roots.n; i++) {
        dump_one (w, dump, w->roots.list[i].rank, until);
        touch (w);
    }
    snprintf (file, sizeof (file), "node-%s", w->node);
    debug_path (path, sizeof (path), w->dir, dump, file);
    debug_write (path, "");
    w->served = dump;
    look (w, 1);
}

/* The one that asked tells, after all nodes have theirs there. */
static void tell (struct watch *w, long dump, const char *reason)
{
    long missing = debug_wait (w->dir, dump, OTHERS_SECONDS, has_ranks, w);
    struct stack *stacks;
    size_t *group;
    size_t n = debug_read (w->dir, dump, &stacks, &group);
    char where[DEBUG_LINE / 2] = "";
    char line[DEBUG_LINE * 2];
    char more[64] = "";
    char path[PATH_MAX];

    if (n > 0)
        stacks_line (stacks, group, n, where, sizeof (where));
    if (missing > 0)
        snprintf (more, sizeof (more), "; %ld nodes did not answer", missing);
    snprintf (line,
              sizeof (line),
              "%s: %s%s; stacks of all ranks: %s/dump-%ld",
              reason,
              *where ? where : "no stacks",
              more,
              w->dir,
              dump);
    complain ("%s", line);
    debug_path (path, sizeof (path), w->dir, dump, "line");
    debug_write (path, line);
    free (stacks);
    free (group);
}

/* Of several watchers that have the same verdict one asks; the others find
 * that at their next look for requests.  Returns -1 if it is to wait for that.
 */
static int dump_of_own (struct watch *w, const char *reason)
{
    long dump = w->served + 1;

    if (w->own_dumps >= DUMPS_MAX)
        return 0;
    if (debug_ask (w->dir, dump, reason) == 0) {
        w->own_dumps++;
        serve (w, dump);
        tell (w, dump, reason);
    } else if (errno == EEXIST) {
        return -1;
    } else {
        w->own_dumps = DUMPS_MAX;
        complain ("%s; no stacks: %s: %s", reason, w->dir, strerror (errno));
    }
    return 0;
}

/* ---- verdicts ---- */

static void forget (struct watch *w)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/watch-%s", w->dir, w->node);
    unlink (path);
}

/* SIGABRT: Python's faulthandler says where it was, and the step's status is
 * 134.  Not before all nodes have written.
 */
static void end_ranks (struct watch *w)
{
    double until = monotonic () + OTHERS_SECONDS;
    const struct rank_process *p;
    char path[PATH_MAX];
    struct stat st;
    size_t n;

    debug_path (path, sizeof (path), w->dir, w->served, "line");
    while (stat (path, &st) < 0 && monotonic () < until && has_ranks (w))
        poll (NULL, 0, 200);
    forget (w); /* Slurm may end this with the last rank */
    ranks_look (w->roots.ranks);
    p = ranks_all (w->roots.ranks, &n);
    for (size_t i = n; i-- > 0;) {
        kill (p[i].pid, SIGCONT);
        kill (p[i].pid, SIGABRT);
    }
    until = monotonic () + ABORT_SECONDS;
    while (monotonic () < until && has_ranks (w))
        poll (NULL, 0, 200);
    ranks_look (w->roots.ranks);
    p = ranks_all (w->roots.ranks, &n);
    for (size_t i = 0; i < n; i++)
        kill (p[i].pid, SIGKILL);
}

static void on_hang (struct watch *w)
{
    char reason[256];

    if (!all_quiet (w, w->limit)) {
        if (count_quiet (w, w->limit / 2) == 0)
            w->told_hang = w->told_part = false;
        return;
    }
    if (!w->told_hang) {
        snprintf (reason,
                  sizeof (reason),
                  "no progress for %.0f s%s",
                  w->limit,
                  w->kills ? ", the step is ended" : "");
        if (dump_of_own (w, reason) < 0)
            return;
    }
    w->told_hang = true;
    if (w->kills)
        end_ranks (w);
}

/* Some go on: they may save or evaluate for the others; or be in a loop. */
static void on_part (struct watch *w)
{
    size_t quiet = count_quiet (w, PATIENCE * w->limit);
    char reason[256];

    if (w->told_hang || w->told_part || quiet == 0 || quiet * 2 < w->roots.n)
        return;
    snprintf (reason,
              sizeof (reason),
              "%zu of %zu ranks on %s have made no progress for %.0f s while "
              "others have",
              quiet,
              w->roots.n,
              w->host,
              PATIENCE * w->limit);
    w->told_part = dump_of_own (w, reason) == 0;
}

static void on_end (struct watch *w)
{
    double now = monotonic ();
    double wait = clamp (w->limit / 2, 0, AFTER_END_SECONDS);
    char end[400];
    char reason[512];

    if (w->roots.ended_at <= 0 || w->told_end || w->told_hang
        || now - w->roots.ended_at < wait || !all_quiet (w, wait))
        return;
    snprintf (reason,
              sizeof (reason),
              "%s and %zu ranks on %s wait",
              roots_end (&w->roots, w->dir, end, sizeof (end)),
              w->roots.n,
              w->host);
    if (dump_of_own (w, reason) == 0)
        w->told_end = w->told_hang = true;
}

/* A dump's folder comes before its reason, unless who asked has died. */
static bool has_reason (struct watch *w, long dump, char *reason)
{
    char path[PATH_MAX];
    double now = monotonic ();

    debug_path (path, sizeof (path), w->dir, dump, "reason");
    debug_line (path, reason, DEBUG_LINE);
    if (!*reason && w->without_reason != dump) {
        w->without_reason = dump;
        w->since = now;
    }
    return *reason || now - w->since > REASON_SECONDS;
}

static void on_request (struct watch *w)
{
    long newest = debug_newest (w->dir);
    char reason[DEBUG_LINE];

    while (w->served < newest && has_reason (w, w->served + 1, reason)) {
        serve (w, w->served + 1);
        if (!strncmp (reason, "no progress", 11)) {
            w->told_hang = true;
            if (w->kills)
                end_ranks (w);
        } else if (strncmp (reason, "asked for", 9) != 0) {
            w->told_end = w->told_part = true;
        }
    }
}

/* ---- the whole ---- */

static void watch_ranks (struct watch *w)
{
    double tick = clamp (w->limit / 50, 0.2, 2);
    double look_every = clamp (w->limit / 50, 0.2, 10);
    double sample_every = clamp (w->limit / 40, 0.5, 20);

    srand48 (getpid ()); /* not in step with what the ranks do */
    for (roots_find (&w->roots); !is_over (w); roots_find (&w->roots)) {
        double now = monotonic ();
        if (now - w->touched >= touch_every (w))
            touch (w);
        if (w->roots.n > 0) {
            on_request (w);
            if (now - w->looked >= look_every) {
                look (w, 0);
                w->looked = now;
            }
            if (now - w->sampled >= sample_every
                && count_quiet (w, w->limit / 4) > 0)
                take_samples (w);
            on_end (w);
            on_hang (w);
            on_part (w);
        }
        roots_wait (&w->roots,
                    w->roots.n > 0 ? tick * (0.5 + drand48 ()) : idle (w));
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

static void clean_up (struct watch *w)
{
    bool is_last = true;

    forget (w);
    debug_each (w->dir, "watch-", clear_flag, &is_last);
    if (is_last)
        debug_each (w->dir, "pipe_", remove_file, NULL);
    rmdir (w->dir); /* if nothing was written */
}

static int watch_create (const struct settings *st, struct watch *w)
{
    const char *job = getenv ("SLURM_JOB_ID") ?: "";
    const char *step = getenv ("SLURM_STEP_ID") ?: "";
    struct slurmdl_error err = { "" };

    w->dir = st->args[0];
    w->limit = strtod (st->args[1], NULL);
    w->task = atoi (st->args[2]);
    w->kills = st->nargs > 3 && !strcmp (st->args[3], "kill");
    gethostname (w->host, sizeof (w->host) - 1);
    snprintf (w->host,
              sizeof (w->host),
              "%s",
              getenv ("SLURMD_NODENAME") ?: strdupa (w->host));
    snprintf (w->node, sizeof (w->node), "%s", getenv ("SLURM_NODEID") ?: "0");
    w->begun = monotonic ();
    w->touched = -LONG_AGO;
    w->served = debug_newest (w->dir);
    if (w->limit <= 0)
        return EXIT_USAGE;
    w->roots.ranks = ranks_create ("/proc", job, step, &err);
    w->progress = progress_create ("/proc");
    return w->roots.ranks && w->progress ? EXIT_OK : EXIT_FAILED;
}

int cmd_watch (const struct settings *st)
{
    struct watch *w = calloc (1, sizeof (*w));
    int rv = EXIT_FAILED;

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
