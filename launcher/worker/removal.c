/* SPDX-License-Identifier: Apache-2.0 */
/* Remove the file of a checkpoint, and nothing outside its folder. */
#include "launcher/worker/removal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/storage/inside.h"

/* Where hard links are refused the name is a symbolic link beside it. */
static int remove_from (int folder, const char *name)
{
    char target[64];
    ssize_t n = readlinkat (folder, name, target, sizeof (target) - 1);

    if (unlinkat (folder, name, 0) < 0 && errno != ENOENT)
        return -1;
    target[n > 0 ? n : 0] = '\0';
    if (!inside_is_hidden (target))
        return 0;
    return unlinkat (folder, target, 0) < 0 && errno != ENOENT ? -1 : 0;
}

int removal_file (const char *path)
{
    const char *name;
    int folder = inside_parent (path, &name);
    int rv = folder < 0 ? -1 : remove_from (folder, name);
    int e = errno;

    if (folder >= 0)
        close (folder);
    errno = e;
    return rv;
}

void removal_folder (const char *path)
{
    char folder[PATH_MAX];

    snprintf (folder, sizeof (folder), "%.*s", (int)(strrchr (path, '/') - path), path);
    inside_unlink (folder, AT_REMOVEDIR);
}
