/* SPDX-License-Identifier: Apache-2.0 */
/* Open files safely in folders that others can write to. */
#include "runtime/storage/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* From linux/openat2.h, which older systems lack. */
struct how {
    uint64_t flags, mode, resolve;
};
enum { NO_MAGIC_LINKS = 2, NO_SYMLINKS = 4 };
#ifndef SYS_openat2
#define SYS_openat2 437 /* the same on all architectures */
#endif

static bool is_link (int folder, const char *name)
{
    struct stat st;

    return fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK (st.st_mode);
}

static int step_into (int folder, const char *name, bool last, int flags, mode_t mode)
{
    int fd =
        openat (folder, name, (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0 && errno == ENOTDIR && is_link (folder, name))
        errno = ELOOP;
    return fd;
}

/* For kernels without openat2(2), before Linux 5.6. */
static int walk_path (const char *path, int flags, mode_t mode)
{
    int fd = open (*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_MAX + 1];

    while (fd >= 0) {
        const char *from = path + strspn (path, "/");
        size_t n = strcspn (from, "/");
        bool last = from[n + strspn (from + n, "/")] == '\0';
        int next = -1;
        if (snprintf (name, sizeof (name), "%.*s", (int)n, n ? from : ".") < (int)sizeof (name))
            next = step_into (fd, *name ? name : ".", last, flags, mode);
        else
            errno = ENAMETOOLONG;
        int e = errno;
        close (fd);
        errno = e;
        fd = next;
        path = from + n;
        if (last)
            break;
    }
    return fd;
}

static int open_strictly (const char *path, int flags, mode_t mode)
{
    struct how how = {
        .flags = (uint64_t)(flags | O_NOFOLLOW | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = NO_SYMLINKS | NO_MAGIC_LINKS,
    };
    long fd = syscall (SYS_openat2, AT_FDCWD, path, &how, sizeof (how));

    /* EPERM: a seccomp filter that is older than openat2() */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return walk_path (path, flags, mode);
    if (fd < 0 && errno == ENOTDIR && is_link (AT_FDCWD, path))
        errno = ELOOP;
    return (int)fd;
}

bool inside_is_hidden (const char *name)
{
    return name[0] == '.' && strlen (name) == 33 && strspn (name + 1, "0123456789abcdef") == 32;
}

bool inside_is_of (const struct stat *st, uid_t owner)
{
    return (st->st_uid == owner || st->st_uid == 0) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Without O_NONBLOCK, open() of a pipe would block until someone opens its other end. */
static int unblocked (int flags)
{
    return flags & O_PATH ? flags : flags | O_NONBLOCK;
}

static int keep_if_fit (int fd, int flags, struct stat *st)
{
    struct stat own;
    bool good;
    int e;

    if (fd < 0) {
        /* a socket, or a pipe that nobody reads */
        errno = errno == ENXIO ? EINVAL : errno;
        return -1;
    }
    /* O_EXCL has just created a regular file */
    if (flags & (O_DIRECTORY | O_EXCL) && !st)
        return fd;
    st = st ? st : &own;
    good = fstat (fd, st) == 0;
    e = errno;
    if (good && (flags & O_DIRECTORY || S_ISREG (st->st_mode)))
        return fd;
    close (fd);
    errno = good ? EINVAL : e;
    return -1;
}

static bool may_follow (int flags)
{
    return errno == ELOOP && !(flags & (O_CREAT | O_DIRECTORY | O_PATH));
}

/* Follow a symbolic link in the folder, but only if we made it. */
static int open_linked (int folder, const char *name, int flags)
{
    char target[64];
    ssize_t n = readlinkat (folder, name, target, sizeof (target) - 1);

    target[n > 0 ? n : 0] = '\0';
    if (inside_is_hidden (target))
        return openat (folder, target, unblocked (flags) | O_NOFOLLOW | O_CLOEXEC);
    errno = ELOOP;
    return -1;
}

int inside_open_at (int folder, const char *name, int flags, mode_t mode, struct stat *st)
{
    int fd = step_into (folder, name, true, unblocked (flags), mode);

    if (fd < 0 && may_follow (flags))
        fd = open_linked (folder, name, flags);
    return keep_if_fit (fd, flags, st);
}

int inside_open (const char *path, int flags, mode_t mode, struct stat *st)
{
    int fd = open_strictly (path, unblocked (flags), mode);
    const char *name;
    int folder;
    int e;

    if (fd < 0 && may_follow (flags) && (folder = inside_parent (path, &name)) >= 0) {
        fd = open_linked (folder, name, flags);
        e = errno;
        close (folder);
        errno = e;
    }
    return keep_if_fit (fd, flags, st);
}

int inside_parent (const char *path, const char **name)
{
    const char *slash = strrchr (path, '/');
    char folder[PATH_MAX];
    int n = slash ? (int)(slash - path) : 0;

    if (name)
        *name = slash ? slash + 1 : path;
    if (snprintf (folder, sizeof (folder), "%.*s", n ? n : 1,
                  n       ? path
                  : slash ? "/"
                          : ".")
        >= (int)sizeof (folder)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open_strictly (folder, O_RDONLY | O_DIRECTORY, 0);
}

int inside_close (int folder, int rv)
{
    int e = errno;

    if (folder >= 0)
        close (folder);
    errno = e;
    return rv;
}

int inside_unlink (const char *path, int flags)
{
    const char *name;
    int folder = inside_parent (path, &name);

    return inside_close (folder, folder < 0 ? -1 : unlinkat (folder, name, flags));
}

int inside_mkdir (const char *path, mode_t mode)
{
    const char *name;
    int folder = inside_parent (path, &name);

    return inside_close (folder, folder < 0 ? -1 : mkdirat (folder, name, mode));
}

/* ---- folders that others can write to ---- */

struct entered {
    struct entered *next;
    size_t uses, len;
    char dir[];
};

static struct entered *folders;
static pthread_mutex_t folders_lock = PTHREAD_MUTEX_INITIALIZER;

static struct entered **find_entered (const char *dir)
{
    struct entered **at = &folders;

    while (*at && strcmp ((*at)->dir, dir))
        at = &(*at)->next;
    return at;
}

int inside_enter (const char *dir)
{
    size_t n = strlen (dir);
    struct entered *e;

    pthread_mutex_lock (&folders_lock);
    if (!(e = *find_entered (dir)) && (e = malloc (sizeof (*e) + n + 1))) {
        *e = (struct entered){ .next = folders, .len = n };
        memcpy (e->dir, dir, n + 1);
        folders = e;
    }
    if (e)
        e->uses++;
    pthread_mutex_unlock (&folders_lock);
    return e ? 0 : -1;
}

void inside_leave (const char *dir)
{
    struct entered **at;
    struct entered *e;

    pthread_mutex_lock (&folders_lock);
    if ((e = *(at = find_entered (dir))) && --e->uses == 0) {
        *at = e->next;
        free (e);
    }
    pthread_mutex_unlock (&folders_lock);
}

bool inside_has (const char *path)
{
    bool found = false;

    pthread_mutex_lock (&folders_lock);
    for (const struct entered *e = folders; e && !found; e = e->next)
        found = !strncmp (path, e->dir, e->len) && path[e->len] == '/';
    pthread_mutex_unlock (&folders_lock);
    return found;
}

int inside_open_any (const char *path, int flags, mode_t mode, struct stat *st)
{
    if (inside_has (path))
        return inside_open (path, flags, mode, st);
    return keep_if_fit (open (path, unblocked (flags) | O_CLOEXEC, mode), flags, st);
}

int inside_unlink_any (const char *path, int flags)
{
    return inside_has (path) ? inside_unlink (path, flags) : unlinkat (AT_FDCWD, path, flags);
}

static int inside_mkdir_any (const char *path, mode_t mode)
{
    return inside_has (path) ? inside_mkdir (path, mode) : mkdir (path, mode);
}

const char *inside_error (int e)
{
    switch (e) {
    case ELOOP:
        return "this path is or contains a symbolic link, which is not followed here";
    case EINVAL:
    case EISDIR:
        return "it is not a regular file";
    case EFBIG:
        return "it is larger than such a file can be";
    default:
        return strerror (e);
    }
}

static void make_above (const char *path, mode_t mode)
{
    char above[PATH_MAX];

    snprintf (above, sizeof (above), "%s", path);
    for (char *c = strchr (above + 1, '/'); c; c = strchr (c + 1, '/')) {
        *c = '\0';
        inside_mkdir_any (above, mode);
        *c = '/';
    }
}

static int refuse_owner (const char *path, uid_t owner, struct slurmdl_error *err)
{
    errno = EPERM;
    return errorf (err,
                   "%s: belongs to user %u, who could change its contents: remove it, or choose "
                   "your own folder",
                   path, (unsigned)owner);
}

/* Check the open folder, because another one may be given its name. */
static int open_entered (const char *path, struct slurmdl_error *err)
{
    int flags = O_RDONLY | O_DIRECTORY;
    int fd = inside_has (path) ? inside_open (path, flags, 0, NULL)
                               : open (path, flags | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && errno == EACCES && lstat (path, &st) == 0 && st.st_uid != geteuid ())
        return refuse_owner (path, st.st_uid, err);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        errno = ENOTDIR;
        return errorf (err,
                       "%s: cannot create: a link or file of this name exists: remove it, or "
                       "choose your own folder",
                       path);
    }
    if (fd >= 0 && fstat (fd, &st) == 0) {
        if (st.st_uid == geteuid ())
            return fd;
        close (fd);
        return refuse_owner (path, st.st_uid, err);
    }
    errorf (err, "%s: %s", path, strerror (errno));
    return inside_close (fd, -1);
}

int own_folder_open (struct own_folder *f, const char *path, mode_t mode, struct slurmdl_error *err)
{
    int rv = inside_mkdir_any (path, mode);

    f->fd = -1;
    if (rv < 0 && errno == ENOENT) {
        make_above (path, mode | 0755);
        rv = inside_mkdir_any (path, mode);
    }
    if (rv < 0 && errno != EEXIST)
        return errorf (err, "%s: cannot create: %s", path, strerror (errno));
    if ((f->fd = open_entered (path, err)) < 0)
        return -1;
    snprintf (f->path, sizeof (f->path), "/proc/self/fd/%d", f->fd);
    return 0;
}

int own_folder_make (const char *path, mode_t mode, struct slurmdl_error *err)
{
    struct own_folder f;
    int rv = own_folder_open (&f, path, mode, err);

    return inside_close (f.fd, rv);
}

void own_folder_close (struct own_folder *f)
{
    if (f->fd >= 0)
        close (f->fd);
    f->fd = -1;
}

void own_folder_remove (struct own_folder *f, const char *path)
{
    DIR *d = f->fd < 0 ? NULL : fdopendir (f->fd);
    struct dirent *e;

    while (d && (e = readdir (d)))
        unlinkat (f->fd, e->d_name, 0);
    if (d)
        closedir (d);
    else
        own_folder_close (f);
    f->fd = -1;
    inside_unlink_any (path, AT_REMOVEDIR);
}
