/* SPDX-License-Identifier: Apache-2.0 */
/* Load the back ends that are modules. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/backend.h"
#include "runtime/error.h"

static const char *const names[] = { "mpi", "nccl", NULL };

static bool is_known (const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp (names[i], name))
            return true;
    return false;
}

const struct comm_backend *comm_backend_load (const char *name,
                                              struct slurmdl_error *err)
{
    const char *dir = getenv ("DL_BACKEND_DIR");
    const struct comm_backend *b = NULL;
    char path[PATH_MAX];
    char symbol[64];
    void *h;

    if (!is_known (name)) {
        errno = EINVAL;
        errorf (err, "'%s' is no back end: native, mpi or nccl", name);
        return NULL;
    }
    snprintf (path,
              sizeof (path),
              "%s/slurmdl-%s.so",
              dir && *dir ? dir : PKGLIBDIR,
              name);
    snprintf (symbol, sizeof (symbol), "slurmdl_backend_%s", name);
    /* never closed: MPI and CUDA leave threads and handlers behind */
    if ((h = dlopen (path, RTLD_NOW | RTLD_LOCAL)))
        b = dlsym (h, symbol);
    if (!b) {
        const char *why = dlerror ();
        errno = ENOTSUP;
        errorf (err, "back end %s: %s", name, why ? why : "it is empty");
    }
    return b;
}
