/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and collectives of the module slurmdl-nccl.so in one stream. */
#include <errno.h>
#include <stdlib.h>

#include "runtime/base/device_memory.h"
#include "runtime/base/error.h"
#include "runtime/comm/nccl/module.h"

enum { ROOM_LEAST = 1 << 20 };

static int check (cudaError_t e, const char *what, struct slurmdl_error *err)
{
    return e == cudaSuccess ? 0 : nccl_cuda_failed (e, what, err);
}

/* What the thread asks of CUDA must not end a capture of the program's. */
static void use (const void *p)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
    struct cudaPointerAttributes a;

    cudaThreadExchangeStreamCaptureMode (&mode);
    if (p && cudaPointerGetAttributes (&a, p) == cudaSuccess && a.type == cudaMemoryTypeDevice)
        cudaSetDevice (a.device);
    cudaGetLastError ();
}

/* Neither waits for the default stream nor makes it wait; what is queued goes
 * before the blocks of the program's kernels that have not begun.
 */
static int make_stream (struct nccl_self *s, struct slurmdl_error *err)
{
    int least = 0, greatest = 0;

    cudaDeviceGetStreamPriorityRange (&least, &greatest);
    return check (cudaStreamCreateWithPriority (&s->beside, cudaStreamNonBlocking, greatest),
                  "cudaStreamCreateWithPriority", err);
}

static int begin (void *self, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    int before;
    int rv = 0;

    if (s->failed || !s->comm) {
        errno = ENOTCONN;
        return errorf (err, "nccl: the communicator has failed before");
    }
    before = nccl_enter (s);
    if (!s->beside)
        rv = make_stream (s, err);
    nccl_leave (s, before);
    s->queueing = rv == 0;
    s->factor = 1;
    return rv;
}

static int after (void *self, const struct memory_mark *m, struct slurmdl_error *err)
{
    struct nccl_self *s = self;

    return check (cudaStreamWaitEvent (s->beside, m->event, 0), "cudaStreamWaitEvent", err);
}

/* cudaFree() would wait for all that the program has given the device to do:
 * what has become too small is kept, and what comes after it twice as large.
 */
static void *room (void *self, int which, size_t n, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    struct nccl_room *r = s->rooms[which];
    size_t size = r ? 2 * r->size : ROOM_LEAST;
    int before;

    if (r && r->size >= n)
        return r->data;
    if (size < n)
        size = n;
    if (!(r = calloc (1, sizeof (*r)))) {
        errorf (err, "out of memory");
        return NULL;
    }
    before = nccl_enter (s);
    if (check (cudaMalloc (&r->data, size), "cudaMalloc", err) < 0) {
        free (r);
        r = NULL;
    }
    nccl_leave (s, before);
    if (!r)
        return NULL;
    r->size = size;
    r->smaller = s->rooms[which];
    s->rooms[which] = r;
    return r->data;
}

static cudaError_t copy_one (const struct nccl_self *s, const struct comm_copy *c)
{
    if (!c->n)
        return cudaSuccess;
    if (!c->from)
        return cudaMemsetAsync (c->to, 0, c->n, s->beside);
    return cudaMemcpyAsync (c->to, c->from, c->n, cudaMemcpyDeviceToDevice, s->beside);
}

static int copy_each (const struct nccl_self *s, const struct comm_copy *list, size_t n,
                      struct slurmdl_error *err)
{
    int rv = 0;

    for (size_t i = 0; i < n && rv == 0; i++)
        rv = check (copy_one (s, &list[i]), "a copy on the device", err);
    return rv;
}

/* Of hundreds of small copies each takes longer to begin than to do. */
#if CUDART_VERSION >= 13000
struct nccl_copies {
    void **to;
    const void **from;
    size_t *bytes;
    size_t n;
};

static bool batch_make (struct nccl_copies *b, const struct comm_copy *list, size_t n)
{
    b->n = 0;
    b->to = malloc (n * sizeof (*b->to));
    b->from = malloc (n * sizeof (*b->from));
    b->bytes = malloc (n * sizeof (*b->bytes));
    if (!b->to || !b->from || !b->bytes)
        return false;
    for (size_t i = 0; i < n; i++)
        if (list[i].from && list[i].n) {
            b->to[b->n] = list[i].to;
            b->from[b->n] = list[i].from;
            b->bytes[b->n++] = list[i].n;
        }
    return true;
}

static bool batch_copy (const struct nccl_self *s, const struct nccl_copies *b)
{
    struct cudaMemcpyAttributes how = { .srcAccessOrder = cudaMemcpySrcAccessOrderStream };
    size_t first = 0;

    return !b->n
           || cudaMemcpyBatchAsync (b->to, b->from, b->bytes, b->n, &how, &first, 1, s->beside)
                  == cudaSuccess;
}

/* false: none of them was begun. */
static bool copy_together (const struct nccl_self *s, const struct comm_copy *list, size_t n)
{
    struct nccl_copies b;
    bool is_done = batch_make (&b, list, n) && batch_copy (s, &b);

    cudaGetLastError ();
    free (b.to);
    free (b.from);
    free (b.bytes);
    return is_done;
}
#else
static bool copy_together (const struct nccl_self *s, const struct comm_copy *list, size_t n)
{
    (void)s;
    (void)list;
    (void)n;
    return false;
}
#endif

static int copy_zeros (const struct nccl_self *s, const struct comm_copy *list, size_t n,
                       struct slurmdl_error *err)
{
    int rv = 0;

    for (size_t i = 0; i < n && rv == 0; i++)
        if (!list[i].from)
            rv = copy_each (s, &list[i], 1, err);
    return rv;
}

static int copy (void *self, const struct comm_copy *list, size_t n, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    int before = nccl_enter (s);
    int rv;

    if (n > 1 && !s->one_by_one && copy_together (s, list, n)) {
        rv = copy_zeros (s, list, n, err);
    } else {
        s->one_by_one = s->one_by_one || n > 1;
        rv = copy_each (s, list, n, err);
    }
    nccl_leave (s, before);
    return rv;
}

static void set_factor (void *self, double factor)
{
    struct nccl_self *s = self;

    s->factor = factor;
}

static int end (void *self, struct slurmdl_error *err)
{
    struct nccl_self *s = self;
    int before;
    int rv;

    if (!s->queueing)
        return 0;
    s->queueing = false;
    if (s->failed)
        return -1;
    before = nccl_enter (s);
    rv = nccl_drain (s, s->beside, true, "named tensors", err);
    nccl_leave (s, before);
    return rv;
}

const struct comm_queue nccl_queue = { .use = use,
                                       .begin = begin,
                                       .after = after,
                                       .room = room,
                                       .copy = copy,
                                       .factor = set_factor,
                                       .end = end };

void nccl_queue_free (struct nccl_self *s)
{
    struct nccl_room *r;

    if (s->beside)
        cudaStreamDestroy (s->beside);
    for (int i = 0; i < 2; i++)
        while ((r = s->rooms[i])) {
            s->rooms[i] = r->smaller;
            cudaFree (r->data);
            free (r);
        }
}
