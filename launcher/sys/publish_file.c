/* SPDX-License-Identifier: Apache-2.0 */
/* Create and replace files atomically. */
#include "launcher/sys/publish_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

enum { TRIES_MAX = 3 };

static int write_whole (int fd, const char *buf, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, buf, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        buf += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Check close(), too: NFS may report a full quota only there. */
static int write_synced (int dir, const char *name, mode_t mode, const char *buf, size_t len,
                         const struct publish_after *after)
{
    int fd = openat (dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    int saved;
    int rv;

    if (fd < 0)
        return -1;
    rv = write_whole (fd, buf, len);
    if (rv == 0 && after)
        after->begin (after->arg);
    if (rv == 0)
        rv = fsync (fd);
    saved = errno;
    if (close (fd) < 0 && rv == 0) {
        rv = -1;
        saved = errno;
    }
    if (rv < 0)
        unlinkat (dir, name, 0);
    errno = saved;
    return rv;
}

/* Whether to retry: the error is a stale handle, a signal or a lost reply. */
static bool is_passing (int e)
{
    return e == ESTALE || e == EINTR || e == EAGAIN || e == ETIMEDOUT;
}

/* Nobody else uses this name, so EEXIST only means that an earlier try succeeded and its reply was
 * lost.
 */
static int write_tmp (int dir, char *tmp, size_t size, mode_t mode, const char *buf, size_t len,
                      const struct publish_after *after)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        link_tmp_name (tmp, size, "");
        if (write_synced (dir, tmp, mode, buf, len, after) == 0)
            return 0;
        if (!is_passing (errno) && errno != EEXIST)
            break;
    }
    return -1;
}

static void remove_tmp (int dir, const char *tmp)
{
    int e = errno;

    unlinkat (dir, tmp, 0);
    errno = e;
}

enum link_result publish_unsynced_at (int folder, const char *path, const char *buf, size_t len,
                                      const struct publish_after *after, struct slurmdl_error *err)
{
    const char *name = strrchr (path, '/') + 1;
    char tmp[64];
    enum link_result linked = LINK_FAILED;

    /* ENOENT: `dl gc` removed the file because it seemed to belong to a dead writer */
    for (int i = 0; linked == LINK_FAILED && i < TRIES_MAX; i++) {
        if (write_tmp (folder, tmp, sizeof (tmp), 0644, buf, len, after) < 0) {
            errorf (err, "%s: cannot write: %s", path, inside_error (errno));
            return LINK_FAILED;
        }
        if (after && after->end (after->arg, err) < 0) {
            remove_tmp (folder, tmp);
            return LINK_FAILED;
        }
        if ((linked = link_unsynced_at (folder, tmp, name)) == LINK_FAILED && errno != ENOENT)
            break;
    }
    if (linked == LINK_TAKEN)
        unlinkat (folder, tmp, 0);
    if (linked == LINK_FAILED)
        errorf (err, "%s: cannot create: %s", path, strerror (errno));
    return linked;
}

enum link_result publish_if_absent (const char *path, const char *buf, size_t len,
                                    struct slurmdl_error *err)
{
    int dir = inside_parent (path, NULL);
    enum link_result linked;

    if (dir < 0) {
        errorf (err, "%s: cannot write: %s", path, inside_error (errno));
        return LINK_FAILED;
    }
    linked = publish_unsynced_at (dir, path, buf, len, NULL, err);
    if (linked == LINKED && link_sync_folder (dir) < 0) {
        errorf (err, "%s: cannot create: %s", path, strerror (errno));
        linked = LINK_FAILED;
    }
    return inside_close (dir, linked);
}

int publish_replace (const char *path, const char *buf, size_t len, struct slurmdl_error *err)
{
    const char *name;
    char tmp[64];
    int dir = inside_parent (path, &name);
    int rv = -1;
    int e;

    for (int i = 0; dir >= 0 && rv < 0 && i < TRIES_MAX; i++) {
        if (write_tmp (dir, tmp, sizeof (tmp), 0644, buf, len, NULL) < 0)
            break;
        if ((rv = link_replace_at (dir, tmp, name)) == 0)
            break;
        e = errno;
        unlinkat (dir, tmp, 0);
        errno = e;
        if (e != ENOENT)
            break;
    }
    if (rv < 0)
        errorf (err, "%s: cannot write: %s", path, inside_error (errno));
    return inside_close (dir, rv);
}

/* Make the name of a file absolute, and resolve the symbolic links of its folder.  Only the folder
 * must exist.
 */
static bool resolve_folder (const char *name, char *path, size_t size)
{
    const char *slash = strrchr (name, '/');
    char folder[2 * PATH_MAX];
    char found[PATH_MAX];

    snprintf (folder, sizeof (folder), "%.*s", slash ? (int)(slash - name) + 1 : 1,
              slash ? name : ".");
    if (!realpath (folder, found))
        return false;
    snprintf (path, size, "%s/%s", found, slash ? slash + 1 : name);
    return true;
}

/* Follow a symbolic link whose target does not exist, though its folder does. */
static bool follow_dangling_link (const char *given, char *path, size_t size)
{
    const char *slash = strrchr (given, '/');
    char target[PATH_MAX], name[2 * PATH_MAX];
    ssize_t n = readlink (given, target, sizeof (target) - 1);

    if (n <= 0 || target[n - 1] == '/')
        return false;
    target[n] = '\0';
    snprintf (name, sizeof (name), "%.*s%s", *target != '/' && slash ? (int)(slash - given) + 1 : 0,
              given, target);
    return resolve_folder (name, path, size);
}

/* Resolve symbolic links, so that the file is replaced and not the link, unless another user
 * created the link.  If the file does not exist yet, resolve its folder.
 */
static void follow_links (const char *given, char *path, size_t size)
{
    char found[PATH_MAX];

    if (user_may_follow (given)) {
        if (realpath (given, found)) {
            snprintf (path, size, "%s", found);
            return;
        }
        if (follow_dangling_link (given, path, size))
            return;
    }
    if (!resolve_folder (given, path, size))
        snprintf (path, size, "%s", given);
}

/* Whether this is a device or a pipe, which we must write to instead of replacing it.  Another
 * user's could block us.
 */
static bool is_special (const char *path)
{
    struct stat st;

    return user_may_follow (path) && stat (path, &st) == 0 && !S_ISREG (st.st_mode)
           && !user_is_of_others (&st);
}

static int write_into (const char *path, const char *buf, size_t size, struct slurmdl_error *err)
{
    FILE *f = user_open_output (path, err);
    bool good;

    if (!f)
        return -1;
    good = fwrite (buf, 1, size, f) == size;
    if (fclose (f) == 0 && good)
        return 0;
    return errorf (err, "%s: cannot write: %s", path, strerror (errno));
}

bool publish_output_path (const char *path, char *file, size_t size)
{
    if (is_special (path))
        return false;
    follow_links (path, file, size);
    return true;
}

int publish_output (const char *path, const char *buf, size_t size, struct slurmdl_error *err)
{
    char file[PATH_MAX];

    return publish_output_path (path, file, sizeof (file)) ? publish_replace (file, buf, size, err)
                                                           : write_into (path, buf, size, err);
}

int folder_create (const char *path, struct slurmdl_error *err)
{
    const char *name;
    int dir = inside_parent (path, &name);
    int rv = -1;

    /* if the first reply was lost, the second try fails with EEXIST */
    for (int i = 0; dir >= 0 && i < TRIES_MAX && rv < 0; i++) {
        rv = mkdirat (dir, name, 0777) == 0 || errno == EEXIST ? 0 : -1;
        if (rv < 0 && !is_passing (errno) && errno != EIO)
            break;
    }
    if (rv < 0)
        errorf (err, "%s: cannot create the folder: %s", path, inside_error (errno));
    return inside_close (dir, rv);
}
