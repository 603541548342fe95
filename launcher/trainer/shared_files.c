/* SPDX-License-Identifier: Apache-2.0 */
/* Detect files that several trials write in a folder that they share. */
#include "launcher/trainer/trainer.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/clock.h"
#include "runtime/storage/inside.h"

#define NOTE_NAME ".written"

enum {
    DEPTH_MAX = 6,
    NAMES_MAX = 1000, /* of one folder */
    FILES_MAX = 100,
    NOTE_MAX = 512 << 10,
    TRIALS_MAX = 200,
    SLACK = 2, /* seconds that the clocks of two file systems may differ */
};

/* The folder may be large and on a slow file system, and the next trial waits. */
static const double SCAN_SECONDS = 0.1;

static double timespec_seconds (struct timespec t)
{
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- at the end of an attempt ---- */

struct shared_scan {
    double since, until;
    dev_t clock;         /* the file system whose clock gave 'since' */
    double slack;        /* seconds that its clock and a file's may differ */
    bool frozen;         /* it is a copy of the code, which nobody edits */
    const char *root;    /* where links of a copy of the code lead, ... */
    const char *dir;     /* ... but for those into the experiment, which scripts make */
    struct stat said[4]; /* the output files of this process and its parent */
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

/* Files that users edit, or that other programs write, while trials run. */
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

/* Experiments and Python environments. */
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

/* Whether a link in an attempt's copy leads to something that was not frozen, and was not created
 * by a script.
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

    /* an empty file holds nothing of a trial; it is probably a lock */
    if (!S_ISREG (st->st_mode) || st->st_size == 0
        || timespec_seconds (st->st_mtim) < c->since - slack || (!c->frozen && is_of_user (name))
        || is_own_output (c, st))
        return false;
    c->slack = fmax (c->slack, slack);
    return true;
}

/* Closes 'folder'.  Follows links to folders, because scripts write there, too.  In an attempt's
 * 'own' folder only what links lead to counts.
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

/* The first line says when the attempt began and ended, by the file system's clock, which also
 * stamps the files.
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
    if (own) /* the whole code, of which the trial's folder is a part */
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

/* Parse the next line; returns whether there is one.  Others may have written the note. */
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
    double begin, end; /* INFINITY: unknown */
    char *text;        /* the note, which 'files' names parts of */
};

struct change {
    const char *path;
    double time;
    long attempt; /* at whose end the change was seen */
};

struct all_notes {
    const struct sweep *s;
    struct noted_attempt *attempts;
    long n;
    struct change *changes; /* by path and time */
    long nchanges;
};

/* Without a note, an attempt that has a result or failed changed nothing; any other one may have
 * written until it was given up.
 */
static bool attempt_has_ended (const struct sweep_trial *t, long number)
{
    for (size_t i = 0; i < t->nmilestones; i++)
        if (t->milestones[i].attempt == number)
            return true;
    for (size_t i = 0; i < t->nfailed; i++)
        if (t->failed[i].number == number)
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

/* Keep the trials that ran at that time, and so may have changed the file. */
static void keep_those_at (const struct all_notes *n, double time, bool may[TRIALS_MAX + 1])
{
    bool now[TRIALS_MAX + 1] = { false };

    for (long i = 0; i < n->n; i++)
        if (n->attempts[i].begin <= time && time <= n->attempts[i].end)
            now[n->attempts[i].trial] = true;
    for (long i = 1; i <= TRIALS_MAX; i++)
        may[i] = may[i] && now[i];
}

/* Whether no trial ran at all the times at which the file changed. */
static bool has_no_single_writer (const struct all_notes *n, const struct change *c, long k)
{
    bool may[TRIALS_MAX + 1];

    memset (may, true, sizeof (may));
    for (long i = 0; i < k; i++)
        keep_those_at (n, c[i].time, may);
    return !memchr (may + 1, true, TRIALS_MAX);
}

/* Whether the path contains a text value of a trial's hyperparameters. */
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

/* Whether the name may be specific to one trial: it contains a number, a time, the value of a
 * hyperparameter ...
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

/* Whether it looks like a model that training saves, rather than data that the first trial
 * prepares.
 */
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

/* Find two trials that ran at the same time: the file changed while both ran, and again after one
 * of them had ended.  A model need not have changed again.
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
