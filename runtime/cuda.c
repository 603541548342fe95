/* SPDX-License-Identifier: Apache-2.0 */
/* Copy a CUDA device's memory: the module slurmdl-cuda.so. */
#include <cuda_runtime_api.h>
#include <errno.h>

#include "runtime/memory.h"

static bool is_device (const void *p)
{
    struct cudaPointerAttributes a;

    if (cudaPointerGetAttributes (&a, p) != cudaSuccess) {
        cudaGetLastError (); /* else the program would find our error */
        return false;
    }
    return a.type == cudaMemoryTypeDevice;
}

static int copy (void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    if (cudaMemcpy (to, from, n, kind) == cudaSuccess)
        return 0;
    cudaGetLastError ();
    errno = EIO;
    return -1;
}

static int to_host (void *host, const void *device, size_t n)
{
    return copy (host, device, n, cudaMemcpyDeviceToHost);
}

static int to_device (void *device, const void *host, size_t n)
{
    return copy (device, host, n, cudaMemcpyHostToDevice);
}

extern const struct memory_ops slurmdl_memory_cuda;
const struct memory_ops slurmdl_memory_cuda = {
    "cuda",
    is_device,
    to_host,
    to_device,
};
