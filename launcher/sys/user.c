/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process. */
#include "launcher/sys/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/storage/inside.h"

const char *user_name (void)
{
    const struct passwd *pw = getpwuid (geteuid ());
    static char number[24];

    if (pw)
        return pw->pw_name;
    snprintf (number, sizeof (number), "%ld", (long)geteuid ());
    return number;
}

/* Whether the group has nobody else: many systems give each user one of his
 * own, of his name.
 */
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
    return st.st_uid == geteuid () && !(st.st_mode & (S_IWGRP | S_IWOTH)) ? 0
                                                                          : -1;
}
