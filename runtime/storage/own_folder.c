/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a name that others know, too: it is made, or it is one's own.
 */
#include "runtime/storage/own_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

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

static int refuse (const char *path, uid_t owner, struct slurmdl_error *err)
{
    errno = EPERM;
    return errorf (err,
                   "%s: belongs to user %u, who could change what is in "
                   "it: remove it, or name a folder of your own",
                   path, (unsigned)owner);
}

/* By the folder that is open: its name may be given to another one. */
static int open_own (const char *path, struct slurmdl_error *err)
{
    int flags = O_RDONLY | O_DIRECTORY;
    int fd = inside_has (path) ? inside_open (path, flags, 0, NULL)
                               : open (path, flags | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && errno == EACCES && lstat (path, &st) == 0 && st.st_uid != geteuid ())
        return refuse (path, st.st_uid, err);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        errno = ENOTDIR;
        return errorf (err,
                       "%s: cannot make: a link or a file has the name: "
                       "remove it, or name a folder of your own",
                       path);
    }
    if (fd >= 0 && fstat (fd, &st) == 0) {
        if (st.st_uid == geteuid ())
            return fd;
        close (fd);
        return refuse (path, st.st_uid, err);
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
        return errorf (err, "%s: cannot make: %s", path, strerror (errno));
    if ((f->fd = open_own (path, err)) < 0)
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
