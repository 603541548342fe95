/* SPDX-License-Identifier: Apache-2.0 */
/* Fake CUDA runtime in host memory: devices, memory, streams and events. */
#include "tests/fakes/cudart.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread int current;
static atomic_int of_memory; /* one device owns all memory of the process */

bool fakecuda_has (const char *fault)
{
    const char *value = getenv ("FAKE_NCCL");

    return value && !strcmp (value, fault);
}

cudaError_t cudaGetDeviceCount (int *n)
{
    *n = fakecuda_has ("alone") ? 1 : 8;
    return cudaSuccess;
}

cudaError_t cudaGetDevice (int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice (int device)
{
    current = device;
    if (device)
        atomic_store (&of_memory, device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId (char *id, int n, int device)
{
    snprintf (id, (size_t)n, "0000:%02x:00.0", device + 1);
    return fakecuda_has ("bus") ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute (int *value, enum cudaDeviceAttr what, int device)
{
    if (what != cudaDevAttrComputeCapabilityMajor)
        return cudaErrorInvalidValue;
    *value = fakecuda_has ("ampere") ? 8 : 9;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange (int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

const char *cudaGetErrorString (cudaError_t e)
{
    return e == cudaSuccess ? "no error" : "an error";
}

cudaError_t cudaGetLastError (void)
{
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode (enum cudaStreamCaptureMode *mode)
{
    *mode = cudaStreamCaptureModeGlobal;
    return cudaSuccess;
}

struct range {
    struct range *next;
    char *begin;
    size_t n;
};

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

cudaError_t cudaMalloc (void **p, size_t n)
{
    struct range *r = malloc (sizeof (*r));

    r->begin = *p = calloc (1, n);
    r->n = n;
    pthread_mutex_lock (&memory_lock);
    r->next = ranges;
    ranges = r;
    pthread_mutex_unlock (&memory_lock);
    return cudaSuccess;
}

cudaError_t cudaFree (void *p)
{
    struct range **at = &ranges;
    struct range *r;

    pthread_mutex_lock (&memory_lock);
    while (*at && (*at)->begin != p)
        at = &(*at)->next;
    if ((r = *at))
        *at = r->next;
    pthread_mutex_unlock (&memory_lock);
    free (r);
    free (p);
    return r || !p ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaHostAlloc (void **p, size_t n, unsigned flags)
{
    *p = malloc (n);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost (void *p)
{
    free (p);
    return cudaSuccess;
}

static bool is_of_device (const void *p)
{
    const char *at = p;
    const struct range *r;

    pthread_mutex_lock (&memory_lock);
    for (r = ranges; r && (at < r->begin || at >= r->begin + r->n);)
        r = r->next;
    pthread_mutex_unlock (&memory_lock);
    return r;
}

cudaError_t cudaPointerGetAttributes (struct cudaPointerAttributes *a, const void *p)
{
    memset (a, 0, sizeof (*a));
    if (!is_of_device (p))
        return cudaSuccess;
    a->type = cudaMemoryTypeDevice;
    a->device = atomic_load (&of_memory);
    return cudaSuccess;
}

static atomic_size_t host_bytes;
static atomic_int device_copies, device_calls;

struct fakecuda_counts fakecuda_counted (void)
{
    return (struct fakecuda_counts){ atomic_load (&host_bytes), atomic_load (&device_copies),
                                     atomic_load (&device_calls) };
}

static void count (size_t n, enum cudaMemcpyKind kind)
{
    if (kind != cudaMemcpyDeviceToDevice) {
        atomic_fetch_add (&host_bytes, n);
        return;
    }
    atomic_fetch_add (&device_copies, 1);
    atomic_fetch_add (&device_calls, 1);
}

struct thing {
    struct thing *next;
    fakecuda_f *f;
    void *arg;
};

struct stream {
    struct stream *next;
    void *handle;
    struct thing *first, **last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;

void fakecuda_lock (void)
{
    pthread_mutex_lock (&lock);
}

void fakecuda_unlock (void)
{
    pthread_mutex_unlock (&lock);
}

static struct stream *stream_of (void *handle)
{
    struct stream *s = streams;

    while (s && s->handle != handle)
        s = s->next;
    if (s)
        return s;
    s = calloc (1, sizeof (*s));
    s->handle = handle;
    s->last = &s->first;
    s->next = streams;
    streams = s;
    return s;
}

void fakecuda_queue (void *handle, fakecuda_f *f, void *arg)
{
    struct stream *s = stream_of (handle);
    struct thing *t = calloc (1, sizeof (*t));

    t->f = f;
    t->arg = arg;
    *s->last = t;
    s->last = &t->next;
}

static bool step (struct stream *s)
{
    struct thing *t = s->first;

    if (!t || !t->f (t->arg))
        return false;
    if (!(s->first = t->next))
        s->last = &s->first;
    free (t);
    return true;
}

static void progress (void)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (struct stream *s = streams; s; s = s->next)
            while (step (s))
                moved = true;
    }
}

cudaError_t cudaStreamQuery (cudaStream_t handle)
{
    bool is_busy;

    fakecuda_lock ();
    progress ();
    is_busy = stream_of (handle)->first;
    fakecuda_unlock ();
    if (is_busy)
        usleep (50);
    return is_busy ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaStreamSynchronize (cudaStream_t handle)
{
    while (cudaStreamQuery (handle) == cudaErrorNotReady)
        continue;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize (void)
{
    return cudaStreamSynchronize (NULL);
}

cudaError_t cudaStreamCreate (cudaStream_t *stream)
{
    *stream = malloc (1);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags (cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreate (stream);
}

cudaError_t cudaStreamCreateWithPriority (cudaStream_t *stream, unsigned flags, int priority)
{
    return flags == cudaStreamNonBlocking && priority < 0 ? cudaStreamCreate (stream)
                                                          : cudaErrorInvalidValue;
}

/* Drops queued work that cannot run yet. */
cudaError_t cudaStreamDestroy (cudaStream_t handle)
{
    struct stream **at = &streams;
    struct stream *s;

    fakecuda_lock ();
    progress ();
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    if ((s = *at))
        *at = s->next;
    fakecuda_unlock ();
    for (struct thing *t = s ? s->first : NULL; t; t = s->first) {
        s->first = t->next;
        free (t->arg);
        free (t);
    }
    free (s);
    free (handle);
    return cudaSuccess;
}

struct copied {
    void *to;
    const void *from; /* NULL: zeros */
    size_t n;
    int asked; /* number of polls until it is done */
    char bytes[];
};

static bool do_copy (void *arg)
{
    struct copied *c = arg;

    if (c->asked-- > 0)
        return false;
    if (c->from)
        memcpy (c->to, c->from, c->n);
    else
        memset (c->to, 0, c->n);
    free (c);
    return true;
}

static cudaError_t queue_copy (cudaStream_t stream, struct copied *c)
{
    fakecuda_lock ();
    fakecuda_queue (stream, do_copy, c);
    fakecuda_unlock ();
    return cudaSuccess;
}

static cudaError_t begin_copy (void *to, const void *from, size_t n, cudaStream_t stream)
{
    struct copied *c = malloc (sizeof (*c));

    *c = (struct copied){ .to = to, .from = from, .n = n };
    return queue_copy (stream, c);
}

/* Check which addresses are on the device, as real CUDA does. */
static bool is_possible (const void *to, const void *from, enum cudaMemcpyKind k)
{
    return is_of_device (to) == (k != cudaMemcpyDeviceToHost)
           && is_of_device (from) == (k != cudaMemcpyHostToDevice);
}

cudaError_t cudaMemcpyAsync (void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                             cudaStream_t stream)
{
    if (!is_possible (to, from, kind))
        return cudaErrorInvalidValue;
    count (n, kind);
    return begin_copy (to, from, n, stream);
}

#if CUDART_VERSION >= 13000
/* Fails with FAKE_CUDA=old. */
cudaError_t cudaMemcpyBatchAsync (void *const *to, const void *const *from, const size_t *bytes,
                                  size_t n, struct cudaMemcpyAttributes *how, size_t *first,
                                  size_t nhow, cudaStream_t stream)
{
    if (getenv ("FAKE_CUDA") || !stream || nhow != 1 || *first
        || how->srcAccessOrder != cudaMemcpySrcAccessOrderStream)
        return cudaErrorInvalidValue;
    for (size_t i = n; i-- > 0;)
        if (!bytes[i]
            || cudaMemcpyAsync (to[i], from[i], bytes[i], cudaMemcpyDeviceToDevice, stream)
                   != cudaSuccess)
            return cudaErrorInvalidValue;
    atomic_fetch_add (&device_calls, 1 - (int)n);
    return cudaSuccess;
}
#endif

cudaError_t cudaMemsetAsync (void *to, int value, size_t n, cudaStream_t stream)
{
    if (!is_of_device (to) || value)
        return cudaErrorInvalidValue;
    return begin_copy (to, NULL, n, stream);
}

cudaError_t cudaMemcpy (void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    if (!is_possible (to, from, kind))
        return cudaErrorInvalidValue;
    cudaStreamSynchronize (NULL);
    count (n, kind);
    memcpy (to, from, n);
    return cudaSuccess;
}

void fakecuda_write (void *stream, void *to, const void *bytes, size_t n, int asked)
{
    struct copied *c = calloc (1, sizeof (*c) + n);

    *c = (struct copied){ .to = to, .from = c->bytes, .n = n, .asked = asked };
    memcpy (c->bytes, bytes, n);
    queue_copy (stream, c);
}

struct CUevent_st {
    unsigned recorded, passed;
};

/* A stream records an event, or waits for it. */
struct moment {
    struct CUevent_st *event;
    unsigned number;
};

static bool do_record (void *arg)
{
    struct moment *m = arg;

    m->event->passed = m->number;
    free (m);
    return true;
}

static bool do_wait (void *arg)
{
    struct moment *m = arg;

    if (m->event->passed < m->number)
        return false;
    free (m);
    return true;
}

static cudaError_t queue_moment (cudaStream_t stream, cudaEvent_t e, fakecuda_f *f)
{
    struct moment *m = calloc (1, sizeof (*m));

    fakecuda_lock ();
    e->recorded += f == do_record;
    m->event = e;
    m->number = e->recorded;
    fakecuda_queue (stream, f, m);
    fakecuda_unlock ();
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags (cudaEvent_t *e, unsigned flags)
{
    *e = calloc (1, sizeof (**e));
    return cudaSuccess;
}

cudaError_t cudaEventRecord (cudaEvent_t e, cudaStream_t stream)
{
    return queue_moment (stream, e, do_record);
}

cudaError_t cudaStreamWaitEvent (cudaStream_t stream, cudaEvent_t e, unsigned f)
{
    return queue_moment (stream, e, do_wait);
}

cudaError_t cudaEventQuery (cudaEvent_t e)
{
    bool is_passed;

    fakecuda_lock ();
    progress ();
    is_passed = e->passed >= e->recorded;
    fakecuda_unlock ();
    return is_passed ? cudaSuccess : cudaErrorNotReady;
}
