/* SPDX-License-Identifier: Apache-2.0 */
/* Write whole files: if absent, in place of another, or plainly. */
#include "launcher/sys/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/link.h"

enum { TRIES_MAX = 3 };

static int write_all (int fd, const char *buf, size_t len)
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

/* close() counts too: a full quota may show there first on NFS. */
static int write_synced (const char *path, const char *buf, size_t len)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int saved;

    if (fd < 0)
        return -1;
    if (write_all (fd, buf, len) < 0 || fsync (fd) < 0) {
        saved = errno;
        close (fd);
        unlink (path);
        errno = saved;
        return -1;
    }
    if (close (fd) < 0) {
        saved = errno;
        unlink (path);
        errno = saved;
        return -1;
    }
    return 0;
}

/* A handle that went stale, a signal, a reply that was lost: try again. */
static bool is_passing (int e)
{
    return e == ESTALE || e == EINTR || e == EAGAIN || e == ETIMEDOUT;
}

/* EEXIST: nobody else has this name, so it is the reply to a second try. */
static int write_tmp (
    char *tmp, size_t size, const char *path, const char *buf, size_t len)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        link_tmp_name (tmp, size, path);
        if (write_synced (tmp, buf, len) == 0)
            return 0;
        if (!is_passing (errno) && errno != EEXIST)
            break;
    }
    return -1;
}

int publish_if_absent (const char *path,
                       const char *buf,
                       size_t len,
                       struct slurmdl_error *err)
{
    char tmp[PATH_MAX];
    int rv;

    if (write_tmp (tmp, sizeof (tmp), path, buf, len) < 0)
        return errorf (err, "%s: cannot write: %s", path, strerror (errno));
    rv = link_if_absent (tmp, path);
    if (rv == 1)
        unlink (tmp);
    return rv >= 0
               ? rv
               : errorf (err, "%s: cannot create: %s", path, strerror (errno));
}

int file_write (const char *path,
                const char *buf,
                size_t len,
                struct slurmdl_error *err)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rv = fd < 0 ? -1 : write_all (fd, buf, len);

    if (fd >= 0 && close (fd) < 0)
        rv = -1;
    return rv == 0
               ? 0
               : errorf (err, "%s: cannot write: %s", path, strerror (errno));
}

int publish_replace (const char *path,
                     const char *buf,
                     size_t len,
                     struct slurmdl_error *err)
{
    char tmp[PATH_MAX];
    int e;

    link_tmp_name (tmp, sizeof (tmp), path);
    if (write_synced (tmp, buf, len) == 0) {
        if (link_replace (tmp, path) == 0)
            return 0;
        e = errno;
        unlink (tmp);
        errno = e;
    }
    return errorf (err, "%s: cannot write: %s", path, strerror (errno));
}

int folder_create (const char *path, struct slurmdl_error *err)
{
    int rv = -1;

    /* a lost reply: the second try says EEXIST */
    for (int i = 0; i < TRIES_MAX && rv < 0; i++) {
        rv = mkdir (path, 0777) == 0 || errno == EEXIST ? 0 : -1;
        if (rv < 0 && !is_passing (errno) && errno != EIO)
            break;
    }
    if (rv < 0)
        return errorf (
            err, "%s: cannot make the folder: %s", path, strerror (errno));
    return 0;
}
