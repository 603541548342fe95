/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process, and checks of file ownership. */
#include "launcher/sys/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

const char *user_name_of (uid_t uid)
{
    const struct passwd *pw = getpwuid (uid);
    static char number[24];

    if (pw)
        return pw->pw_name;
    snprintf (number, sizeof (number), "%lu", (unsigned long)uid);
    return number;
}

const char *user_name (void)
{
    return user_name_of (geteuid ());
}

/* Whether the group has no other member.  Many systems give each user a group of the same name. */
static bool has_group_alone (gid_t gid)
{
    const struct passwd *pw = getpwuid (geteuid ());
    const struct group *g = pw ? getgrgid (gid) : NULL;

    return g && !strcmp (g->gr_name, pw->pw_name) && !*g->gr_mem;
}

bool user_writes_alone (const struct stat *st)
{
    return st->st_uid == geteuid () && !(st->st_mode & S_IWOTH)
           && (!(st->st_mode & S_IWGRP) || has_group_alone (st->st_gid));
}

int user_folder_check (const char *path)
{
    struct stat st;
    int fd = inside_open (path, O_PATH | O_DIRECTORY, 0, &st);

    if (fd < 0)
        return -1;
    close (fd);
    errno = EPERM;
    return st.st_uid == geteuid () && !(st.st_mode & (S_IWGRP | S_IWOTH)) ? 0 : -1;
}

bool user_is_of_others (const struct stat *st)
{
    return st->st_uid != geteuid () && st->st_uid != 0;
}

bool user_may_follow (const char *path)
{
    struct stat st;

    return lstat (path, &st) < 0 || !S_ISLNK (st.st_mode) || !user_is_of_others (&st);
}

/* Wait for a reader of the user's own pipe, but never for one of another user's pipe. */
static int open_unless_kept (const char *path, int flags)
{
    struct stat st;
    int fd = open (path, flags | O_NONBLOCK, 0666);

    if (fd >= 0 || errno != ENXIO || stat (path, &st) < 0)
        return fd;
    if (!user_is_of_others (&st))
        return open (path, flags, 0666);
    errno = EPERM;
    return -1;
}

static int refuse_others (int fd)
{
    struct stat st;
    int rv = fstat (fd, &st);

    if (rv == 0 && user_is_of_others (&st)) {
        errno = EPERM;
        rv = -1;
    } else if (rv == 0 && S_ISREG (st.st_mode))
        rv = ftruncate (fd, 0);
    /* block if a pipe is full */
    return rv == 0 ? fcntl (fd, F_SETFL, 0) : -1;
}

FILE *user_open_output (const char *path, struct slurmdl_error *err)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
    int fd = open_unless_kept (path, flags | O_NOFOLLOW);
    FILE *f = NULL;

    if (fd < 0 && errno == ELOOP && user_may_follow (path))
        fd = open_unless_kept (path, flags);
    if (fd >= 0 && refuse_others (fd) == 0)
        f = fdopen (fd, "w");
    if (!f) {
        inside_close (fd, 0);
        errorf (err, "%s: cannot write: %s", path,
                errno == EPERM ? "it belongs to another user" : inside_error (errno));
    }
    return f;
}

enum name_writers user_names_check (const char *path, struct slurmdl_error *err)
{
    struct stat st;
    bool all, group;

    if (stat (path, &st) < 0 || st.st_mode & S_ISVTX)
        return NAMES_OF_NOBODY;
    all = st.st_mode & S_IWOTH;
    group = st.st_mode & S_IWGRP && !has_group_alone (st.st_gid);
    if (!all && !group)
        return NAMES_OF_NOBODY;
    errorf (err, "%s: %s can replace your folder, and so decide what you run: chmod +t", path,
            all ? "everybody" : "its group");
    errno = EPERM;
    return all ? NAMES_OF_EVERYBODY : NAMES_OF_GROUP;
}

/* The owner of a folder can replace files in it, whatever its mode. */
static bool is_safe_tmp (const char *path)
{
    struct stat st;

    return *path == '/' && stat (path, &st) == 0 && !user_is_of_others (&st)
           && user_names_check (path, NULL) == NAMES_OF_NOBODY;
}

const char *user_tmp (void)
{
    const char *tmp = getenv ("TMPDIR");

    return tmp && is_safe_tmp (tmp) ? tmp : "/tmp";
}
