/* SPDX-License-Identifier: Apache-2.0 */
/* Load back ends that are modules. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/device_memory.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/api/backend.h"
#include "runtime/comm/native/native.h"
#include "runtime/comm/reduce/reduce.h"

static int gather_bytes (struct mesh *m, const void *mine, size_t bytes, void *all,
                         struct slurmdl_error *err)
{
    size_t n = (size_t)mesh_size (m);
    size_t *counts = malloc (n * sizeof (*counts));
    int rv;

    if (!counts)
        return errorf (err, "out of memory");
    for (size_t i = 0; i < n; i++)
        counts[i] = bytes;
    rv = flat_run (
        m, &(struct collective){ .what = COMM_ALLGATHER, .in = mine, .out = all, .counts = counts },
        err);
    free (counts);
    return rv;
}

static bool is_device_pointer (const void *p)
{
    return memory_ops_of (p) != NULL;
}

static const struct comm_services services = {
    mesh_rank,   mesh_size,    mesh_timeout,   mesh_local_rank,
    mesh_host,   mesh_check,   gather_bytes,   slurmdl_type_size,
    reduce_pair, reduce_scale, reduce_convert, is_device_pointer
};

static const char *const module_names[] = { "mpi", "nccl", NULL };

static bool is_backend (const char *name)
{
    for (int i = 0; module_names[i]; i++)
        if (!strcmp (module_names[i], name))
            return true;
    return false;
}

const struct comm_backend *comm_backend_load (const char *name, struct slurmdl_error *err)
{
    const struct comm_backend *b = NULL;
    char path[PATH_MAX];
    char symbol[64];
    void *h;

    if (!is_backend (name)) {
        errno = EINVAL;
        errorf (err, "'%s' is not a back end: native, mpi or nccl", name);
        return NULL;
    }
    snprintf (path, sizeof (path), "%s/slurmdl-%s.so",
              environment_text ("DL_BACKEND_DIR", PKGLIBDIR), name);
    snprintf (symbol, sizeof (symbol), "slurmdl_backend_%s", name);
    /* never close it: MPI and CUDA leave threads and handlers behind */
    if ((h = dlopen (path, RTLD_NOW | RTLD_LOCAL)))
        b = dlsym (h, symbol);
    if (!b) {
        const char *why = dlerror ();
        errno = ENOTSUP;
        errorf (err, "back end %s: %s", name, why ? why : "it is empty");
        return NULL;
    }
    b->attach (&services);
    return b;
}
