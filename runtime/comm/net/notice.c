/* SPDX-License-Identifier: Apache-2.0 */
/* Publish a line for the user's other processes, in a file in ~/.slurm-dl. */
#include "runtime/comm/net/notice.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"
#include "runtime/storage/inside.h"

static const char folder[] = ".slurm-dl";

int notice_step_name (char *buf, size_t size, const char *what)
{
    const char *again = environment_text ("SLURM_RESTART_COUNT", "");
    int n = snprintf (buf, size, "%s.%s.%s.%s", environment_text ("SLURM_JOB_ID", ""), step_id (),
                      *again ? again : "0", what);

    return *environment_text ("SLURM_JOB_ID", "") && *step_id () && n < (int)size
                   && !strchr (buf, '/')
               ? 0
               : -1;
}

static const char *home_folder (void)
{
    const char *dir = getenv ("HOME");
    const struct passwd *pw = dir && *dir ? NULL : getpwuid (geteuid ());

    return pw ? pw->pw_dir : dir;
}

/* Owned by this user and inaccessible to anybody else. */
static bool is_private (const struct stat *st)
{
    return st->st_uid == geteuid () && !(st->st_mode & 077);
}

static int keep_notice (int fd, bool good)
{
    if (good)
        return fd;
    close (fd);
    errno = EPERM;
    return -1;
}

/* Open the folder.  Returns -1 with EPERM if it belongs to another user or others
 * can access it.
 */
static int open_notice_folder (bool make)
{
    const char *dir = home_folder ();
    struct stat st;
    int fd, at;

    if (!dir || *dir != '/' || (at = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        errno = ENOTDIR; /* nobody will create it */
        return -1;
    }
    if (make)
        mkdirat (at, folder, 0700);
    fd = openat (at, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close (at);
    return fd < 0 ? -1 : keep_notice (fd, fstat (fd, &st) == 0 && is_private (&st));
}

/* Refuse links, pipes and other users' files. */
static int open_notice (int at, const char *name)
{
    int fd = openat (at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    return fd < 0
               ? -1
               : keep_notice (fd, fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && is_private (&st)
                                      && st.st_size > 0 && st.st_size < NOTICE_TEXT);
}

static int read_notice_file (int at, const char *name, char *text)
{
    int fd = open_notice (at, name);
    ssize_t n;

    if (fd < 0)
        return -1;
    n = read (fd, text, NOTICE_TEXT - 1);
    close (fd);
    if (n > 0 && text[n - 1] == '\n') {
        text[n - 1] = '\0';
        return 0;
    }
    errno = EINVAL;
    return -1;
}

static int write_file (int at, const char *name, const char *text)
{
    int fd = openat (at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t n = strlen (text);
    int rv = -1;

    if (fd >= 0 && write (fd, text, n) == (ssize_t)n && write (fd, "\n", 1) == 1)
        rv = 0;
    if (fd >= 0 && close (fd) < 0)
        rv = -1;
    return rv;
}

static int explain_notice (const char *name, struct slurmdl_error *err)
{
    int saved = errno;
    const char *dir = home_folder (); /* may change errno */

    errno = saved;
    errorf (err, "~/%s/%.80s (of %.40s): %s", folder, name, dir ? dir : "no home",
            saved == EPERM ? "it must be your own file, readable only by you" : strerror (saved));
    errno = saved;
    return -1;
}

static void unlink_quietly (int at, const char *name)
{
    int saved = errno;

    unlinkat (at, name, 0);
    errno = saved;
}

int notice_put (const char *name, const char *text, struct slurmdl_error *err)
{
    int at = open_notice_folder (true);
    uint64_t nonce;
    char tmp[64];
    int rv = -1;

    if (at >= 0 && getrandom (&nonce, sizeof (nonce), 0) == sizeof (nonce)) {
        snprintf (tmp, sizeof (tmp), ".tmp.%016" PRIx64, nonce);
        rv = write_file (at, tmp, text);
        if (rv == 0)
            rv = renameat (at, tmp, at, name);
        if (rv < 0)
            unlink_quietly (at, tmp);
    }
    rv = inside_close (at, rv);
    return rv < 0 ? explain_notice (name, err) : 0;
}

/* Look in a listing first: the client of a network file system may remember that a
 * name does not exist for longer than it caches a listing.
 */
static bool is_listed_notice (int at, const char *name)
{
    int copy = openat (at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir (copy);
    const struct dirent *e;
    bool found = false;

    if (!d && copy >= 0)
        close (copy);
    while (d && !found && (e = readdir (d)))
        found = !strcmp (e->d_name, name);
    if (d)
        closedir (d);
    return found;
}

int notice_get (const char *name, char *text, struct slurmdl_error *err)
{
    int at = open_notice_folder (false);
    int rv = -1;

    errno = at < 0 ? errno : ENOENT;
    if (at >= 0 && is_listed_notice (at, name))
        rv = read_notice_file (at, name, text);
    rv = inside_close (at, rv);
    return rv < 0 ? explain_notice (name, err) : 0;
}

void notice_remove (const char *name)
{
    int saved = errno;
    int at = open_notice_folder (false);

    if (at >= 0)
        unlink_quietly (at, name);
    inside_close (at, 0);
    errno = saved;
}

void notice_remove_all (const char *prefix)
{
    int at = open_notice_folder (false);
    DIR *d = at < 0 ? NULL : fdopendir (at);

    for (struct dirent *e; d && (e = readdir (d));)
        if (!strncmp (e->d_name, prefix, strlen (prefix)))
            unlinkat (at, e->d_name, 0);
    if (d)
        closedir (d);
    else if (at >= 0)
        close (at);
}
