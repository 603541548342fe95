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

static int current;
static int products; /* since the last cuCtxSynchronize() */

static int has (const char *fault)
{
    const char *node = getenv ("SLURMD_NODENAME");
    const char *list = getenv ("FAKE_FAULTS");
    char text[128];

    snprintf (text, sizeof (text), "%s:%s:%d", node ? node : "here", fault, current);
    return list && strstr (list, text) != NULL;
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
    *n = 2;
    return 0;
}

int cuDeviceGet (int *device, int i)
{
    *device = current = i;
    return 0;
}

int cuDeviceGetPCIBusId (char *buf, int size, int device)
{
    snprintf (buf, (size_t)size, "0000:%02x:00.0", 0x1b + device);
    return 0;
}

int cuDevicePrimaryCtxRetain (void **context, int device)
{
    *context = &current;
    return has ("cuda") ? 999 : 0;
}

int cuDevicePrimaryCtxRelease (int device)
{
    return 0;
}

int cuCtxSetCurrent (void *context)
{
    return 0;
}

int cuMemGetInfo_v2 (size_t *available, size_t *total)
{
    *available = *total = (has ("full") ? 8 : 48) << 20;
    return 0;
}

int cuMemAlloc_v2 (unsigned long long *at, size_t size)
{
    *at = (unsigned long long)(size_t)malloc (size);
    return *at ? 0 : 2;
}

int cuMemFree_v2 (unsigned long long at)
{
    free ((void *)(size_t)at);
    return 0;
}

int cuMemsetD32_v2 (unsigned long long at, unsigned value, size_t n)
{
    unsigned *words = (unsigned *)(size_t)at;

    for (size_t i = 0; i < n; i++)
        words[i] = value;
    return 0;
}

int cuMemcpyDtoD_v2 (unsigned long long to, unsigned long long from, size_t n)
{
    while (has ("stuck"))
        pause ();
    usleep (20000); /* a fixed time, so that the rate does not depend on the load */
    memcpy ((void *)(size_t)to, (void *)(size_t)from, n);
    return 0;
}

int cuMemcpyDtoH_v2 (void *to, unsigned long long from, size_t n)
{
    usleep (20000);
    memcpy (to, (void *)(size_t)from, n);
    if (has ("flip"))
        ((char *)to)[n / 2] ^= 1;
    return 0;
}

int cuMemcpyHtoD_v2 (unsigned long long to, const void *from, size_t n)
{
    usleep (has ("pcie") ? 100000 : 20000);
    memcpy ((void *)(size_t)to, from, n);
    return 0;
}

int cuMemHostAlloc (void **at, size_t size, unsigned flags)
{
    *at = malloc (size);
    return *at ? 0 : 2;
}

int cuMemFreeHost (void *at)
{
    free (at);
    return 0;
}

int cublasCreate_v2 (void **handle)
{
    *handle = &current;
    return has ("blas") ? 3 : 0; /* no memory */
}

int cublasDestroy_v2 (void *handle)
{
    return handle != &current;
}

/* Takes a fixed time, so that the rate does not depend on the load. */
int cublasGemmEx (void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                  unsigned long long a, int atype, int lda, unsigned long long b, int btype,
                  int ldb, const void *beta, unsigned long long c, int ctype, int ldc, int compute,
                  int algorithm)
{
    if (handle != &current || transa || transb || m != n || n != k || lda != n || ldb != n
        || ldc != n || atype != 14 || btype != 14 || ctype != 14 || compute != 68
        || *(const float *)alpha != 1 || *(const float *)beta != 0 || b != a + 2ULL * m * n || !c)
        return 7;
    usleep (8000);
    products++;
    return has ("product") ? 13 : 0;
}

int cuCtxSynchronize (void)
{
    int n = products;

    products = 0;
    return n > 1 && has ("late") ? 700 : 0;
}
