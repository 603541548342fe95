/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a name that others know, too: it is made, or it is one's own.
 */
#include "runtime/storage/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

static void make_above (const char *path)
{
    char above[PATH_MAX];

    snprintf (above, sizeof (above), "%s", path);
    for (char *c = strchr (above + 1, '/'); c; c = strchr (c + 1, '/')) {
        *c = '\0';
        inside_mkdir_any (above, 0777);
        *c = '/';
    }
}

static int refuse (const char *path, uid_t owner, struct slurmdl_error *err)
{
    errno = EPERM;
    return errorf (err,
                   "%.160s: belongs to user %u, who could change what is in "
                   "it: remove it, or name a folder of your own",
                   path,
                   (unsigned)owner);
}

/* By the folder that is open: its name may be given to another one. */
static int check (const char *path, struct slurmdl_error *err)
{
    int flags = O_RDONLY | O_DIRECTORY;
    int fd = inside_has (path) ? inside_open (path, flags, 0, NULL)
                               : open (path, flags | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    int rv;

    if (fd < 0 && errno == EACCES && lstat (path, &st) == 0
        && st.st_uid != geteuid ())
        return refuse (path, st.st_uid, err);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        errno = ENOTDIR;
        return errorf (err,
                       "%.160s: cannot make: a link or a file has the name: "
                       "remove it, or name a folder of your own",
                       path);
    }
    if (fd < 0)
        return errorf (err, "%.160s: %s", path, strerror (errno));
    rv = fstat (fd, &st);
    close (fd);
    if (rv < 0)
        return errorf (err, "%.160s: %s", path, strerror (errno));
    return st.st_uid == geteuid () ? 0 : refuse (path, st.st_uid, err);
}

int own_folder_make (const char *path, mode_t mode, struct slurmdl_error *err)
{
    int rv = inside_mkdir_any (path, mode);

    if (rv < 0 && errno == ENOENT) {
        make_above (path);
        rv = inside_mkdir_any (path, mode);
    }
    if (rv < 0 && errno != EEXIST)
        return errorf (err, "%.160s: cannot make: %s", path, strerror (errno));
    return check (path, err);
}
