/* SPDX-License-Identifier: Apache-2.0 */
/* Fake libcuda.so.1 with two GPUs in host memory.  Tests also load it as libcublas.so.13 and
 * libnccl.so.2, whose version is FAKE_NCCL.  FAKE_FAULTS works as in nvml.c, with the faults "flip"
 * (one bit changes when memory is read back), "stuck" (a copy never ends), "pcie" (copies to the
 * GPU are slow), "blas" (cuBLAS is out of memory), "full" (little memory is free), "product" (a
 * product fails), "late" (waiting for several products fails) and "cuda" (the context fails).
 */
/* dl loads these functions without a header, so there are no prototypes */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS = 2, INVALID_CONTEXT = 201 };

/* How often each GPU's context is retained; the context is the address of the element. */
static int contexts[GPUS];
static int *current; /* NULL: none */
static int products; /* since the last cuCtxSynchronize() */

static int device_has (int device, const char *fault)
{
    const char *node = getenv ("SLURMD_NODENAME");
    const char *list = getenv ("FAKE_FAULTS");
    char text[128];

    snprintf (text, sizeof (text), "%s:%s:%d", node ? node : "here", fault, device);
    return list && strstr (list, text) != NULL;
}

/* Whether the GPU of the current context has the fault. */
static int has (const char *fault)
{
    return device_has ((int)(current - contexts), fault);
}

/* As in CUDA, most functions fail without a current context, or after its release. */
static int is_usable (void)
{
    return current && *current > 0;
}

int ncclGetVersion (int *version)
{
    const char *text = getenv ("FAKE_NCCL");

    *version = text ? atoi (text) : 0;
    return text ? 0 : 1;
}

int cuInit (unsigned flags)
{
    return (int)flags;
}

int cuDeviceGetCount (int *n)
{
    *n = GPUS;
    return 0;
}

int cuDeviceGet (int *device, int i)
{
    *device = i;
    return 0;
}

int cuDeviceGetPCIBusId (char *buf, int size, int device)
{
    snprintf (buf, (size_t)size, "0000:%02x:00.0", 0x1b + device);
    return 0;
}

int cuDevicePrimaryCtxRetain (void **context, int device)
{
    if (device_has (device, "cuda"))
        return 999;
    *context = &contexts[device];
    contexts[device]++;
    return 0;
}

int cuDevicePrimaryCtxRelease (int device)
{
    return --contexts[device] < 0 ? INVALID_CONTEXT : 0;
}

int cuCtxSetCurrent (void *context)
{
    current = context;
    return 0;
}

int cuMemGetInfo_v2 (size_t *available, size_t *total)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    *available = *total = (has ("full") ? 8 : 48) << 20;
    return 0;
}

int cuMemAlloc_v2 (unsigned long long *at, size_t size)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    *at = (unsigned long long)(size_t)malloc (size);
    return *at ? 0 : 2;
}

int cuMemFree_v2 (unsigned long long at)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    free ((void *)(size_t)at);
    return 0;
}

int cuMemsetD32_v2 (unsigned long long at, unsigned value, size_t n)
{
    unsigned *words = (unsigned *)(size_t)at;

    if (!is_usable ())
        return INVALID_CONTEXT;
    for (size_t i = 0; i < n; i++)
        words[i] = value;
    return 0;
}

int cuMemcpyDtoD_v2 (unsigned long long to, unsigned long long from, size_t n)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    while (has ("stuck"))
        pause ();
    usleep (20000); /* a fixed time, so that the rate does not depend on the load */
    memcpy ((void *)(size_t)to, (void *)(size_t)from, n);
    return 0;
}

int cuMemcpyDtoH_v2 (void *to, unsigned long long from, size_t n)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    usleep (20000);
    memcpy (to, (void *)(size_t)from, n);
    if (has ("flip"))
        ((char *)to)[n / 2] ^= 1;
    return 0;
}

int cuMemcpyHtoD_v2 (unsigned long long to, const void *from, size_t n)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    usleep (has ("pcie") ? 100000 : 20000);
    memcpy ((void *)(size_t)to, from, n);
    return 0;
}

int cuMemHostAlloc (void **at, size_t size, unsigned flags)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    *at = malloc (size);
    return *at ? 0 : 2;
}

int cuMemFreeHost (void *at)
{
    if (!is_usable ())
        return INVALID_CONTEXT;
    free (at);
    return 0;
}

int cublasCreate_v2 (void **handle)
{
    if (!is_usable ())
        return 1; /* not initialized */
    *handle = current;
    return has ("blas") ? 3 : 0; /* no memory */
}

int cublasDestroy_v2 (void *handle)
{
    return handle != current;
}

/* Takes a fixed time, so that the rate does not depend on the load. */
int cublasGemmEx (void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                  unsigned long long a, int atype, int lda, unsigned long long b, int btype,
                  int ldb, const void *beta, unsigned long long c, int ctype, int ldc, int compute,
                  int algorithm)
{
    if (!is_usable () || handle != current || transa || transb || m != n || n != k || lda != n
        || ldb != n || ldc != n || atype != 14 || btype != 14 || ctype != 14 || compute != 68
        || *(const float *)alpha != 1 || *(const float *)beta != 0 || b != a + 2ULL * m * n || !c)
        return 7;
    usleep (8000);
    products++;
    return has ("product") ? 13 : 0;
}

int cuCtxSynchronize (void)
{
    int n = products;

    if (!is_usable ())
        return INVALID_CONTEXT;
    products = 0;
    return n > 1 && has ("late") ? 700 : 0;
}
