/* SPDX-License-Identifier: Apache-2.0 */
/* Put-if-absent by link(2), or symlink(2) where links are refused. */
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
    snprintf (buf,
              size,
              "%.*s.%016llx%016llx",
              folder_length (path),
              path,
              r[0],
              r[1]);
}

int link_sync_folder (const char *path)
{
    char dir[PATH_MAX];
    int n = folder_length (path);
    int fd;
    int rv;

    snprintf (dir, sizeof (dir), "%.*s", n ? n : 1, n ? path : ".");
    if ((fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -1;
    rv = fsync (fd);
    close (fd);
    /* some file systems cannot sync a folder; then link() was enough */
    return rv < 0 && errno != EINVAL && errno != ENOTSUP ? -1 : 0;
}

static int hard_link (const char *tmp, const char *path)
{
    struct stat st;
    int e;

    if (link (tmp, path) == 0)
        return 0;
    e = errno;
    /* the reply may have been lost although the link was made */
    if (stat (tmp, &st) == 0 && st.st_nlink == 2)
        return 0;
    errno = e;
    return e == EEXIST ? 1 : -1;
}

static int soft_link (const char *tmp, const char *path)
{
    const char *target = tmp + folder_length (tmp);
    char have[PATH_MAX];
    ssize_t n;
    int e;

    if (symlink (target, path) == 0)
        return 0;
    e = errno;
    n = readlink (path, have, sizeof (have) - 1);
    have[n > 0 ? n : 0] = '\0';
    if (!strcmp (have, target))
        return 0;
    errno = e;
    return e == EEXIST ? 1 : -1;
}

static int no_hard_links (int e)
{
    return e == EPERM || e == ENOTSUP || e == ENOSYS || e == EMLINK;
}

int link_unsynced (const char *tmp, const char *path)
{
    int rv = hard_link (tmp, path);
    int soft = rv < 0 && no_hard_links (errno);
    int e;

    if (soft)
        rv = soft_link (tmp, path);
    /* what a symlink leads to, or may lead to, must stay */
    if (!soft && rv != 1) {
        e = errno;
        unlink (tmp);
        errno = e;
    }
    return rv;
}

int link_if_absent (const char *tmp, const char *path)
{
    int rv = link_unsynced (tmp, path);

    return rv == 0 ? link_sync_folder (path) : rv;
}

/* As link_tmp_name() makes them: what a link of another name leads to is not
 * ours.
 */
static bool is_tmp_name (const char *name)
{
    return name[0] == '.' && strlen (name) == 33
           && strspn (name + 1, "0123456789abcdef") == 32;
}

int link_replace (const char *tmp, const char *path)
{
    char old[PATH_MAX];
    char target[PATH_MAX];
    ssize_t n = readlink (path, target, sizeof (target) - 1);

    if (rename (tmp, path) < 0)
        return -1;
    target[n > 0 ? n : 0] = '\0';
    if (is_tmp_name (target)) {
        snprintf (old,
                  sizeof (old),
                  "%.*s%.255s",
                  folder_length (path),
                  path,
                  target);
        unlink (old);
    }
    return link_sync_folder (path);
}

int link_may_replace (const char *path, struct slurmdl_error *err)
{
    struct stat st;

    if (stat (path, &st) < 0 || S_ISREG (st.st_mode))
        return 0;
    errno = EINVAL;
    return errorf (err, "%s: is not a regular file, and is not replaced", path);
}
