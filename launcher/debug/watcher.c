/* SPDX-License-Identifier: Apache-2.0 */
/* dl watch-ranks, which the plugin starts next to the ranks of a node to detect hangs and
 * act on them.
 */
#include "launcher/debug/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/debug/live_ranks.h"
#include "launcher/debug/stacks.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/storage/inside.h"

/* ---- samples of Python stacks ---- */

enum { PROCESSES = 256, SAMPLES_MAX = 1024 };

/* Initialize it with zeros. */
struct samples {
    struct sample {
        pid_t pid;
        uint64_t hash; /* of the stack */
    } list[SAMPLES_MAX];
    size_t n;
};

/* Hash the stack of the main thread, which Python prints last. */
static uint64_t hash_stack (const char *text)
{
    uint64_t h = 1469598103934665603u;
    const char *last = text;

    for (const char *p = text; (p = strstr (p, "hread 0x")); p++)
        last = p;
    last += strcspn (last, "\n");
    for (; *last; last++)
        h = (h ^ (unsigned char)*last) * 1099511628211u;
    return h;
}

/* Return whether the stack has changed since the last sample. */
static bool has_changed (struct samples *s, const struct rank_process *p)
{
    char *text = dump_python (p->pid, p->state, false);
    bool changed = false;
    uint64_t hash;
    size_t i = 0;

    if (!text)
        return false;
    hash = hash_stack (text);
    free (text);
    while (i < s->n && s->list[i].pid != p->pid)
        i++;
    if (i < s->n)
        changed = s->list[i].hash != hash;
    if (i < SAMPLES_MAX)
        s->list[i] = (struct sample){ p->pid, hash };
    if (i == s->n && i < SAMPLES_MAX)
        s->n++;
    return changed;
}

static bool rank_goes_on (struct samples *s, const struct rank_process *p, size_t n)
{
    enum process_kind kinds[PROCESSES];
    bool changed = false;

    if (n == 0 || n > PROCESSES)
        return false;
    family_kinds ("/proc", p, n, kinds);
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == PROCESS_MAIN)
            changed |= has_changed (s, &p[i]);
    return changed;
}

/* Sample the stacks of ranks that have made no progress since 'since'.  A stack that differs from
 * the last sample counts as progress.  Sampling itself makes the ranks run: the caller must call
 * progress_look() with 'asked' afterwards.
 */
static void samples_take (struct samples *s, const struct roots *roots,
                          struct rank_progress *progress, double since)
{
    double now = monotonic ();

    for (size_t r = 0; r < roots->n; r++) {
        long rank = roots->list[r].rank;
        const struct rank_process *p;
        size_t n;
        if (progress_last (progress, rank, now) > since)
            continue;
        p = ranks_of (roots->ranks, rank, &n);
        if (rank_goes_on (s, p, n))
            progress_mark (progress, rank, monotonic ());
    }
}

/* ---- observe the ranks ---- */

struct watcher {
    const char *dir; /* name of the folder, for messages */
    struct own_folder folder;
    double limit;
    pid_t task; /* started this watcher */
    bool kills;
    char host[64];
    char node[32]; /* number of this node in the step */
    struct roots roots;
    struct rank_progress *progress;
    struct samples samples;
    double begun, touched, looked, sampled;
    double others; /* latest progress on other nodes */
    long nothers;  /* watchers of other nodes */
    long most;     /* largest 'nothers' so far */
    long served;   /* number of the last dump that this node took part in */
    int own_dumps;
    bool hang_reported, end_reported, part_reported;
    long without_reason; /* a dump that has had no reason since 'since' */
    double since;
};

enum {
    START_SECONDS = 2,       /* until all tasks run, if there are several */
    FIRST_RANK_SECONDS = 60, /* until the first rank is found */
    LATE_SECONDS = 60,       /* until all nodes have a watcher */
};

/* Whether to exit.  Do so soon, because the step's standard error stays open until then; but not
 * before all tasks could start: some may have ended before others start their program.
 */
static bool watcher_is_over (const struct watcher *w)
{
    double now = monotonic ();

    if (w->roots.n > 0)
        return false;
    if (kill (w->task, 0) == 0)
        return w->roots.ended_at <= 0 && now - w->begun > FIRST_RANK_SECONDS;
    return w->roots.ended_at > 0 || !strchr (getenv ("SLURM_GTIDS") ?: "", ',')
           || now - w->begun > START_SECONDS;
}

/* Return the seconds until the next look while there is no rank. */
static double watcher_idle (const struct watcher *w)
{
    double last = w->roots.ended_at > 0 ? w->roots.ended_at : w->begun;

    return monotonic () - last < START_SECONDS ? 0.1 : 1;
}

/* Find the ranks; 'arg' is a struct watcher. */
static bool watcher_has_ranks (void *arg)
{
    struct watcher *w = arg;

    roots_find (&w->roots);
    return w->roots.n > 0;
}

/* Observe the progress of the ranks; 'asked' as for progress_look(). */
static void watcher_look (struct watcher *w, double asked)
{
    const struct rank_process *all;
    size_t n;

    all = ranks_all (w->roots.ranks, &n);
    progress_look (w->progress, all, n, monotonic (), asked);
}

/* Compare the Python stacks of ranks without visible progress. */
static void watcher_sample (struct watcher *w)
{
    double since = monotonic () - w->limit / 4;

    samples_take (&w->samples, &w->roots, w->progress, since);
    watcher_look (w, since);
    w->sampled = monotonic ();
}

/* Count the ranks of this node that have made no progress for 'seconds'. */
static size_t watcher_count_quiet (const struct watcher *w, double seconds)
{
    double now = monotonic ();
    size_t n = 0;

    for (size_t i = 0; i < w->roots.n; i++)
        n += now - progress_last (w->progress, w->roots.list[i].rank, now) >= seconds;
    return n;
}

/* Whether a node may still get its watcher, which can start late on a busy node. */
static bool may_still_come (const struct watcher *w)
{
    return w->most + 1 < environment_number ("SLURM_STEP_NUM_NODES", 1)
           && monotonic () - w->begun < LATE_SECONDS;
}

/* Update the time after which no rank of other nodes has made progress.  A watcher that leaves,
 * because all its ranks have ended, counts as progress.
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

/* Whether no rank on any node of the step has made progress for 'seconds'. */
static bool watcher_all_quiet (struct watcher *w, double seconds)
{
    double since = monotonic () - seconds;

    if (w->roots.last_end > since || watcher_count_quiet (w, seconds) < w->roots.n)
        return false;
    observe_others (w);
    return w->others <= since;
}

/* Tell the other nodes' watchers when a rank of this node last made progress. */
static void watcher_touch (struct watcher *w)
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

static void watcher_forget (struct watcher *w)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/watch-%s", w->folder.path, w->node);
    unlink (path);
}

/* ---- dumps: the stacks of all ranks of a node ---- */

enum {
    DUMP_SECONDS = 60,
    OTHERS_SECONDS = 90, /* NFS shows a new file to other nodes late */
    DUMPS_MAX = 5,       /* requests per watcher */
};

static void dump_one (struct watcher *w, long dump, long rank, double until)
{
    const struct rank_process *p;
    char file[32];
    char path[PATH_MAX];
    char *text;
    size_t size;
    size_t n;
    FILE *f;

    p = ranks_of (w->roots.ranks, rank, &n);
    if (n == 0)
        return;
    f = xopen_memstream (&text, &size);
    dump_rank (f, w->host, p, n, until);
    xclose_memstream (f);
    snprintf (file, sizeof (file), "rank-%ld", rank);
    debug_path (path, sizeof (path), w->folder.path, dump, file);
    debug_write (path, text);
    free (text);
}

/* Writing to its pipe makes PyTorch dump its flight recorder.  Only pipes of processes on
 * this node have a reader.
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

/* Write the stacks of this node's ranks for a dump that was requested. */
static void watcher_dump (struct watcher *w, long dump)
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

/* The watcher that requested a dump reports it once all nodes have written. */
static void report_dump (struct watcher *w, long dump, const char *reason)
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

/* Request the next dump, take part in it and report the result.  If several watchers
 * detect the same hang, one request succeeds; in the other watchers this returns -1, and
 * they must wait for that dump.
 */
static int watcher_request (struct watcher *w, enum debug_cause cause, const char *reason)
{
    long dump = w->served + 1;

    if (w->own_dumps >= DUMPS_MAX)
        return 0;
    if (debug_request (w->folder.path, dump, cause, reason) == 0) {
        w->own_dumps++;
        watcher_dump (w, dump);
        report_dump (w, dump, reason);
    } else if (errno == EEXIST) {
        return -1;
    } else {
        w->own_dumps = DUMPS_MAX;
        complain ("%s; no stacks: %s: %s", reason, w->dir, strerror (errno));
    }
    return 0;
}

/* ---- detect hangs, and act on them ---- */

enum {
    AFTER_END_SECONDS = 30, /* without progress after a rank has ended */
    REASON_SECONDS = 5,     /* from creating a dump's folder to writing its reason */
    ABORT_SECONDS = 10,
    PART_FACTOR = 3, /* multiplies the limit if other ranks make progress */
};

/* Kill the ranks with SIGABRT so that Python's faulthandler prints where they were and
 * the step exits with status 134.  Wait until all nodes have written their stacks.
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
    watcher_forget (w); /* first, because Slurm may end this process with the last rank */
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

/* Act if no rank of the step makes progress. */
static void hang_check (struct watcher *w)
{
    char reason[256];

    if (!watcher_all_quiet (w, w->limit)) {
        if (watcher_count_quiet (w, w->limit / 2) == 0)
            w->hang_reported = w->part_reported = false;
        return;
    }
    if (!w->hang_reported) {
        snprintf (reason, sizeof (reason), "no progress for %.0f s%s", w->limit,
                  w->kills ? ", ending the step" : "");
        if (watcher_request (w, DEBUG_HANG, reason) < 0)
            return;
    }
    w->hang_reported = true;
    if (w->kills)
        end_ranks (w);
}

/* Request stacks if at least half of this node's ranks hang while others make progress.  Allow them
 * more time, because the others may be saving or evaluating for all.  Do not end the step.
 */
static void hang_check_part (struct watcher *w)
{
    size_t quiet = watcher_count_quiet (w, PART_FACTOR * w->limit);
    char reason[256];

    if (w->hang_reported || w->part_reported || quiet == 0 || quiet * 2 < w->roots.n)
        return;
    snprintf (reason, sizeof (reason),
              "%zu of %zu ranks on %s have made no progress for %.0f s while others have", quiet,
              w->roots.n, w->host, PART_FACTOR * w->limit);
    w->part_reported = watcher_request (w, DEBUG_PART, reason) == 0;
}

/* Act if a rank has ended and the others wait for it. */
static void hang_check_end (struct watcher *w)
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

/* A dump's directory appears before its reason.  If the requesting process has died, the
 * reason never appears.
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

/* Take part in the dumps that others requested, and act on their cause. */
static void hang_serve (struct watcher *w)
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

/* ---- the command ---- */

enum { LONG_AGO = 1000, READY_FD = 3 };

static double clamp_seconds (double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

static double touch_every (const struct watcher *w)
{
    return clamp_seconds (w->limit / 10, 0.5, 10);
}

static void watch_ranks (struct watcher *w)
{
    double tick = clamp_seconds (w->limit / 50, 0.2, 2);
    double look_every = clamp_seconds (w->limit / 50, 0.2, 10);
    double sample_every = clamp_seconds (w->limit / 40, 0.5, 20);

    srand48 (getpid ()); /* do not sample in step with the ranks */
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

static void remove_old_file (const char *dir, const char *name, void *arg)
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

static void clean_folder (struct watcher *w)
{
    bool is_last = true;

    watcher_forget (w);
    debug_each (w->folder.path, "watch-", clear_flag, &is_last);
    if (is_last)
        debug_each (w->folder.path, "pipe_", remove_old_file, NULL);
    rmdir (w->dir); /* fails unless the folder is empty */
}

/* The plugin passes a socket as standard input, or none. */
static int find_step_end_socket (void)
{
    struct stat st;

    return fstat (0, &st) == 0 && S_ISSOCK (st.st_mode) ? 0 : -1;
}

static int watch_create (const struct command_line *line, struct watcher *w)
{
    const char *job = getenv ("SLURM_JOB_ID") ?: "";
    const char *step = getenv ("SLURM_STEP_ID") ?: "";
    struct slurmdl_error err = { "" };

    w->dir = line->args[0];
    w->limit = strtod (line->args[1], NULL);
    w->task = atoi (line->args[2]);
    w->kills = line->nargs > 3 && !strcmp (line->args[3], "kill");
    gethostname (w->host, sizeof (w->host) - 1);
    snprintf (w->host, sizeof (w->host), "%s", getenv ("SLURMD_NODENAME") ?: strdupa (w->host));
    snprintf (w->node, sizeof (w->node), "%s", getenv ("SLURM_NODEID") ?: "0");
    w->roots.step_end = find_step_end_socket ();
    w->begun = monotonic ();
    w->touched = -LONG_AGO;
    if (w->limit <= 0)
        return EXIT_USAGE;
    if (own_folder_open (&w->folder, w->dir, 0755, &err) < 0)
        return fail (&err);
    w->served = debug_newest (w->folder.path);
    w->roots.ranks = ranks_create ("/proc", job, step, &err);
    w->progress = progress_create ("/proc");
    return w->roots.ranks ? EXIT_OK : EXIT_FAILED;
}

int cmd_watch_ranks (const struct command_line *line)
{
    struct watcher *w = xcalloc (1, sizeof (*w));
    int rv;

    close (READY_FD); /* tells the plugin that this process now notices the end of the step */
    if ((rv = watch_create (line, w)) == EXIT_OK) {
        watch_ranks (w);
        clean_folder (w);
    }
    ranks_destroy (w->roots.ranks);
    progress_destroy (w->progress);
    free (w);
    return rv;
}
