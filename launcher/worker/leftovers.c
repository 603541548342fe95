/* SPDX-License-Identifier: Apache-2.0 */
/* Find hidden files that writers left when they were killed. */
#include "launcher/worker/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sweep/queries.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

struct search {
    int (*f) (const char *path, int64_t bytes, void *arg);
    void *arg;
    double least; /* seconds after which whoever wrote a file has named it */
};

static const double young = 60;

/* Where hard links are refused names are symbolic links to hidden files.
 * 'now' is the time of the file system.
 */
static bool has_hard_links (int folder, struct timespec *now)
{
    char a[64];
    char b[64];
    struct stat st;
    int fd;
    bool has;

    link_tmp_name (a, sizeof (a), "");
    link_tmp_name (b, sizeof (b), "");
    fd = openat (folder, a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    has = fstat (fd, &st) == 0 && linkat (folder, a, folder, b, 0) == 0;
    close (fd);
    unlinkat (folder, b, 0);
    unlinkat (folder, a, 0);
    *now = st.st_mtim;
    return has;
}

/* A hidden file, or a symbolic link: of another machine that is refused hard
 * links, perhaps to a hidden file.
 */
static int is_notable (const struct dirent *e)
{
    return inside_is_hidden (e->d_name) || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
}

/* What others are writing just now is not there to be removed. */
static int give (const struct search *s, const char *dir, const char *name, const struct stat *st,
                 const struct timespec *now)
{
    char path[PATH_MAX];

    if (!inside_is_hidden (name) || !S_ISREG (st->st_mode)
        || difftime (now->tv_sec, st->st_mtim.tv_sec) < s->least
        || snprintf (path, sizeof (path), "%s/%s", dir, name) >= (int)sizeof (path))
        return 0;
    return s->f (path, st->st_size, s->arg);
}

static int give_all (const struct search *s, const char *dir, int folder, int n, char **names)
{
    struct stat *st = calloc ((size_t)n + 1, sizeof (*st));
    struct timespec now = { 0 };
    bool links = !st;
    int rv = 0;

    for (int i = 0; i < n && !links; i++)
        links =
            fstatat (folder, names[i], &st[i], AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK (st[i].st_mode);
    if (!links && has_hard_links (folder, &now))
        for (int i = 0; i < n && rv == 0; i++)
            rv = give (s, dir, names[i], &st[i], &now);
    free (st);
    return rv;
}

static int search_folder (const struct search *s, const char *dir)
{
    struct dirent **list = NULL;
    int folder = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    int n = folder < 0 ? -1 : scandirat (folder, ".", &list, is_notable, NULL);
    char **names = n > 0 ? calloc ((size_t)n, sizeof (*names)) : NULL;
    bool hidden = false;
    int rv = n < 0 && errno != ENOENT ? -1 : 0;

    for (int i = 0; i < n && names; i++) {
        names[i] = list[i]->d_name;
        hidden = hidden || inside_is_hidden (names[i]);
    }
    if (hidden)
        rv = give_all (s, dir, folder, n, names);
    for (int i = 0; i < n; i++)
        free (list[i]);
    free (names);
    free (list);
    return inside_close (folder, rv);
}

/* The blocks of the log. */
static int search_log (const struct search *s, const char *dir)
{
    char path[PATH_MAX];
    struct dirent *e;
    int fd = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir (fd);
    int rv = search_folder (s, dir);

    while (d && rv == 0 && (e = readdir (d))) {
        if (!*e->d_name || e->d_name[strspn (e->d_name, "0123456789")])
            continue;
        snprintf (path, sizeof (path), "%s/%s", dir, e->d_name);
        rv = search_folder (s, path);
    }
    if (d)
        closedir (d);
    return rv;
}

static bool has_result (const struct sweep_trial *t, long attempt)
{
    for (size_t i = 0; i < t->nmilestones; i++)
        if (t->milestones[i].attempt == attempt)
            return true;
    return false;
}

static int search_trial (const struct search *search, const struct sweep *s, long n)
{
    const struct sweep_trial *t = sweep_trial (s, n);
    char path[PATH_MAX];
    bool killed = false;
    int rv = 0;

    for (long k = 1; rv == 0 && k <= t->over; k++) {
        if (has_result (t, k))
            continue;
        snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld", s->dir, n, k);
        rv = search_folder (search, path);
        killed = true;
    }
    if (!killed)
        return rv;
    snprintf (path, sizeof (path), "%s/trials/%04ld", s->dir, n);
    return rv == 0 ? search_folder (search, path) : rv;
}

int leftovers_find (const struct sweep *s, int (*f) (const char *path, int64_t bytes, void *arg),
                    void *arg)
{
    const struct search search = { f, arg, young };
    char path[PATH_MAX];
    int rv;

    if ((rv = search_folder (&search, s->dir)) != 0)
        return rv;
    snprintf (path, sizeof (path), "%s/workers", s->dir);
    if ((rv = search_folder (&search, path)) != 0)
        return rv;
    snprintf (path, sizeof (path), "%s/log", s->dir);
    rv = search_log (&search, path);
    for (long n = 1; rv == 0 && n <= s->ntrials; n++)
        rv = search_trial (&search, s, n);
    return rv;
}

static int remove_file (const char *path, int64_t bytes, void *arg)
{
    (void)bytes;
    (void)arg;
    inside_unlink (path, 0);
    return 0;
}

void leftovers_clean_attempt (const struct sweep *s, long trial, long attempt)
{
    const struct search search = { .f = remove_file };
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt)
        < (int)sizeof (path))
        search_folder (&search, path);
}
