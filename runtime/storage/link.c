/* SPDX-License-Identifier: Apache-2.0 */
/* Put if absent: link(2), or symlink(2) where hard links are refused. */
#include "runtime/storage/link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

static int folder_length (const char *path)
{
    const char *slash = strrchr (path, '/');

    return slash ? (int)(slash - path) + 1 : 0;
}

void link_tmp_name (char *buf, size_t size, const char *path)
{
    unsigned long long r[2] = { 0 };

    if (getrandom (r, sizeof (r), 0) != sizeof (r))
        r[0] = (unsigned long long)getpid ();
    snprintf (buf, size, "%.*s.%016llx%016llx", folder_length (path), path, r[0], r[1]);
}

/* Some file systems cannot fsync a folder; link() has to be enough there. */
int link_sync_folder (int fd)
{
    return fsync (fd) < 0 && errno != EINVAL && errno != ENOTSUP ? -1 : 0;
}

static int sync_folder_of (const char *path)
{
    char dir[PATH_MAX];
    int n = folder_length (path);
    int fd;
    int rv;

    snprintf (dir, sizeof (dir), "%.*s", n ? n : 1, n ? path : ".");
    fd = inside_has (path) ? inside_parent (path, NULL)
                           : open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    rv = link_sync_folder (fd);
    close (fd);
    return rv;
}

/* 'at' is a folder, or AT_FDCWD with paths as names. */
static enum link_result hard_link (int at, const char *tmp, const char *path)
{
    struct stat st, other;
    int e;

    if (linkat (at, tmp, at, path, 0) == 0)
        return LINKED;
    e = errno;
    /* The link may exist although its reply was lost.  A link count of 2 does not
     * prove it, because 'tmp' may have had a second name before.
     */
    if (fstatat (at, tmp, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink == 2
        && fstatat (at, path, &other, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == other.st_dev
        && st.st_ino == other.st_ino)
        return LINKED;
    errno = e;
    return e == EEXIST ? LINK_TAKEN : LINK_FAILED;
}

static enum link_result soft_link (int at, const char *tmp, const char *path)
{
    const char *target = tmp + folder_length (tmp);
    char have[PATH_MAX];
    ssize_t n;
    int e;

    if (symlinkat (target, at, path) == 0)
        return LINKED;
    e = errno;
    n = readlinkat (at, path, have, sizeof (have) - 1);
    have[n > 0 ? n : 0] = '\0';
    if (!strcmp (have, target))
        return LINKED;
    errno = e;
    return e == EEXIST ? LINK_TAKEN : LINK_FAILED;
}

static bool no_hard_links (int e)
{
    return e == EPERM || e == ENOTSUP || e == ENOSYS || e == EMLINK;
}

static enum link_result link_name (int at, const char *tmp, const char *path)
{
    enum link_result result = hard_link (at, tmp, path);
    bool soft = result == LINK_FAILED && no_hard_links (errno);
    int e;

    if (soft)
        result = soft_link (at, tmp, path);
    /* a symbolic link needs, or may need, its target */
    if (!soft && result != LINK_TAKEN) {
        e = errno;
        unlinkat (at, tmp, 0);
        errno = e;
    }
    return result;
}

static const char *name_in (const char *path)
{
    return path + folder_length (path);
}

/* If others can write to the folder, open it first. */
static enum link_result link_unsynced (const char *tmp, const char *path)
{
    int folder;

    if (!inside_has (path))
        return link_name (AT_FDCWD, tmp, path);
    if ((folder = inside_parent (path, NULL)) < 0)
        return -1;
    return inside_close (folder, link_name (folder, name_in (tmp), name_in (path)));
}

enum link_result link_unsynced_at (int folder, const char *tmp, const char *name)
{
    return link_name (folder, tmp, name);
}

enum link_result link_if_absent (const char *tmp, const char *path)
{
    enum link_result result = link_unsynced (tmp, path);

    return result == LINKED && sync_folder_of (path) < 0 ? LINK_FAILED : result;
}

/* Remove the old target only if its name is one of ours. */
static int replace_name (int at, const char *tmp, const char *path)
{
    char old[PATH_MAX];
    char target[PATH_MAX];
    ssize_t n = readlinkat (at, path, target, sizeof (target) - 1);

    if (renameat (at, tmp, at, path) < 0)
        return -1;
    target[n > 0 ? n : 0] = '\0';
    if (inside_is_hidden (target)) {
        snprintf (old, sizeof (old), "%.*s%.255s", folder_length (path), path, target);
        unlinkat (at, old, 0);
    }
    return 0;
}

int link_replace_at (int folder, const char *tmp, const char *name)
{
    return replace_name (folder, tmp, name) < 0 ? -1 : link_sync_folder (folder);
}

int link_replace (const char *tmp, const char *path)
{
    int folder;

    if (inside_has (path)) {
        if ((folder = inside_parent (path, NULL)) < 0)
            return -1;
        return inside_close (folder, link_replace_at (folder, name_in (tmp), name_in (path)));
    }
    return replace_name (AT_FDCWD, tmp, path) < 0 ? -1 : sync_folder_of (path);
}

int link_may_replace (const char *path, struct slurmdl_error *err)
{
    struct stat st;

    if (stat (path, &st) < 0 || S_ISREG (st.st_mode))
        return 0;
    errno = EINVAL;
    return errorf (err, "%s: is not a regular file, and is not replaced", path);
}
