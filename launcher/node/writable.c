/* SPDX-License-Identifier: Apache-2.0 */
/* Check that the working directory and TMPDIR can be written to. */
#include "launcher/node/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum { SMALL = 4096, BLOCK = 1 << 20, BLOCKS = 256, FEW_MIB = 100 };

/* Write, to the disk, and take it away.  Returns 0, or -1 with errno. */
static int write_file (const char *folder, long blocks, size_t size)
{
    char path[PATH_MAX];
    char *data = calloc (1, size);
    int rv = 0;
    int fd, e;

    snprintf (path, sizeof (path), "%s/.dl-check.XXXXXX", folder);
    fd = data ? mkostemp (path, O_CLOEXEC) : -1;
    if (fd < 0) {
        e = errno;
        free (data);
        errno = e;
        return -1;
    }
    for (long i = 0; i < blocks && rv == 0; i++) {
        ssize_t n = write (fd, data, size);
        if (n >= 0 && n < (ssize_t)size)
            errno = ENOSPC;
        rv = n == (ssize_t)size ? 0 : -1;
    }
    if (rv == 0)
        rv = fsync (fd);
    e = errno;
    unlink (path);
    if (close (fd) < 0 && rv == 0) {
        e = errno;
        rv = -1;
    }
    free (data);
    errno = e;
    return rv;
}

static void look_at_space (const struct check_place *p, const char *what, const char *path)
{
    struct statvfs s;
    unsigned long long mib;

    if (statvfs (path, &s) < 0)
        return;
    mib = (unsigned long long)s.f_bavail * s.f_frsize >> 20;
    if (mib < FEW_MIB)
        check_finding (p, SEVERITY_WARN, "%s: %llu MiB are left in %s", what, mib, path);
    if (s.f_files > 0 && s.f_favail < 100)
        check_finding (p, SEVERITY_WARN, "%s: %llu more files fit into %s", what,
                       (unsigned long long)s.f_favail, path);
}

static bool is_only_closed (int e)
{
    return e == EACCES || e == EROFS || e == EPERM;
}

/* A TMPDIR that is not there, closed or no folder is its user's mistake, on all
 * nodes; a disk that is full, fails or has become read-only is the node's.
 */
static bool is_users (int e)
{
    return e == ENOENT || e == EACCES || e == EPERM || e == ENOTDIR || e == ELOOP
           || e == ENAMETOOLONG || e == EDQUOT;
}

static bool is_never (int e)
{
    (void)e;
    return false;
}

static int look_at_folder (const struct check_place *p, const char *what, const char *path,
                           enum severity severity, bool (*is_mild) (int e))
{
    check_stage (p, "%s", path);
    if (write_file (path, 1, SMALL) < 0) {
        check_finding (p, is_mild (errno) ? SEVERITY_WARN : severity,
                       "%s: cannot write in %.100s: %s", what, path, strerror (errno));
        return -1;
    }
    look_at_space (p, what, path);
    return 0;
}

static void measure (const struct check_place *p, const char *path)
{
    double start = monotonic ();
    double took;

    if (write_file (path, BLOCKS, BLOCK) < 0)
        return;
    took = monotonic () - start;
    check_fact (p, "rates", "working directory", json_real ((double)BLOCKS * BLOCK / took / 1e9));
}

static bool has_room (const char *path)
{
    struct statvfs s;

    return statvfs (path, &s) == 0
           && (unsigned long long)s.f_bavail * s.f_frsize > 10ull * BLOCKS * BLOCK;
}

void check_directory (const struct check_place *p)
{
    char path[PATH_MAX];

    check_stage (p, "its name");
    if (!getcwd (path, sizeof (path))) {
        check_finding (p, SEVERITY_SHARED, "working directory: %s", strerror (errno));
        return;
    }
    if (look_at_folder (p, "working directory", path, SEVERITY_SHARED, is_only_closed) == 0
        && p->level == LEVEL_FULL && has_room (path))
        measure (p, path);
}

void check_temporary (const struct check_place *p)
{
    const char *path = getenv ("TMPDIR");

    if (!path || !*path) {
        look_at_folder (p, "TMPDIR", "/tmp", SEVERITY_BAD, is_never);
        return;
    }
    look_at_folder (p, "TMPDIR", path, SEVERITY_BAD, is_users);
}
