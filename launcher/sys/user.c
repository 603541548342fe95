/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process. */
#include "launcher/sys/user.h"

#include <pwd.h>
#include <stdio.h>
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
