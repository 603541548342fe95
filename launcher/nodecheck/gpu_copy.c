/* SPDX-License-Identifier: Apache-2.0 */
/* Write, copy and compare memory of each GPU through the CUDA driver. */
#include "launcher/nodecheck/gpu_copy.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodecheck/gpus.h"
#include "runtime/base/clock.h"

/* The driver's interface, which has kept these names since CUDA 3.2. */
typedef unsigned long long device_pointer;

static struct {
    int (*init) (unsigned);
    int (*count) (int *);
    int (*get) (int *, int);
    int (*bus) (char *, int, int);
    int (*retain) (void **, int);
    int (*release) (int);
    int (*use) (void *);
    int (*memory) (size_t *, size_t *);
    int (*alloc) (device_pointer *, size_t);
    int (*free) (device_pointer);
    int (*set) (device_pointer, unsigned, size_t);
    int (*copy) (device_pointer, device_pointer, size_t);
    int (*fetch) (void *, device_pointer, size_t);
    int (*finish) (void);
} cuda;

/* clang-format off */
static const struct {
    void *at;
    const char *name;
} symbols[] = {
    { &cuda.init,    "cuInit" },
    { &cuda.count,   "cuDeviceGetCount" },
    { &cuda.get,     "cuDeviceGet" },
    { &cuda.bus,     "cuDeviceGetPCIBusId" },
    { &cuda.retain,  "cuDevicePrimaryCtxRetain" },
    { &cuda.release, "cuDevicePrimaryCtxRelease" },
    { &cuda.use,     "cuCtxSetCurrent" },
    { &cuda.memory,  "cuMemGetInfo_v2" },
    { &cuda.alloc,   "cuMemAlloc_v2" },
    { &cuda.free,    "cuMemFree_v2" },
    { &cuda.set,     "cuMemsetD32_v2" },
    { &cuda.copy,    "cuMemcpyDtoD_v2" },
    { &cuda.fetch,   "cuMemcpyDtoH_v2" },
    { &cuda.finish,  "cuCtxSynchronize" },
};
/* clang-format on */

enum { SIZE = 256 << 20, ROUNDS = 10 };

static const unsigned patterns[] = { 0x55555555, 0xaaaaaaaa, 0, 0xffffffff };

/* Each pattern is written, copied on the GPU and read back. */
static int compare (
    device_pointer a, device_pointer b, size_t size, unsigned *back, bool *same)
{
    int rv = 0;

    *same = true;
    for (size_t i = 0; rv == 0 && i < sizeof (patterns) / sizeof (*patterns);
         i++) {
        if ((rv = cuda.set (a, patterns[i], size / 4)) != 0
            || (rv = cuda.copy (b, a, size)) != 0
            || (rv = cuda.fetch (back, b, size)) != 0)
            return rv;
        for (size_t k = 0; k < size / 4; k++)
            *same &= back[k] == patterns[i];
    }
    return rv;
}

static int
rate_of (device_pointer a, device_pointer b, size_t size, double *rate)
{
    double start;
    int rv = cuda.finish ();

    start = monotonic ();
    for (int i = 0; rv == 0 && i < ROUNDS; i++)
        rv = cuda.copy (b, a, size);
    if (rv == 0)
        rv = cuda.finish ();
    *rate = 2.0 * ROUNDS * (double)size / (monotonic () - start) / 1e9;
    return rv;
}

static int test (const struct check_place *p, const char *bus, size_t size)
{
    device_pointer a = 0, b = 0;
    unsigned *back = malloc (size);
    char name[64];
    double rate = 0;
    bool same = true;
    int rv = 0;

    if (!back || (rv = cuda.alloc (&a, size)) != 0
        || (rv = cuda.alloc (&b, size)) != 0
        || (rv = compare (a, b, size, back, &same)) != 0
        || (rv = rate_of (a, b, size, &rate)) != 0)
        goto out;
    if (!same)
        check_finding (p,
                       SEVERITY_BAD,
                       "GPU %s: its memory gives back other than was written",
                       bus);
    snprintf (name, sizeof (name), "GPU copy %s", bus);
    check_fact (p, "rates", name, json_real (rate));
out:
    if (a)
        cuda.free (a);
    if (b)
        cuda.free (b);
    free (back);
    return rv;
}

static void test_device (const struct check_place *p, int i)
{
    size_t available = 0, total = 0, size = SIZE;
    char bus[32] = "";
    void *context = NULL;
    int device, rv;

    if (cuda.get (&device, i) != 0)
        return;
    if (cuda.bus (bus, sizeof (bus), device) != 0)
        snprintf (bus, sizeof (bus), "number %d", i);
    check_stage (p, "GPU %s", bus);
    if ((rv = cuda.retain (&context, device)) == 0
        && (rv = cuda.use (context)) == 0
        && (rv = cuda.memory (&available, &total)) == 0) {
        while (size > 1 << 20 && 3 * size > available)
            size /= 2;
        rv = test (p, bus, size);
    }
    if (rv != 0)
        check_finding (p,
                       SEVERITY_BAD,
                       "GPU %s: it cannot compute (CUDA error %d)",
                       bus,
                       rv);
    if (context)
        cuda.release (device);
}

static int load (void)
{
    void *library = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof (symbols) / sizeof (*symbols);
         i++) {
        void *f = dlsym (library, symbols[i].name);
        if (!f)
            return -1;
        memcpy (symbols[i].at, &f, sizeof (f));
    }
    return library ? 0 : -1;
}

/* Of GPUs that all ranks of a node see each rank tests its share. */
void check_copy (const struct check_place *p)
{
    const char *all = getenv ("SLURM_GPUS_ON_NODE");
    bool shared = !all || gpus_given () >= atol (all);
    int n = 0;
    int rv;

    if (gpus_none ())
        return;
    check_stage (p, "the driver");
    if (load () < 0)
        return;
    if ((rv = cuda.init (0)) != 0 || (rv = cuda.count (&n)) != 0) {
        check_finding (
            p, SEVERITY_BAD, "GPUs: CUDA does not start (error %d)", rv);
        return;
    }
    for (int i = 0; i < n; i++)
        if (!shared || i % p->local_size == p->local_rank)
            test_device (p, i);
}
