/* SPDX-License-Identifier: Apache-2.0 */
/* Load the module that copies device memory. */
#include "runtime/base/device_memory.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/base/environment.h"

static const char *const signs_of_cuda[] = { "libcuda.so.1", "libcudart.so.13", "libcudart.so.12",
                                             "libcudart.so.11.0" };

static pthread_once_t device_memory_once = PTHREAD_ONCE_INIT;
static atomic_bool found;
static const struct memory_ops *cuda_ops;

static bool process_has_cuda (void)
{
    if (*environment_text ("DL_BACKEND_DIR", ""))
        return true;
    for (size_t i = 0; i < sizeof (signs_of_cuda) / sizeof (*signs_of_cuda); i++) {
        void *h = dlopen (signs_of_cuda[i], RTLD_LAZY | RTLD_NOLOAD);
        if (h) {
            dlclose (h);
            return true;
        }
    }
    return false;
}

static void load_cuda_module (void)
{
    char path[PATH_MAX];
    void *h;

    snprintf (path, sizeof (path), "%s/slurmdl-cuda.so",
              environment_text ("DL_BACKEND_DIR", PKGLIBDIR));
    if ((h = dlopen (path, RTLD_NOW | RTLD_LOCAL)))
        cuda_ops = dlsym (h, "slurmdl_memory_cuda");
}

static int read_loads (struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

/* A program may load CUDA after its first save of host memory, so look again
 * whenever another library has been loaded.
 */
static bool find_cuda (void)
{
    static atomic_ullong looked_at;
    unsigned long long loads = 0;

    dl_iterate_phdr (read_loads, &loads);
    if (loads == atomic_load (&looked_at))
        return false;
    if (!process_has_cuda ()) {
        atomic_store (&looked_at, loads);
        return false;
    }
    pthread_once (&device_memory_once, load_cuda_module);
    atomic_store_explicit (&found, true, memory_order_release);
    return true;
}

const struct memory_ops *memory_ops_of (const void *p)
{
    if (!atomic_load_explicit (&found, memory_order_acquire) && !find_cuda ())
        return NULL;
    return cuda_ops && cuda_ops->is_device (p) ? cuda_ops : NULL;
}
