/* SPDX-License-Identifier: Apache-2.0 */
/* Find the module that can copy a device's memory. */
#include "runtime/base/device_memory.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const signs_of_cuda[] = {
    "libcuda.so.1", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct memory_ops *cuda;

static bool process_has_cuda (void)
{
    if (getenv ("DL_BACKEND_DIR"))
        return true;
    for (size_t i = 0; i < sizeof (signs_of_cuda) / sizeof (*signs_of_cuda);
         i++) {
        void *h = dlopen (signs_of_cuda[i], RTLD_LAZY | RTLD_NOLOAD);
        if (h) {
            dlclose (h);
            return true;
        }
    }
    return false;
}

static void load (void)
{
    const char *dir = getenv ("DL_BACKEND_DIR");
    char path[PATH_MAX];
    void *h;

    if (!process_has_cuda ())
        return;
    snprintf (path, sizeof (path), "%s/slurmdl-cuda.so", dir ? dir : PKGLIBDIR);
    if ((h = dlopen (path, RTLD_NOW | RTLD_LOCAL)))
        cuda = dlsym (h, "slurmdl_memory_cuda");
}

const struct memory_ops *memory_ops_of (const void *p)
{
    pthread_once (&once, load);
    return cuda && cuda->is_device (p) ? cuda : NULL;
}
