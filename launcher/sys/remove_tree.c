/* SPDX-License-Identifier: Apache-2.0 */
/* Remove a folder and everything in it. */
#include "launcher/sys/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 3 };

static int remove_entries (DIR *folder, dev_t dev);

static int open_removed_folder (int at, const char *name)
{
    return openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Open a folder that its owner may not read.  Go through a descriptor, so that a symbolic link
 * which replaces the folder is not followed.
 */
static int open_closed (int at, const char *name)
{
    int it = openat (at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = -1;
    char path[32];
    int e;

    if (it < 0)
        return -1;
    snprintf (path, sizeof (path), "/proc/self/fd/%d", it);
    if (chmod (path, 0700) == 0)
        fd = open_removed_folder (at, name);
    e = errno;
    close (it);
    errno = e;
    return fd;
}

/* Remove links without following them, and leave mounted file systems alone. */
static int remove_folder (int at, const char *name, dev_t dev)
{
    int fd = open_removed_folder (at, name);
    struct stat st;
    DIR *folder;
    int rv = -1;
    int e;

    if (fd < 0 && errno == EACCES)
        fd = open_closed (at, name);
    if (fd < 0)
        return -1;
    if (fstat (fd, &st) < 0 || st.st_dev != dev) {
        close (fd);
        errno = st.st_dev != dev ? EXDEV : errno;
        return -1;
    }
    if ((st.st_mode & 0700) != 0700 && st.st_uid == geteuid ())
        fchmod (fd, 0700);
    if (!(folder = fdopendir (fd))) {
        close (fd);
        return -1;
    }
    rv = remove_entries (folder, dev);
    e = errno;
    closedir (folder);
    errno = e;
    return rv < 0 ? -1 : unlinkat (at, name, AT_REMOVEDIR);
}

static int remove_entries (DIR *folder, dev_t dev)
{
    int fd = dirfd (folder);
    struct dirent *d;
    int rv = 0;

    while (rv == 0 && (d = readdir (folder))) {
        if (!strcmp (d->d_name, ".") || !strcmp (d->d_name, ".."))
            continue;
        rv = unlinkat (fd, d->d_name, 0);
        if (rv < 0 && errno == EISDIR)
            rv = remove_folder (fd, d->d_name, dev);
        if (rv < 0 && errno == ENOENT)
            rv = 0;
    }
    return rv;
}

/* On some file systems a listing skips entries while others are being removed, so try again. */
int remove_tree (const char *path)
{
    struct stat st;
    int rv = -1;

    if (lstat (path, &st) < 0)
        return -1;
    for (int i = 0; i < TRIES && rv < 0 && (i == 0 || errno == ENOTEMPTY); i++)
        rv = remove_folder (AT_FDCWD, path, st.st_dev);
    return rv;
}
