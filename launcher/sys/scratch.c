/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's folder in TMPDIR, removed by a later one if this one was killed.
 */
#include "launcher/sys/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sys/remove_tree.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

#define PREFIX "slurm-dl."

enum { YOUNG = 60 /* s */ };

/* A living worker holds a lock on its folder; the kernel drops it with the
 * process, in whatever container that was.
 */
static int lock_folder (const char *path)
{
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close (fd);
    return -1;
}

/* What else somebody has put there stays, and so does the folder. */
static void empty_folder (const char *path)
{
    char name[PATH_MAX + 16];

    snprintf (name, sizeof (name), "%s/" SCRATCH_SOCKET, path);
    unlink (name);
    snprintf (name, sizeof (name), "%s/" SCRATCH_CODE, path);
    remove_tree (name);
    rmdir (path);
}

/* Of this user; a young one may be about to be locked. */
static bool is_old_folder (const char *path, const char *name)
{
    struct stat st;

    return !strncmp (name, PREFIX, strlen (PREFIX))
           && strlen (name) == strlen (PREFIX) + 6 && lstat (path, &st) == 0
           && S_ISDIR (st.st_mode) && st.st_uid == geteuid ()
           && time (NULL) - st.st_mtime > YOUNG;
}

static void remove_old (const char *tmp)
{
    DIR *folder = opendir (tmp);
    char path[PATH_MAX];
    struct dirent *e;
    int fd;

    while (folder && (e = readdir (folder))) {
        if (snprintf (path, sizeof (path), "%s/%s", tmp, e->d_name)
                >= (int)sizeof (path)
            || !is_old_folder (path, e->d_name)
            || (fd = lock_folder (path)) < 0)
            continue;
        empty_folder (path);
        close (fd);
    }
    if (folder)
        closedir (folder);
}

static int make_in (const char *tmp, struct scratch *s)
{
    remove_old (tmp);
    if (snprintf (s->path, sizeof (s->path), "%s/" PREFIX "XXXXXX", tmp)
            >= (int)sizeof (s->path)
        || !mkdtemp (s->path)) {
        s->path[0] = '\0';
        return -1;
    }
    s->lock = lock_folder (s->path);
    return 0;
}

int scratch_make (struct scratch *s, int longest, struct slurmdl_error *err)
{
    const char *tmp = user_tmp ();
    bool fits = strlen (tmp) <= (size_t)longest && strcmp (tmp, "/tmp");

    s->lock = -1;
    if ((fits && make_in (tmp, s) == 0) || make_in ("/tmp", s) == 0)
        return 0;
    return errorf (err, "cannot make a folder in /tmp: %s", strerror (errno));
}

void scratch_remove (struct scratch *s)
{
    if (*s->path)
        empty_folder (s->path);
    *s->path = '\0';
    if (s->lock >= 0)
        close (s->lock);
    s->lock = -1;
}
