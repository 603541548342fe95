/* SPDX-License-Identifier: Apache-2.0 */
/* The public collectives: check the arguments, and choose a back end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/device_memory.h"
#include "runtime/base/error.h"
#include "runtime/comm/api/comm.h"
#include "runtime/comm/mesh/collective.h"
#include "runtime/comm/reduce/reduce.h"

/* A collective in progress. */
struct comm_call {
    struct slurmdl_comm *c;
    struct collective how;
    size_t bytes_in, bytes_out; /* 0: not used on this rank */
    struct slurmdl_error *err;
};

static int usable (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    if (err)
        *err->text = '\0';
    if (!c->broken)
        return 0;
    errno = ENOTCONN;
    return errorf (err, "the communicator is broken: %s", c->why.text);
}

static int refuse_call (struct slurmdl_error *err, const char *what)
{
    errno = EINVAL;
    return errorf (err, "%s", what);
}

static int check_op (const struct comm_call *k)
{
    if (!slurmdl_type_size (k->how.type))
        return refuse_call (k->err, "no such element type");
    if (k->how.op > SLURMDL_PRODUCT || !reduce_defined (k->how.type, k->how.op)) {
        errno = EINVAL;
        return errorf (k->err, "this operation (%d) is not defined for %s", (int)k->how.op,
                       slurmdl_type_name (k->how.type));
    }
    return 0;
}

static int check_collective (const struct comm_call *k)
{
    if (usable (k->c, k->err) < 0)
        return -1;
    if (k->how.root < 0 || k->how.root >= mesh_size (k->c->mesh))
        return refuse_call (k->err, "the root is not a rank");
    if (k->how.what <= COMM_REDUCE_SCATTER && check_op (k) < 0)
        return -1;
    if ((k->bytes_in && !k->how.in) || (k->bytes_out && !k->how.out))
        return refuse_call (k->err, "memory is NULL");
    return 0;
}

static int on_host (const struct comm_call *k, const struct collective *how)
{
    return k->c->host->run (k->c->host_self, how, k->err);
}

struct staged {
    const struct memory_ops *ops;
    void *in, *out;
    bool pinned;
};

static void *stage_new (struct staged *s, size_t n)
{
    return n == 0 ? NULL : s->pinned ? s->ops->alloc_pinned (n) : malloc (n);
}

static void stage_free (struct staged *s, void *p)
{
    if (p && s->pinned)
        s->ops->free_pinned (p);
    else
        free (p);
}

/* Copy device memory through the host if no back end takes it. */
static int through_host (const struct comm_call *k, const struct memory_ops *ops)
{
    struct staged s = { ops, NULL, NULL, ops->alloc_pinned != NULL };
    struct collective how = k->how;
    bool both = k->how.what == COMM_BROADCAST;
    int rv = -1;

    how.in = s.in = stage_new (&s, k->bytes_in);
    how.out = s.out = stage_new (&s, k->bytes_out);
    if ((k->bytes_in && !s.in) || (k->bytes_out && !s.out))
        errorf (k->err, "out of memory: %zu bytes", k->bytes_in + k->bytes_out);
    else if ((k->bytes_in && ops->to_host (s.in, k->how.in, k->bytes_in) < 0)
             || (both && ops->to_host (s.out, k->how.out, k->bytes_out) < 0))
        errorf (k->err, "the device's memory cannot be read");
    else if (on_host (k, &how) == 0)
        rv = k->bytes_out ? ops->to_device (k->how.out, s.out, k->bytes_out) : 0;
    stage_free (&s, s.in);
    stage_free (&s, s.out);
    return rv;
}

static const struct memory_ops *call_memory (const struct comm_call *k)
{
    const void *p = k->bytes_out && k->how.out ? k->how.out : k->how.in;

    return p ? memory_ops_of (p) : NULL;
}

/* With a single rank, its input is the result. */
static int run_alone (const struct comm_call *k)
{
    const struct memory_ops *ops = call_memory (k);
    size_t n = k->bytes_in < k->bytes_out ? k->bytes_in : k->bytes_out;
    void *copy;
    int rv;

    if (n == 0 || k->how.in == k->how.out)
        return 0;
    if (!ops) {
        memmove (k->how.out, k->how.in, n);
        return 0;
    }
    if (ops->on_device && memory_ops_of (k->how.in) == ops)
        return ops->on_device (k->how.out, k->how.in, n) == 0
                   ? 0
                   : errorf (k->err, "the device's memory cannot be copied");
    if (!(copy = malloc (n)))
        return errorf (k->err, "out of memory: %zu bytes", n);
    rv = ops->to_host (copy, k->how.in, n);
    if (rv == 0)
        rv = ops->to_device (k->how.out, copy, n);
    free (copy);
    return rv;
}

/* Whether there is nothing to do.  All ranks agree on this. */
static bool is_empty_call (const struct comm_call *k)
{
    return k->how.what <= COMM_REDUCE_SCATTER                               ? k->how.n == 0
           : k->how.what == COMM_ALLGATHER || k->how.what == COMM_BROADCAST ? k->bytes_out == 0
                                                                            : false;
}

static bool device_takes (const struct comm_call *k)
{
    const struct comm_backend *b = k->c->device;

    return b
           && (k->how.what > COMM_REDUCE_SCATTER || !b->takes
               || b->takes (k->c->device_self, k->how.type, k->how.op));
}

static bool host_takes_device (const struct comm_call *k)
{
    const struct comm_backend *b = k->c->host;

    return b->device || (b->takes_device && b->takes_device (k->c->host_self, k->how.what));
}

/* Wait for the default stream, because this library does not know about streams. */
static int sync_default_stream (const struct comm_call *k, const struct memory_ops *ops)
{
    struct timespec nap = { 0, 20000 };
    struct memory_mark *m;
    enum mark_state state;

    if (!ops->mark)
        return 0;
    if (!(m = ops->mark (k->bytes_out ? k->how.out : k->how.in, NULL)))
        return errorf (k->err, "cannot query the device's stream");
    while ((state = ops->state (m)) == MARK_PENDING)
        nanosleep (&nap, NULL);
    ops->unmark (m);
    return state == MARK_PASSED ? 0 : errorf (k->err, "the device's stream has failed");
}

static int perform (const struct comm_call *k)
{
    struct slurmdl_comm *c = k->c;
    const struct memory_ops *ops;
    int rv;

    if (is_empty_call (k))
        return 0;
    if (mesh_size (c->mesh) == 1)
        return run_alone (k);
    ops = call_memory (k);
    if (ops && comm_find_device (c, NULL, k->err) < 0)
        return comm_break (c, k->err);
    mesh_tag (c->mesh, tag_of (k->how.what, k->how.type, k->how.op, k->how.root, ++c->calls));
    if (ops && device_takes (k))
        rv = c->device->run (c->device_self, &k->how, k->err);
    else if (ops && !host_takes_device (k))
        rv = through_host (k, ops);
    else if (ops && sync_default_stream (k, ops) < 0)
        rv = -1;
    else
        rv = on_host (k, &k->how);
    return rv < 0 ? comm_break (c, k->err) : 0;
}

/* Agree whether all ranks can use the back end. */
static int all_can (struct slurmdl_comm *c, int can, struct slurmdl_error *err)
{
    int32_t mine = can;
    int32_t all = 0;
    struct collective least = { .what = COMM_ALLREDUCE,
                                .type = SLURMDL_I32,
                                .op = SLURMDL_MIN,
                                .n = 1,
                                .in = &mine,
                                .out = &all };

    mesh_tag (c->mesh, tag_of (COMM_OTHER, 0, 0, 0, ++c->calls));
    return c->host->run (c->host_self, &least, err) < 0 ? -1 : all;
}

int comm_find_device (struct slurmdl_comm *c, const void *p, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    const struct comm_backend *b = NULL;
    bool must = c->wanted && strcmp (c->wanted, "nccl") == 0;
    void *self = NULL;
    int can;

    if (c->device_tried || mesh_size (c->mesh) == 1)
        return 0;
    c->device_tried = true;
    if (!c->wanted || must)
        b = comm_backend_load ("nccl", &why);
    can = all_can (c, b && b->probe (&why) == 0, err);
    if (can < 0)
        return -1;
    if (!can && must) {
        errno = ENOTSUP;
        return errorf (err, "nccl: %s", *why.text ? why.text : "another rank");
    }
    if (!can)
        return 0;
    if (p && b->queue)
        b->queue->use (p);
    if (b->open (c->mesh, &self, err) < 0)
        return -1;
    c->device = b;
    atomic_store (&c->device_self, self);
    return 0;
}

static int begin_collective (struct comm_call *k)
{
    struct slurmdl_error spare;

    /* keep the reason even if the caller does not want it */
    if (k->err)
        return check_collective (k) < 0 ? -1 : perform (k);
    spare = (struct slurmdl_error){ "" };
    k->err = &spare;
    return check_collective (k) < 0 ? -1 : perform (k);
}

static size_t type_bytes (size_t n, enum slurmdl_type type)
{
    return n * slurmdl_type_size (type);
}

int slurmdl_allreduce (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                       enum slurmdl_type type, enum slurmdl_op op, struct slurmdl_error *err)
{
    struct comm_call k = { .c = c,
                           .how.what = COMM_ALLREDUCE,
                           .how.type = type,
                           .how.op = op,
                           .how.n = n,
                           .how.in = in,
                           .how.out = out,
                           .bytes_in = type_bytes (n, type),
                           .bytes_out = type_bytes (n, type),
                           .err = err };

    return begin_collective (&k);
}

int slurmdl_reduce (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                    enum slurmdl_type type, enum slurmdl_op op, long root,
                    struct slurmdl_error *err)
{
    bool is_root = mesh_rank (c->mesh) == root;
    struct comm_call k = { .c = c,
                           .how.what = COMM_REDUCE,
                           .how.type = type,
                           .how.op = op,
                           .how.root = root,
                           .how.n = n,
                           .how.in = in,
                           .how.out = is_root ? out : NULL,
                           .bytes_in = type_bytes (n, type),
                           .bytes_out = is_root ? type_bytes (n, type) : 0,
                           .err = err };

    return begin_collective (&k);
}

/* The sum of the counts, or SIZE_MAX on overflow, which no memory and no 'n' can
 * match.
 */
static size_t sum_of_counts (const size_t *counts, long n)
{
    size_t sum = 0;

    for (long i = 0; i < n; i++)
        if (__builtin_add_overflow (sum, counts[i], &sum))
            return SIZE_MAX;
    return sum;
}

/* n / size for each rank, plus one for the first ones.  With 'same', 'n' for each. */
static size_t *counts_of (long size, size_t n, bool same)
{
    size_t *counts = malloc ((size_t)size * sizeof (*counts));

    for (size_t r = 0; counts && r < (size_t)size; r++)
        counts[r] = same ? n : n / (size_t)size + (r < n % (size_t)size);
    return counts;
}

int slurmdl_reduce_scatter (struct slurmdl_comm *c, const void *in, void *out, size_t n,
                            const size_t *counts, enum slurmdl_type type, enum slurmdl_op op,
                            struct slurmdl_error *err)
{
    long size = mesh_size (c->mesh);
    size_t *own = counts ? NULL : counts_of (size, n, false);
    const size_t *parts = counts ? counts : own;
    struct comm_call k = { .c = c,
                           .how.what = COMM_REDUCE_SCATTER,
                           .how.type = type,
                           .how.op = op,
                           .how.n = n,
                           .how.in = in,
                           .how.out = out,
                           .how.counts = parts,
                           .bytes_in = type_bytes (n, type),
                           .err = err };
    int rv = -1;

    if (err)
        *err->text = '\0';
    if (!parts)
        errorf (err, "out of memory");
    else if (sum_of_counts (parts, size) != n)
        refuse_call (err, "the counts of all ranks must add up to n");
    else {
        k.bytes_out = type_bytes (parts[mesh_rank (c->mesh)], type);
        rv = begin_collective (&k);
    }
    free (own);
    return rv;
}

int slurmdl_allgather (struct slurmdl_comm *c, const void *in, size_t own, void *out,
                       const size_t *bytes, struct slurmdl_error *err)
{
    long size = mesh_size (c->mesh);
    size_t *even = bytes ? NULL : counts_of (size, own, true);
    struct comm_call k = { .c = c,
                           .how.what = COMM_ALLGATHER,
                           .how.in = in,
                           .how.out = out,
                           .how.counts = bytes ? bytes : even,
                           .bytes_in = own,
                           .err = err };
    int rv = -1;

    if (err)
        *err->text = '\0';
    if (!k.how.counts)
        errorf (err, "out of memory");
    else if (k.how.counts[mesh_rank (c->mesh)] != own)
        refuse_call (err, "bytes[] of this rank differs from the bytes that it passes");
    else {
        k.bytes_out = sum_of_counts (k.how.counts, size);
        rv = begin_collective (&k);
    }
    free (even);
    return rv;
}

int slurmdl_broadcast (struct slurmdl_comm *c, void *data, size_t bytes, long root,
                       struct slurmdl_error *err)
{
    struct comm_call k = { .c = c,
                           .how.what = COMM_BROADCAST,
                           .how.root = root,
                           .how.out = data,
                           .how.n = bytes,
                           .bytes_out = bytes,
                           .err = err };

    return begin_collective (&k);
}

int slurmdl_alltoall (struct slurmdl_comm *c, const void *in, const size_t *to, void *out,
                      const size_t *from, struct slurmdl_error *err)
{
    long size = mesh_size (c->mesh);
    struct comm_call k = { .c = c,
                           .how.what = COMM_ALLTOALL,
                           .how.in = in,
                           .how.out = out,
                           .how.counts = to,
                           .how.from = from,
                           .err = err };

    if (!to || !from) {
        if (err)
            *err->text = '\0';
        return refuse_call (err, "the sizes are NULL");
    }
    k.bytes_in = sum_of_counts (to, size);
    k.bytes_out = sum_of_counts (from, size);
    return begin_collective (&k);
}

int slurmdl_barrier (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    struct comm_call k = { .c = c, .how.what = COMM_BARRIER, .err = err };

    return begin_collective (&k);
}

int slurmdl_comm_stream (struct slurmdl_comm *c, void *stream)
{
    if (c->device && c->device->stream)
        return c->device->stream (c->device_self, stream);
    if (!stream)
        return 0;
    errno = ENOTSUP;
    return -1;
}
