/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's temporary folder in TMPDIR.  If the worker is killed, a later one removes it. */
#include "launcher/sys/temporary_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/remove_tree.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

#define PREFIX "slurm-dl."

enum { TRIES = 8 };

/* A live worker holds a lock on its folder.  The kernel drops it when the process ends, whatever
 * container it ran in.
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

/* Whether this is the name of the code's copy, of a working folder beside it, or of a spare one. */
static bool is_scratch_name (const char *name)
{
    return !strcmp (name, SCRATCH_CODE) || inside_is_hidden (name)
           || !strncmp (name, SCRATCH_CODE ".", strlen (SCRATCH_CODE "."));
}

/* Remove our own files.  If anything else is in the folder, leave it, and the folder too. */
static void empty_folder (const char *path)
{
    DIR *folder = opendir (path);
    char name[PATH_MAX + NAME_MAX];

    for (struct dirent *e; folder && (e = readdir (folder));) {
        snprintf (name, sizeof (name), "%s/%s", path, e->d_name);
        if (!strcmp (e->d_name, SCRATCH_SOCKET))
            unlink (name);
        else if (is_scratch_name (e->d_name))
            remove_tree (name);
    }
    if (folder)
        closedir (folder);
    rmdir (path);
}

static bool is_own_folder (const char *path, const char *name)
{
    struct stat st;

    return !strncmp (name, PREFIX, strlen (PREFIX)) && strlen (name) == strlen (PREFIX) + 6
           && lstat (path, &st) == 0 && S_ISDIR (st.st_mode) && st.st_uid == geteuid ();
}

static void remove_old (const char *tmp)
{
    DIR *folder = opendir (tmp);
    char path[PATH_MAX];
    struct dirent *e;
    int fd;

    while (folder && (e = readdir (folder))) {
        if (snprintf (path, sizeof (path), "%s/%s", tmp, e->d_name) >= (int)sizeof (path)
            || !is_own_folder (path, e->d_name) || (fd = lock_folder (path)) < 0)
            continue;
        empty_folder (path);
        close (fd);
    }
    if (folder)
        closedir (folder);
}

/* Before we locked the folder, another worker may have taken it for a dead one's and removed it. */
static bool is_taken (const struct scratch *s)
{
    struct stat st, locked;

    return lstat (s->path, &st) < 0
           || (s->lock >= 0 && fstat (s->lock, &locked) == 0 && locked.st_ino != st.st_ino);
}

static int make_in (const char *tmp, struct scratch *s)
{
    remove_old (tmp);
    for (int i = 0; i < TRIES; i++) {
        if (snprintf (s->path, sizeof (s->path), "%s/" PREFIX "XXXXXX", tmp)
                >= (int)sizeof (s->path)
            || !mkdtemp (s->path))
            break;
        s->lock = lock_folder (s->path);
        if (s->lock < 0 && errno == EWOULDBLOCK)
            continue;
        if (!is_taken (s))
            return 0;
        if (s->lock >= 0)
            close (s->lock);
        s->lock = -1;
    }
    s->path[0] = '\0';
    return -1;
}

void scratch_clean (void)
{
    remove_old ("/tmp");
    if (strcmp (user_tmp (), "/tmp"))
        remove_old (user_tmp ());
}

int scratch_make (struct scratch *s, int longest, struct slurmdl_error *err)
{
    const char *tmp = user_tmp ();
    bool fits = strlen (tmp) <= (size_t)longest && strcmp (tmp, "/tmp");

    s->lock = -1;
    if ((fits && make_in (tmp, s) == 0) || make_in ("/tmp", s) == 0)
        return 0;
    return errorf (err, "cannot create a folder in /tmp: %s", strerror (errno));
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
