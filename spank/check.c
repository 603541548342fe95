/* SPDX-License-Identifier: Apache-2.0 */
/* Check the value of an option: the table, and the site's network profiles. */
#include "spank/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/network/nccl.h"
#include "spank/context.h"

static bool is_builtin (const char *profile)
{
    return !strcmp (profile, "auto") || !strcmp (profile, "none");
}

/* Looks for the profile's file, too, unless on a node, where this runs as root.
 * A login node may have no profiles at all: then only a node can tell.
 */
static int check_profile (const char *value, char *why, size_t size)
{
    const char *dir = option_nccl_dir ();
    char path[NCCL_PATH];

    if (nccl_check_name (value) < 0) {
        snprintf (why, size, "no name of a profile");
        return -1;
    }
    nccl_path (path, dir, value);
    if (spank_context () == S_CTX_REMOTE || is_builtin (value) || access (dir, R_OK) < 0
        || access (path, F_OK) == 0)
        return 0;
    snprintf (why, size, "no such profile in %.100s", dir);
    return -1;
}

int option_check (int row, const char *value, char *why, size_t size)
{
    if (strnlen (value, VALUE_MAX + 1) > VALUE_MAX) {
        snprintf (why, size, "the value is too long");
        return -1;
    }
    if (plugin_option_check (row, value, why, size) == 0
        && (row != PLUGIN_NCCL || check_profile (value, why, size) == 0))
        return 0;
    if (!plugin_options[row].words)
        snprintf (why + strlen (why), size - strlen (why), "; see dl-spank(7)");
    return -1;
}
