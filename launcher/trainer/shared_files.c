/* SPDX-License-Identifier: Apache-2.0 */
/* Files that several trials write in the folder that they share. */
#include "launcher/trainer/shared_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/working_copy.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/storage/inside.h"

#define NOTE_NAME ".written"

enum {
    DEPTH_MAX = 6,
    NAMES_MAX = 1000, /* of one folder */
    FILES_MAX = 100,
    NOTE_MAX = 512 << 10,
    TRIALS_MAX = 200,
    SLACK = 2, /* s between the clocks of two file systems */
};

/* A folder may be large and far away, and the next trial waits. */
static const double SCAN_SECONDS = 0.1;

static double timespec_seconds (struct timespec t)
{
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- at the end of an attempt ---- */

struct shared_scan {
    double since, until;
    dev_t clock;         /* the file system that gave 'since' its time */
    double slack;        /* s that its clock and that of a file may differ */
    bool frozen;         /* a copy of the code: nobody edits it */
    const char *root;    /* where links of a copy of the code lead, ... */
    const char *dir;     /* ... but for those into the experiment, which scripts make */
    struct stat said[4]; /* where this process and its parent write */
    FILE *out;
    int n;
};

static void find_outputs (struct shared_scan *c)
{
    char path[64];

    for (int i = 0; i < 4; i++) {
        snprintf (path, sizeof (path), "/proc/%ld/fd/%d", (long)(i < 2 ? getpid () : getppid ()),
                  1 + i % 2);
        if (stat (path, &c->said[i]) < 0)
            c->said[i] = (struct stat){ .st_ino = 0 };
    }
}

static bool is_own_output (const struct shared_scan *c, const struct stat *st)
{
    for (int i = 0; i < 4; i++)
        if (c->said[i].st_ino == st->st_ino && c->said[i].st_dev == st->st_dev)
            return true;
    return false;
}

/* What a user edits, or has other programs write, while trials run. */
static bool is_of_user (const char *name)
{
    static const char *const ends[] = { ".py",  ".ipynb", ".sh",  ".R",    ".jl",  ".pl",  ".c",
                                        ".h",   ".cc",    ".cpp", ".cu",   ".md",  ".j2",  ".out",
                                        ".err", ".log",   ".tex", ".conf", ".yml", ".yaml" };
    const char *end = strrchr (name, '.');

    for (size_t i = 0; end && i < sizeof (ends) / sizeof (*ends); i++)
        if (!strcmp (end, ends[i]))
            return true;
    return strchr (name, '~') || *name == '#';
}

/* Experiments, and environments of Python. */
static bool is_no_output_folder (int folder, const char *name)
{
    static const char *const marks[] = { "experiment.conf", "flow.json", "pyvenv.cfg",
                                         "conda-meta" };
    char path[NAME_MAX + 32];

    for (size_t i = 0; i < sizeof (marks) / sizeof (*marks); i++) {
        snprintf (path, sizeof (path), "%s/%s", name, marks[i]);
        if (faccessat (folder, path, F_OK, 0) == 0)
            return true;
    }
    return !strcmp (name, "__pycache__") || !strcmp (name, "node_modules");
}

static bool path_is_printable (const char *name)
{
    while (*name && !iscntrl ((unsigned char)*name))
        name++;
    return !*name;
}

static bool is_below (const char *path, const char *dir)
{
    size_t n = strlen (dir);

    return !strncmp (path, dir, n) && path[n] == '/';
}

/* Whether a link of an attempt's copy leads to what was not frozen, and is not
 * one that a script has made.
 */
static bool is_shared_link (const struct shared_scan *c, int folder, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat (folder, name, target, sizeof (target) - 1);

    target[n > 0 ? n : 0] = '\0';
    return is_below (target, c->root) && !is_below (target, c->dir);
}

static bool was_written (struct shared_scan *c, const struct stat *st, const char *name)
{
    double slack = st->st_dev == c->clock ? 0 : SLACK;

    /* an empty file has nothing of a trial's: it is a lock */
    if (!S_ISREG (st->st_mode) || st->st_size == 0
        || timespec_seconds (st->st_mtim) < c->since - slack || (!c->frozen && is_of_user (name))
        || is_own_output (c, st))
        return false;
    c->slack = fmax (c->slack, slack);
    return true;
}

/* Takes over 'folder'.  Links to folders are followed: what scripts write goes
 * there as well.  Of an attempt's 'own' folder only what they lead to counts.
 */
static void scan_folder (struct shared_scan *c, int folder, const char *below, int depth, bool own)
{
    DIR *d = fdopendir (folder);
    struct dirent *e;
    struct stat st;
    int names = 0;
    char *path;
    bool mine;

    if (!d)
        close (folder);
    while (d && c->n < FILES_MAX && names++ < NAMES_MAX && monotonic () < c->until
           && (e = readdir (d))) {
        if (*e->d_name == '.' || !path_is_printable (e->d_name))
            continue;
        mine = own && !is_shared_link (c, folder, e->d_name);
        if (fstatat (folder, e->d_name, &st, mine ? AT_SYMLINK_NOFOLLOW : 0) < 0)
            continue;
        path = xasprintf ("%s%s", below, e->d_name);
        if (!mine && was_written (c, &st, e->d_name)) {
            fprintf (c->out, "%.9f %lld %s\n", timespec_seconds (st.st_mtim), (long long)st.st_size,
                     path);
            c->n++;
        } else if (S_ISDIR (st.st_mode) && depth < DEPTH_MAX
                   && !is_no_output_folder (folder, e->d_name)) {
            int next = openat (folder, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            char *prefix = xasprintf ("%s/", path);
            if (next >= 0)
                scan_folder (c, next, prefix, depth + 1, mine);
            free (prefix);
        }
        free (path);
    }
    if (d)
        closedir (d);
}

/* Its first line has when the attempt began and ended, by the clock that gave
 * the files their times: that of the file system.
 */
static void write_note (int folder, double slack, double begin, const char *list)
{
    struct stat st;
    int fd;

    unlinkat (folder, NOTE_NAME, 0);
    fd = inside_open_at (folder, NOTE_NAME, O_CREAT | O_EXCL | O_WRONLY, 0644, &st);
    if (fd < 0)
        return;
    if (dprintf (fd, "%.9f %.9f\n%s", begin - slack, timespec_seconds (st.st_mtim) + slack, list)
        < 0)
        unlinkat (folder, NOTE_NAME, 0);
    close (fd);
}

void shared_files_note (const struct trial_attempt *a)
{
    const struct experiment *e = a->sweep->exp;
    const bool own = *a->work;
    struct shared_scan c = { .until = monotonic () + SCAN_SECONDS,
                             .frozen = e->file_dir && !own,
                             .root = a->sweep->root,
                             .dir = a->sweep->dir };
    struct stat begun;
    char path[PATH_MAX];
    char *list = NULL;
    size_t size;
    int shared, folder = inside_open (a->dir, O_RDONLY | O_DIRECTORY, 0, NULL);

    if (folder < 0)
        return;
    snprintf (path, sizeof (path), "%s", own ? a->work : e->dir);
    if (own) /* all of the code, of which the trial's folder is a part */
        path[strlen (path) - strlen (sweep_code_below (a->sweep))] = '\0';
    shared = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shared >= 0 && fstatat (folder, "hparams.json", &begun, AT_SYMLINK_NOFOLLOW) == 0) {
        c.out = xopen_memstream (&list, &size);
        c.since = timespec_seconds (begun.st_mtim);
        c.clock = begun.st_dev;
        find_outputs (&c);
        scan_folder (&c, shared, "", 0, own);
        shared = -1;
        xclose_memstream (c.out);
        if (c.n > 0)
            write_note (folder, c.slack, c.since, list);
    }
    free (list);
    if (shared >= 0)
        close (shared);
    close (folder);
}

/* ---- what was noted ---- */

/* The whole note; the caller frees it.  NULL: there is none. */
static char *read_note (const char *attempt)
{
    char *path = xasprintf ("%s/" NOTE_NAME, attempt);
    char *text = file_read_now (path, NOTE_MAX, NULL, NULL, NULL);
    free (path);
    return text;
}

struct noted_file {
    const char *path;
    double time;
    long long size;
};

/* The next line; whether there is one.  Others may have written the note. */
static bool next_noted_file (char **text, struct noted_file *f)
{
    char *line = strsep (text, "\n");
    int at = 0;

    if (!line || sscanf (line, "%lf %lld %n", &f->time, &f->size, &at) != 2 || at == 0 || !line[at]
        || !path_is_printable (line + at))
        return false;
    f->path = line + at;
    return true;
}

int shared_files_each (const char *attempt, int (*f) (const char *path, long long size, void *arg),
                       void *arg)
{
    char *text = read_note (attempt), *at = text;
    struct noted_file file;
    int rv = 0;

    if (at)
        strsep (&at, "\n");
    while (rv == 0 && at && next_noted_file (&at, &file))
        rv = f (file.path, file.size, arg);
    free (text);
    return rv;
}

/* ---- all attempts ---- */

struct noted_attempt {
    long trial;
    double begin, end; /* INFINITY: not known */
    char *text;        /* the note, which 'files' names parts of */
};

struct change {
    const char *path;
    double time;
    long attempt; /* at whose end it was seen */
};

struct all_notes {
    const struct sweep *s;
    struct noted_attempt *attempts;
    long n;
    struct change *changes; /* by path and time */
    long nchanges;
};

/* An attempt that has left no note may have written until it was given up, but
 * not one that has a result or has failed: it changed nothing.
 */
static bool attempt_has_ended (const struct sweep_trial *t, long number)
{
    for (size_t i = 0; i < t->nmilestones; i++)
        if (t->milestones[i].attempt == number)
            return true;
    for (size_t i = 0; i < t->nfailed; i++)
        if (t->failed[i] == number)
            return true;
    return false;
}

static void add_changes (struct all_notes *n, char *at, long attempt)
{
    struct noted_file f;

    while (at && next_noted_file (&at, &f)) {
        XGROW (n->changes, (size_t)n->nchanges);
        n->changes[n->nchanges++] = (struct change){ f.path, f.time, attempt };
    }
}

static void add_noted_attempt (struct all_notes *n, long trial, long number)
{
    struct noted_attempt a = { .trial = trial, .end = INFINITY };
    struct stat st;
    char *dir = xasprintf ("%s/trials/%04ld/a.%ld", n->s->dir, trial, number);
    char *path = xasprintf ("%s/hparams.json", dir);
    char *at;

    at = a.text = read_note (dir);
    if (a.text) {
        if (sscanf (strsep (&at, "\n"), "%lf %lf", &a.begin, &a.end) != 2)
            a.end = INFINITY;
        add_changes (n, at, n->n);
    } else if (attempt_has_ended (sweep_trial (n->s, trial), number) || lstat (path, &st) < 0)
        goto out;
    else
        a.begin = timespec_seconds (st.st_mtim) - SLACK;
    XGROW (n->attempts, (size_t)n->n);
    n->attempts[n->n++] = a;
out:
    free (path);
    free (dir);
}

static int by_path_and_time (const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    int order = strcmp (x->path, y->path);

    return order ? order : (x->time > y->time) - (x->time < y->time);
}

static void read_notes (struct all_notes *n)
{
    for (long i = 1; i <= n->s->ntrials && i <= TRIALS_MAX; i++) {
        long last = trial_attempts (n->s, sweep_trial (n->s, i));
        for (long k = 1; k <= last; k++)
            add_noted_attempt (n, i, k);
    }
    if (n->nchanges)
        qsort (n->changes, (size_t)n->nchanges, sizeof (*n->changes), by_path_and_time);
}

/* ---- who wrote a file ---- */

/* Which trials may have changed a file at a time: those that ran. */
static void keep_those_at (const struct all_notes *n, double time, bool may[TRIALS_MAX + 1])
{
    bool now[TRIALS_MAX + 1] = { false };

    for (long i = 0; i < n->n; i++)
        if (n->attempts[i].begin <= time && time <= n->attempts[i].end)
            now[n->attempts[i].trial] = true;
    for (long i = 1; i <= TRIALS_MAX; i++)
        may[i] = may[i] && now[i];
}

/* No trial ran at all times at which it changed. */
static bool has_no_single_writer (const struct all_notes *n, const struct change *c, long k)
{
    bool may[TRIALS_MAX + 1];

    memset (may, true, sizeof (may));
    for (long i = 0; i < k; i++)
        keep_those_at (n, c[i].time, may);
    return !memchr (may + 1, true, TRIALS_MAX);
}

/* A text of a trial's hyperparameters. */
static bool has_text_of (const char *path, const json_t *v)
{
    const char *key;
    json_t *in;

    json_object_foreach ((json_t *)v, key, in)
        if (has_text_of (path, in))
            return true;
    return json_is_string (v) && json_string_length (v) > 0
           && strcasestr (path, json_string_value (v));
}

/* Whether a name may be that of one trial's file: it has its number, the value
 * of a hyperparameter, a time ...
 */
static bool may_be_own (const struct all_notes *n, const char *path)
{
    const char *base = strrchr (path, '/'), *end;
    bool own = false;

    base = base ? base + 1 : path;
    end = strrchr (base, '.') ? strrchr (base, '.') : base + strlen (base);
    for (const char *at = path; at < end; at++)
        own |= isdigit ((unsigned char)*at) != 0;
    for (long i = 0; !own && i < n->n; i++)
        own = has_text_of (path, trial_hparams (n->s, sweep_trial (n->s, n->attempts[i].trial)));
    return own;
}

/* What a training saves, and no data that the first of several prepares. */
static bool is_model (const char *path)
{
    static const char *const words[] = { "model", "best",   "last",  "latest", "check",
                                         "ckpt",  "weight", "final", "state" };
    const char *base = strrchr (path, '/');

    base = base ? base + 1 : path;
    for (size_t i = 0; i < sizeof (words) / sizeof (*words); i++)
        if (strcasestr (base, words[i]))
            return is_checkpoint_name (base);
    return false;
}

/* Two trials that ran at the same time: it changed while both did, and again
 * when one of them was over; a model need not change again.
 */
static bool has_two_at_once (const struct all_notes *n, const struct change *c, long k,
                             long pair[2])
{
    for (long i = 0; i < k; i++)
        for (long j = 0; j < k; j++) {
            const struct noted_attempt *a = &n->attempts[c[i].attempt];
            const struct noted_attempt *b = &n->attempts[c[j].attempt];
            if (a->trial == b->trial || c[i].time < b->begin || a->end > b->end
                || (c[j].time <= a->end && !is_model (c[j].path)))
                continue;
            pair[0] = a->trial < b->trial ? a->trial : b->trial;
            pair[1] = a->trial < b->trial ? b->trial : a->trial;
            return true;
        }
    return false;
}

static bool has_two_writers (const struct all_notes *n, const struct change *c, long k,
                             long pair[2])
{
    pair[0] = pair[1] = n->attempts[c[0].attempt].trial;
    for (long i = 1; i < k && pair[1] == pair[0]; i++)
        pair[1] = n->attempts[c[i].attempt].trial;
    if (pair[0] == pair[1])
        return false;
    return has_no_single_writer (n, c, k)
           || (!may_be_own (n, c->path) && has_two_at_once (n, c, k, pair));
}

bool shared_files_find (const struct sweep *s, struct shared_file *found)
{
    struct all_notes n = { .s = s };
    long files = 0;

    read_notes (&n);
    for (long i = 0, k; i < n.nchanges; i += k) {
        const struct change *c = &n.changes[i];
        long pair[2];
        for (k = 1; i + k < n.nchanges && !strcmp (c[k].path, c->path);)
            k++;
        if (!has_two_writers (&n, c, k, pair) || files++)
            continue;
        snprintf (found->path, sizeof (found->path), "%s", c->path);
        memcpy (found->trials, pair, sizeof (pair));
    }
    found->others = files - 1;
    for (long i = 0; i < n.n; i++)
        free (n.attempts[i].text);
    free (n.attempts);
    free (n.changes);
    return files > 0;
}
