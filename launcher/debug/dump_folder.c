/* SPDX-License-Identifier: Apache-2.0 */
/* The directory dl-debug-JOB.STEP of a step that runs with --dl-debug. */
#include "launcher/debug/debug.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/clock.h"

enum { STACKS_MAX = 4096, TEXT_MAX = 4 << 20, WAIT_MS = 200 };

void debug_path (char *path, size_t size, const char *dir, long dump, const char *file)
{
    snprintf (path, size, "%s/dump-%ld%s%s", dir, dump, *file ? "/" : "", file);
}

void debug_each (const char *dir, const char *prefix,
                 void (*f) (const char *dir, const char *name, void *arg), void *arg)
{
    size_t n = strlen (prefix);
    struct dirent *e;
    DIR *d = opendir (dir);

    if (!d)
        return;
    while ((e = readdir (d)))
        if (!strncmp (e->d_name, prefix, n))
            f (dir, e->d_name, arg);
    closedir (d);
}

static void find_newest (const char *dir, const char *name, void *arg)
{
    long n = strtol (name + 5, NULL, 10);

    (void)dir;
    if (n > *(long *)arg)
        *(long *)arg = n;
}

long debug_newest (const char *dir)
{
    long newest = 0;

    debug_each (dir, "dump-", find_newest, &newest);
    return newest;
}

int debug_write (const char *path, const char *text)
{
    char temporary[PATH_MAX + 64];
    size_t n = strlen (text);
    int fd;
    bool ok;

    snprintf (temporary, sizeof (temporary), "%s.%d~", path, (int)getpid ());
    /* left by a killed process with this PID, or a link that another user made */
    unlink (temporary);
    fd = open (temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    ok = write (fd, text, n) == (ssize_t)n;
    if (close (fd) == 0 && ok && rename (temporary, path) == 0)
        return 0;
    unlink (temporary);
    return -1;
}

/* Read the first line of a file, or "" if there is none. */
static void first_line_of_file (const char *path, char *buf, size_t size)
{
    char *text = file_text (path, size - 1);

    snprintf (buf, size, "%s", text ? text : "");
    buf[strcspn (buf, "\n")] = '\0';
    free (text);
}

static const char *const cause_words[DEBUG_CAUSES] = {
    [DEBUG_REQUEST] = "request",
    [DEBUG_HANG] = "hang",
    [DEBUG_PART] = "part",
    [DEBUG_END] = "end",
};

int debug_request (const char *dir, long dump, enum debug_cause cause, const char *reason)
{
    char path[PATH_MAX];
    char text[DEBUG_LINE + 16];

    debug_path (path, sizeof (path), dir, dump, "");
    if (mkdir (path, 0755) < 0)
        return -1;
    debug_path (path, sizeof (path), dir, dump, "reason");
    snprintf (text, sizeof (text), "%.*s\n%s\n", DEBUG_LINE - 1, reason, cause_words[cause]);
    debug_write (path, text);
    return 0;
}

enum debug_cause debug_cause (const char *dir, long dump, char *reason, size_t size)
{
    char path[PATH_MAX];
    char word[32];

    debug_path (path, sizeof (path), dir, dump, "reason");
    first_line_of_file (path, reason, size);
    debug_last_line (path, "", word, sizeof (word));
    for (int i = 0; i < DEBUG_CAUSES; i++)
        if (!strcmp (word, cause_words[i]))
            return (enum debug_cause)i;
    return DEBUG_REQUEST;
}

/* Open a regular file near its end. */
static FILE *open_end (const char *path)
{
    int fd = open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    FILE *f = NULL;

    if (fd >= 0 && fstat (fd, &st) == 0 && S_ISREG (st.st_mode)
        && (st.st_size <= TEXT_MAX || lseek (fd, -TEXT_MAX, SEEK_END) >= 0))
        f = fdopen (fd, "r");
    if (fd >= 0 && !f)
        close (fd);
    return f;
}

void debug_last_line (const char *path, const char *word, char *buf, size_t size)
{
    char line[1024];
    FILE *f = open_end (path);

    *buf = '\0';
    if (!f)
        return;
    while (fgets (line, sizeof (line), f)) {
        line[strcspn (line, "\n")] = '\0';
        if (*line && strstr (line, word))
            snprintf (buf, size, "%s", line);
    }
    fclose (f);
}

/* ---- watchers ---- */

struct watchers {
    struct timespec made; /* mtime of the dump's file 'reason' */
    long n;
};

/* Open the file before fstat() because that makes NFS ask the server for its time. */
static int stat_open (const char *path, struct stat *st)
{
    int fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int rv;

    if (fd < 0)
        return -1;
    rv = fstat (fd, st);
    close (fd);
    return rv;
}

static void count_watcher (const char *dir, const char *name, void *arg)
{
    struct watchers *w = arg;
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (!strchr (name, '~') && stat_open (path, &st) == 0
        && st.st_mtim.tv_sec + DEBUG_STALE >= w->made.tv_sec)
        w->n++;
}

/* Count the watchers that touched their file at most DEBUG_STALE seconds before the
 * reason of the dump was written.  Both times come from the file system, so clocks of
 * nodes need not agree.
 */
static long count_watchers (const char *dir, long dump)
{
    struct watchers w = { .n = 0 };
    char path[PATH_MAX];
    struct stat st;

    debug_path (path, sizeof (path), dir, dump, "reason");
    if (stat (path, &st) < 0)
        return 0;
    w.made = st.st_mtim;
    debug_each (dir, "watch-", count_watcher, &w);
    return w.n;
}

struct folder_observer {
    char own[64];
    time_t now; /* file system's time, from our own file */
    struct debug_others others;
};

static void observe_watcher (const char *dir, const char *name, void *arg)
{
    struct folder_observer *l = arg;
    char path[PATH_MAX];
    char line[256];
    double seconds;
    struct stat st;

    if (!strcmp (name, l->own) || strchr (name, '~'))
        return;
    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if (stat_open (path, &st) < 0 || st.st_mtim.tv_sec + DEBUG_STALE < l->now)
        return;
    first_line_of_file (path, line, sizeof (line));
    if (sscanf (line, "%*s %lf", &seconds) != 1)
        return;
    if (l->others.n++ == 0 || seconds < l->others.quiet)
        l->others.quiet = seconds;
}

struct debug_others debug_others (const char *dir, const char *node)
{
    struct folder_observer l = { .others = { 0, 0 } };
    char path[PATH_MAX];
    struct stat st;

    snprintf (l.own, sizeof (l.own), "watch-%.32s", node);
    snprintf (path, sizeof (path), "%s/%s", dir, l.own);
    if (stat (path, &st) == 0)
        l.now = st.st_mtim.tv_sec;
    debug_each (dir, "watch-", observe_watcher, &l);
    return l.others;
}

static void count_done (const char *dir, const char *name, void *arg)
{
    (void)dir;
    *(long *)arg += !strchr (name, '~');
}

long debug_done (const char *dir, long dump)
{
    char path[PATH_MAX];
    long n = 0;

    debug_path (path, sizeof (path), dir, dump, "");
    debug_each (path, "node-", count_done, &n);
    return n;
}

long debug_wait (const char *dir, long dump, double seconds, bool (*go_on) (void *), void *arg)
{
    double until = monotonic () + seconds;
    long left;

    while ((left = count_watchers (dir, dump) - debug_done (dir, dump)) > 0 && monotonic () < until
           && go_on (arg))
        poll (NULL, 0, WAIT_MS);
    return left > 0 ? left : 0;
}

/* ---- stacks ---- */

struct folder_reader {
    struct stack *stacks;
    size_t n;
};

static void read_rank (const char *dir, const char *name, void *arg)
{
    struct folder_reader *r = arg;
    char path[PATH_MAX];
    char *text;

    if (strchr (name, '~') || r->n == STACKS_MAX) /* still being written, or the list is full */
        return;
    snprintf (path, sizeof (path), "%s/%s", dir, name);
    if ((text = file_text (path, TEXT_MAX)))
        r->n = stacks_parse (text, r->stacks, r->n, STACKS_MAX);
    free (text);
}

size_t debug_read (const char *dir, long dump, struct stack **stacks, size_t **group)
{
    struct folder_reader r = { .stacks = xcalloc (STACKS_MAX, sizeof (*r.stacks)) };
    char path[PATH_MAX];

    *group = xcalloc (STACKS_MAX, sizeof (**group));
    debug_path (path, sizeof (path), dir, dump, "");
    debug_each (path, "rank-", read_rank, &r);
    stacks_group (r.stacks, r.n, *group);
    *stacks = r.stacks;
    return r.n;
}
