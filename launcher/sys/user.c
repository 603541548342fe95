/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process. */
#include "launcher/sys/user.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *user_name (void)
{
    const struct passwd *pw = getpwuid (geteuid ());
    static char number[24];

    if (pw)
        return pw->pw_name;
    snprintf (number, sizeof (number), "%ld", (long)geteuid ());
    return number;
}

bool user_has_group_alone (gid_t gid)
{
    const struct passwd *pw = getpwuid (geteuid ());
    const struct group *g = pw ? getgrgid (gid) : NULL;

    return g && !strcmp (g->gr_name, pw->pw_name) && !*g->gr_mem;
}
