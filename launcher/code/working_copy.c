/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the frozen code for attempts, and what is left of them. */
#include "launcher/code/code.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"

#define PYCACHE "__pycache__"

enum {
    SMALL = 1 << 20,
    CHECKPOINT_MAX = 128 << 20,
    DEPTH_MAX = 60,
    MADE = 946684800, /* 2000-01-01: marks files that are still as copied */
    BUFFER = 64 << 10,
};

struct copying_code {
    char *const *exclude;
    char *buffer;
    char failed[PATH_MAX]; /* path of the first entry that could not be copied */
};

/* The same folder in two trees, both open, and its path relative to their roots. */
struct pair {
    int from, to;
    const char *path;
    int depth;
};

static int open_folder_at (int at, const char *name)
{
    return openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Open a folder below each of two folders, or of AT_FDCWD.  Call close_pair() in any case. */
static bool open_pair (struct pair *p, int from, const char *from_name, int to, const char *to_name)
{
    p->from = open_folder_at (from, from_name);
    p->to = open_folder_at (to, to_name);
    return p->from >= 0 && p->to >= 0;
}

/* Keeps errno. */
static void close_pair (const struct pair *p)
{
    int e = errno;

    if (p->from >= 0)
        close (p->from);
    if (p->to >= 0)
        close (p->to);
    errno = e;
}

static int path_below (const struct pair *p, const char *name, char *buf)
{
    if (path_join (buf, p->path, name) < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

static int list_names (int folder, struct dirent ***list)
{
    return scandirat (folder, ".", list, NULL, NULL);
}

static bool is_dots (const char *name)
{
    return !strcmp (name, ".") || !strcmp (name, "..");
}

/* ---- one file ---- */

static int copy_content (int from, int to, char *buffer)
{
    ssize_t n, k;

    if (ioctl (to, FICLONE, from) == 0)
        return 0;
    while ((n = read (from, buffer, BUFFER)) > 0)
        for (ssize_t at = 0; at < n; at += k)
            if ((k = write (to, buffer + at, (size_t)(n - at))) <= 0)
                return -1;
    return (int)n;
}

/* Mark a file as unchanged.  Even a file system that stores whole seconds keeps this time exactly.
 */
static int mark_made (int fd)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = MADE } };

    return futimens (fd, times);
}

static bool is_as_made (const struct stat *st)
{
    return st->st_mtim.tv_sec == MADE && st->st_mtim.tv_nsec == 0;
}

/* Copy an open file.  With 'mark', mark the copy as unchanged, else keep the file's time. */
static int copy_open_file (int from, const struct stat *st, int folder, const char *name, bool mark,
                           char *buffer)
{
    const struct timespec times[2] = { st->st_atim, st->st_mtim };
    int to = openat (folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     st->st_mode & 0777);
    int rv;
    int e;

    if (to < 0)
        return -1;
    rv = copy_content (from, to, buffer);
    if (rv == 0)
        rv = mark ? mark_made (to) : futimens (to, times);
    e = errno;
    if (close (to) < 0)
        return -1;
    errno = e;
    return rv;
}

static int copy_named (const struct pair *p, const char *source, /* below p->from, or absolute */
                       const char *name, bool mark, char *buffer)
{
    struct stat st;
    int from = openat (p->from, source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int rv = -1;
    int e;

    if (from < 0)
        return -1;
    if (fstat (from, &st) == 0)
        rv = copy_open_file (from, &st, p->to, name, mark, buffer);
    e = errno;
    close (from);
    errno = e;
    return rv;
}

/* ---- the copy ---- */

bool is_checkpoint_name (const char *name)
{
    static const char *const ends[] = { "*.pt",     "*.pth",         "*.ckpt",    "*.pkl",
                                        "*.pickle", "*.h5",          "*.hdf5",    "*.joblib",
                                        "*.onnx",   "*.safetensors", "*.msgpack", "*.keras",
                                        NULL };

    for (const char *const *e = ends; *e; e++)
        if (fnmatch (*e, name, FNM_CASEFOLD) == 0)
            return true;
    return false;
}

/* Whether a linked file is probably one that scripts write again, rather than data.  Do not copy a
 * private file into a folder that others can read: it may be a key.
 */
static bool is_to_copy (const struct copying_code *c, const struct pair *p, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    struct stat folder;

    return fstatat (p->from, name, &st, 0) == 0 && S_ISREG (st.st_mode)
           && fstat (p->to, &folder) == 0 && ((st.st_mode & 077) || !(folder.st_mode & 077))
           && (st.st_size <= SMALL || (st.st_size <= CHECKPOINT_MAX && is_checkpoint_name (name)))
           && path_below (p, name, path) == 0 && !pattern_list_has (c->exclude, path, false);
}

/* A relative link stays a link in the copy. */
static int copy_link (const struct copying_code *c, const struct pair *p, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat (p->from, name, target, sizeof (target) - 1);

    if (n < 0)
        return -1;
    target[n] = '\0';
    if (*target == '/' && is_to_copy (c, p, name)
        && copy_named (p, target, name, true, c->buffer) == 0)
        return 0;
    unlinkat (p->to, name, 0);
    return symlinkat (target, p->to, name);
}

/* Share the folder of Python's compiled files, so that the next attempt need not compile them
 * again.  This is safe, because Python compares the time and size of the source.
 */
static void share_compiled (const struct pair *p, const char *root)
{
    char path[PATH_MAX];

    if (snprintf (path, sizeof (path), "%s%s%s/" PYCACHE, root, *p->path ? "/" : "", p->path)
            >= (int)sizeof (path)
        || (mkdirat (p->from, PYCACHE, 0777) < 0 && errno != EEXIST))
        return;
    if (symlinkat (path, p->to, PYCACHE) < 0)
        errno = 0;
}

static bool is_python (const char *name)
{
    size_t n = strlen (name);

    return n > 3 && !strcmp (name + n - 3, ".py");
}

static int copy_code_folder (struct copying_code *c, const struct pair *p, const char *root);

static int copy_below (struct copying_code *c, const struct pair *p, const char *name,
                       const char *root)
{
    char path[PATH_MAX];
    struct pair below = { .path = path, .depth = p->depth + 1 };
    int rv = -1;

    if (path_below (p, name, path) < 0 || p->depth > DEPTH_MAX || mkdirat (p->to, name, 0777) < 0)
        return -1;
    if (open_pair (&below, p->from, name, p->to, name))
        rv = copy_code_folder (c, &below, root);
    close_pair (&below);
    return rv;
}

static unsigned char dirent_type (int folder, const struct dirent *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN || fstatat (folder, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return d->d_type;
    return IFTODT (st.st_mode);
}

static int copy_entry (struct copying_code *c, const struct pair *p, const struct dirent *d,
                       const char *root)
{
    int rv = 0;

    switch (dirent_type (p->from, d)) {
    case DT_DIR:
        rv = copy_below (c, p, d->d_name, root);
        break;
    case DT_LNK:
        rv = copy_link (c, p, d->d_name);
        break;
    case DT_REG:
        rv = copy_named (p, d->d_name, d->d_name, true, c->buffer);
    }
    if (rv < 0 && !*c->failed)
        path_below (p, d->d_name, c->failed);
    return rv;
}

static int copy_code_folder (struct copying_code *c, const struct pair *p, const char *root)
{
    struct dirent **list;
    bool python = false;
    int n = list_names (p->from, &list);
    int rv = n < 0 ? -1 : 0;

    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        python |= is_python (name);
        if (rv == 0 && !is_dots (name) && strcmp (name, PYCACHE))
            rv = copy_entry (c, p, list[i], root);
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    if (python && rv == 0)
        share_compiled (p, root);
    return rv;
}

static int make_copy_root (const char *to)
{
    if (mkdir (to, 0777) == 0)
        return 0;
    return errno == EEXIST && remove_tree (to) == 0 ? mkdir (to, 0777) : -1;
}

int working_copy_make (const char *from, const char *to, char *const *exclude,
                       struct slurmdl_error *err)
{
    struct copying_code c = { .exclude = exclude, .buffer = xmalloc (BUFFER) };
    struct pair p = { .from = -1, .to = -1, .path = "" };
    int rv = -1;

    if (make_copy_root (to) == 0 && open_pair (&p, AT_FDCWD, from, AT_FDCWD, to))
        rv = copy_code_folder (&c, &p, from);
    close_pair (&p);
    if (rv < 0)
        errorf (err, "%s: cannot create the working folder%s%s: %s", to, *c.failed ? ": " : "",
                c.failed, strerror (errno));
    free (c.buffer);
    return rv;
}

/* ---- what is left of it ---- */

static bool link_is_unchanged (const struct pair *p, const char *name)
{
    char a[PATH_MAX];
    char b[PATH_MAX];
    ssize_t n = readlinkat (p->from, name, a, sizeof (a));

    return n > 0 && readlinkat (p->to, name, b, sizeof (b)) == n && !memcmp (a, b, (size_t)n);
}

/* Whether the copy of an entry is still as it was made. */
static bool entry_is_unchanged (const struct pair *p, const struct dirent *d)
{
    unsigned char kind = dirent_type (p->from, d);
    struct stat st;

    if (fstatat (p->to, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    return S_ISLNK (st.st_mode) ? kind == DT_LNK && link_is_unchanged (p, d->d_name)
                                : S_ISREG (st.st_mode) && is_as_made (&st);
}

static int count_names (int folder)
{
    struct dirent **list;
    int n = list_names (folder, &list);

    for (int i = 0; i < n; i++)
        free (list[i]);
    if (n >= 0)
        free (list);
    return n;
}

static bool is_clean_folder (const struct pair *p);

static bool is_clean_below (const struct pair *p, const char *name)
{
    struct pair below = { .depth = p->depth + 1 };
    bool clean = open_pair (&below, p->from, name, p->to, name) && p->depth <= DEPTH_MAX
                 && is_clean_folder (&below);

    close_pair (&below);
    return clean;
}

static bool is_clean_folder (const struct pair *p)
{
    struct dirent **list;
    int n = list_names (p->from, &list);
    bool clean = n >= 0 && count_names (p->to) == n;

    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        struct stat st;
        if (!clean || is_dots (name))
            ;
        else if (!strcmp (name, PYCACHE))
            clean = fstatat (p->to, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK (st.st_mode);
        else if (dirent_type (p->from, list[i]) == DT_DIR)
            clean = is_clean_below (p, name);
        else
            clean = entry_is_unchanged (p, list[i]);
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    return clean;
}

bool working_copy_is_clean (const char *from, const char *to)
{
    struct pair p = { .depth = 0 };
    bool clean = open_pair (&p, AT_FDCWD, from, AT_FDCWD, to) && is_clean_folder (&p);

    close_pair (&p);
    return clean;
}

static void prune_folder (const struct pair *p);

static void prune_below (const struct pair *p, const char *name)
{
    struct pair below = { .depth = p->depth + 1 };

    if (open_pair (&below, p->from, name, p->to, name) && p->depth <= DEPTH_MAX)
        prune_folder (&below);
    close_pair (&below);
    unlinkat (p->to, name, AT_REMOVEDIR);
}

static void prune_entry (const struct pair *p, const struct dirent *d)
{
    if (dirent_type (p->from, d) == DT_DIR)
        prune_below (p, d->d_name);
    else if (entry_is_unchanged (p, d))
        unlinkat (p->to, d->d_name, 0);
}

static void prune_folder (const struct pair *p)
{
    struct dirent **list;
    int n = list_names (p->from, &list);

    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        if (!strcmp (name, PYCACHE))
            unlinkat (p->to, name, 0);
        else if (!is_dots (name))
            prune_entry (p, list[i]);
        free (list[i]);
    }
    if (n >= 0)
        free (list);
}

enum copy_rest working_copy_prune (const char *from, const char *to)
{
    struct pair p = { .depth = 0 };

    if (open_pair (&p, AT_FDCWD, from, AT_FDCWD, to))
        prune_folder (&p);
    close_pair (&p);
    if (p.to < 0)
        return errno == ENOENT ? COPY_GONE : COPY_UNKNOWN;
    return rmdir (to) == 0 ? COPY_GONE : COPY_WRITTEN;
}

/* ---- what a script wrote ---- */

struct walk_files {
    int (*f) (const char *path, const struct stat *st, void *arg);
    void *arg;
};

static int walk_each_file (const struct walk_files *w, const struct pair *p)
{
    struct dirent **list;
    char path[PATH_MAX];
    struct stat st;
    int n = list_names (p->from, &list);
    int rv = 0;

    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        struct pair below = { .path = path, .depth = p->depth + 1 };
        if (rv == 0 && !is_dots (name) && path_below (p, name, path) == 0
            && fstatat (p->from, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            if (!S_ISDIR (st.st_mode))
                rv = w->f (path, &st, w->arg);
            else if (p->depth <= DEPTH_MAX && (below.from = open_folder_at (p->from, name)) >= 0) {
                rv = walk_each_file (w, &below);
                close (below.from);
            }
        }
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    return rv;
}

int working_copy_each (const char *dir,
                       int (*f) (const char *path, const struct stat *st, void *arg), void *arg)
{
    const struct walk_files w = { f, arg };
    struct pair p = { .from = open_folder_at (AT_FDCWD, dir), .path = "" };
    int rv = 0;

    if (p.from >= 0) {
        rv = walk_each_file (&w, &p);
        close (p.from);
    }
    return rv;
}

static int is_one (const char *path, const struct stat *st, void *arg)
{
    (void)path;
    (void)arg;
    return S_ISREG (st->st_mode) && st->st_size > 0;
}

bool working_copy_has_files (const char *dir)
{
    return working_copy_each (dir, is_one, NULL);
}

static int merge_folder (const struct pair *p, char *buffer);

static int merge_below (const struct pair *p, const char *name, char *buffer)
{
    struct pair below = { .from = -1, .to = -1, .depth = p->depth + 1 };
    int rv = -1;

    if (p->depth <= DEPTH_MAX && (mkdirat (p->to, name, 0777) == 0 || errno == EEXIST)
        && open_pair (&below, p->from, name, p->to, name))
        rv = merge_folder (&below, buffer);
    close_pair (&below);
    return rv;
}

static int merge_link (const struct pair *p, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat (p->from, name, target, sizeof (target) - 1);

    if (n < 0)
        return -1;
    target[n] = '\0';
    return symlinkat (target, p->to, name);
}

/* A file replaces an entry of the same name; folders are merged. */
static int merge_entry (const struct pair *p, const struct dirent *d, char *buffer)
{
    unsigned char kind = dirent_type (p->from, d);

    if (kind == DT_DIR)
        return merge_below (p, d->d_name, buffer);
    unlinkat (p->to, d->d_name, 0);
    if (kind == DT_LNK)
        return merge_link (p, d->d_name);
    return kind == DT_REG ? copy_named (p, d->d_name, d->d_name, false, buffer) : 0;
}

static int merge_folder (const struct pair *p, char *buffer)
{
    struct dirent **list;
    int n = list_names (p->from, &list);
    int rv = n < 0 ? -1 : 0;

    for (int i = 0; i < n; i++) {
        if (rv == 0 && !is_dots (list[i]->d_name))
            rv = merge_entry (p, list[i], buffer);
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    return rv;
}

int working_copy_add (const char *from, const char *to, struct slurmdl_error *err)
{
    struct pair p = { .depth = 0 };
    char *buffer = xmalloc (BUFFER);
    int rv = -1;

    if (open_pair (&p, AT_FDCWD, from, AT_FDCWD, to))
        rv = merge_folder (&p, buffer);
    close_pair (&p);
    if (rv < 0)
        errorf (err, "%s: cannot copy it to %s: %s", from, to, strerror (errno));
    free (buffer);
    return rv;
}
