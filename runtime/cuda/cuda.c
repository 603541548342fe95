/* SPDX-License-Identifier: Apache-2.0 */
/* slurmdl-cuda.so: copy the memory of CUDA devices. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/device_memory.h"

enum { DEVICES_MAX = 64 };

/* One stream per device, for the copies between cuda_begin() and cuda_end().  Only
 * one thread at a time takes a snapshot.
 */
static cudaStream_t streams[DEVICES_MAX];
static bool used[DEVICES_MAX];

static int cuda_check (cudaError_t e)
{
    if (e == cudaSuccess)
        return 0;
    cudaGetLastError (); /* so that the program does not see our error */
    errno = e == cudaErrorMemoryAllocation ? ENOMEM : EIO;
    return -1;
}

static bool cuda_is_device (const void *p)
{
    struct cudaPointerAttributes a;

    if (cuda_check (cudaPointerGetAttributes (&a, p)) < 0)
        return false;
    return a.type == cudaMemoryTypeDevice;
}

static int to_host (void *host, const void *device, size_t n)
{
    return cuda_check (cudaMemcpy (host, device, n, cudaMemcpyDeviceToHost));
}

/* cudaMemcpy() from pageable memory may return before the data arrive.  A stream
 * that does not synchronize with the default one could then read old data.
 */
static int to_device (void *device, const void *host, size_t n)
{
    return cuda_check (cudaMemcpy (device, host, n, cudaMemcpyHostToDevice)) < 0
               ? -1
               : cuda_check (cudaStreamSynchronize (NULL));
}

/* cudaMemcpy() within a device does not wait for the copy either. */
static int on_device (void *to, const void *from, size_t n)
{
    return cuda_check (cudaMemcpy (to, from, n, cudaMemcpyDeviceToDevice)) < 0
               ? -1
               : cuda_check (cudaStreamSynchronize (NULL));
}

static void *alloc_pinned (size_t n)
{
    void *p;

    return cuda_check (cudaHostAlloc (&p, n, cudaHostAllocPortable)) < 0 ? NULL : p;
}

static void free_pinned (void *p)
{
    cuda_check (cudaFreeHost (p));
}

/* Call 'f' with 'device' current, then restore the previous device. */
static int with_device (int device, int (*f) (int device))
{
    int before;
    int rv;

    if (cuda_check (cudaGetDevice (&before)) < 0 || cuda_check (cudaSetDevice (device)) < 0)
        return -1;
    rv = f (device);
    cuda_check (cudaSetDevice (before));
    return rv;
}

static int cuda_make_stream (int device)
{
    return streams[device]
               ? 0
               : cuda_check (cudaStreamCreateWithFlags (&streams[device], cudaStreamNonBlocking));
}

static int wait_for_device (int device)
{
    (void)device;
    return cuda_check (cudaDeviceSynchronize ());
}

static int wait_for_stream (int device)
{
    return cuda_check (cudaStreamSynchronize (streams[device]));
}

static int cuda_begin (void)
{
    for (int i = 0; i < DEVICES_MAX; i++)
        used[i] = false;
    return 0;
}

static int to_host_later (void *host, const void *device, size_t n)
{
    struct cudaPointerAttributes a;

    if (cuda_check (cudaPointerGetAttributes (&a, device)) < 0)
        return -1;
    if (a.device < 0 || a.device >= DEVICES_MAX)
        return to_host (host, device, n);
    if (!used[a.device]
        && (with_device (a.device, wait_for_device) < 0
            || with_device (a.device, cuda_make_stream) < 0))
        return -1;
    used[a.device] = true;
    return cuda_check (
        cudaMemcpyAsync (host, device, n, cudaMemcpyDeviceToHost, streams[a.device]));
}

static int cuda_end (void)
{
    int rv = 0;

    for (int i = 0; i < DEVICES_MAX; i++)
        if (used[i] && with_device (i, wait_for_stream) < 0)
            rv = -1;
    return rv;
}

struct mark {
    struct memory_mark shown; /* must be first: unmark() casts back */
    int device;
    struct mark *next;
};

static pthread_mutex_t cuda_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mark *spare[DEVICES_MAX];

static struct mark *take_spare (int device)
{
    struct mark *m;

    pthread_mutex_lock (&cuda_lock);
    if ((m = spare[device]))
        spare[device] = m->next;
    pthread_mutex_unlock (&cuda_lock);
    return m;
}

static void unmark (struct memory_mark *shown)
{
    struct mark *m = (struct mark *)shown;

    pthread_mutex_lock (&cuda_lock);
    m->next = spare[m->device];
    spare[m->device] = m;
    pthread_mutex_unlock (&cuda_lock);
}

/* The caller has made 'device' current. */
static struct mark *make_mark (int device)
{
    struct mark *m = take_spare (device);
    cudaEvent_t event;

    if (m || !(m = malloc (sizeof (*m))))
        return m;
    if (cuda_check (cudaEventCreateWithFlags (&event, cudaEventDisableTiming)) < 0) {
        free (m);
        return NULL;
    }
    m->shown.event = event;
    m->device = device;
    return m;
}

/* A NULL stream means the default stream of the current device, so make the device
 * of 'p' current first.
 */
static struct memory_mark *cuda_mark (const void *p, void *stream)
{
    struct cudaPointerAttributes a;
    struct mark *m;
    int before;

    if (cuda_check (cudaPointerGetAttributes (&a, p)) < 0
        || cuda_check (cudaGetDevice (&before)) < 0)
        return NULL;
    if (a.device < 0 || a.device >= DEVICES_MAX) {
        errno = ENOTSUP;
        return NULL;
    }
    if (before != a.device && cuda_check (cudaSetDevice (a.device)) < 0)
        return NULL;
    m = make_mark (a.device);
    if (m && cuda_check (cudaEventRecord (m->shown.event, stream)) < 0) {
        unmark (&m->shown);
        m = NULL;
    }
    if (before != a.device)
        cuda_check (cudaSetDevice (before));
    return m ? &m->shown : NULL;
}

static enum mark_state cuda_mark_state (const struct memory_mark *m)
{
    cudaError_t e = cudaEventQuery (m->event);

    return e == cudaErrorNotReady ? MARK_PENDING : cuda_check (e) < 0 ? MARK_FAILED : MARK_PASSED;
}

extern const struct memory_ops slurmdl_memory_cuda;
const struct memory_ops slurmdl_memory_cuda = {
    .name = "cuda",
    .is_device = cuda_is_device,
    .to_host = to_host,
    .to_device = to_device,
    .on_device = on_device,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .begin = cuda_begin,
    .to_host_later = to_host_later,
    .end = cuda_end,
    .mark = cuda_mark,
    .state = cuda_mark_state,
    .unmark = unmark,
};
