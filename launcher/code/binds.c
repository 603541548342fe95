/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that a container sees. */
#include "launcher/code/binds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/sys/strings.h"
#include "runtime/base/error.h"

static bool is_below (const char *path, const char *folder)
{
    size_t n = strlen (folder);

    return !strncmp (path, folder, n) && (path[n] == '/' || !path[n]);
}

/* A folder under its own name; not again what one before it has. */
static int bind_folder (char ***binds, const char *path, const char *const *shared,
                        struct slurmdl_error *err)
{
    struct stat st;

    if (*path != '/' || stat (path, &st) < 0)
        return 0;
    for (const char *const *f = shared; f && *f; f++)
        if (is_below (path, *f))
            return 0;
    for (char **b = *binds; b && *b; b++)
        if (is_below (path, *b))
            return 0;
    if (!strpbrk (path, ":, \t\n"))
        return strings_add (binds, path);
    errno = EINVAL;
    return errorf (err,
                   "container: the folder '%s' cannot be bound: its name has "
                   "a colon, comma or space",
                   path);
}

/* The folder of the socket of `dl log`. */
static char *socket_folder (void)
{
    const char *path = getenv ("DL_SOCKET");
    const char *slash = path ? strrchr (path, '/') : NULL;

    return slash ? strndup (path, (size_t)(slash - path)) : NULL;
}

/* The last ones are left out where the runtime makes no folders in an image. */
int container_binds (char ***binds, const char *dir, char *const *folders,
                     const char *const *shared, struct slurmdl_error *err)
{
    char *socket = socket_folder ();
    bool in_step = getenv ("SLURM_PROCID");
    const char *more[] = { "/dev/shm", socket, in_step ? getenv ("PMIX_SERVER_TMPDIR") : NULL,
                           in_step ? "/run/munge" : NULL };
    size_t n = shared && *shared ? 1 : sizeof (more) / sizeof (*more);
    int rv = bind_folder (binds, dir, shared, err);

    for (; rv == 0 && folders && *folders; folders++)
        rv = bind_folder (binds, *folders, shared, err);
    for (size_t i = 0; rv == 0 && i < n; i++)
        if (more[i])
            rv = bind_folder (binds, more[i], shared, err);
    free (socket);
    return rv;
}
