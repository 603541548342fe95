/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives as a program calls them: checked, and given to whoever can.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/device_memory.h"
#include "runtime/base/error.h"
#include "runtime/comm/api/comm.h"
#include "runtime/comm/mesh/tag.h"
#include "runtime/comm/reduce/reduce.h"

/* A collective on its way. */
struct call {
    struct slurmdl_comm *c;
    enum collective what;
    enum slurmdl_type type;
    enum slurmdl_op op;
    long root;
    size_t n; /* elements */
    const void *in;
    void *out;
    size_t bytes_in, bytes_out; /* 0: not used on this rank */
    const size_t *counts, *from;
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

static int refuse (struct slurmdl_error *err, const char *what)
{
    errno = EINVAL;
    return errorf (err, "%s", what);
}

static int check_op (const struct call *k)
{
    if (!slurmdl_type_size (k->type))
        return refuse (k->err, "there is no such type of element");
    if (k->op > SLURMDL_PRODUCT || !reduce_defined (k->type, k->op)) {
        errno = EINVAL;
        return errorf (k->err,
                       "this operation (%d) is not defined for %s",
                       (int)k->op,
                       slurmdl_type_name (k->type));
    }
    return 0;
}

static int check (const struct call *k)
{
    if (usable (k->c, k->err) < 0)
        return -1;
    if (k->root < 0 || k->root >= mesh_size (k->c->mesh))
        return refuse (k->err, "the root is not a rank");
    if (k->what <= COMM_REDUCE_SCATTER && check_op (k) < 0)
        return -1;
    if ((k->bytes_in && !k->in) || (k->bytes_out && !k->out))
        return refuse (k->err, "memory is NULL");
    return 0;
}

static int dispatch (const struct call *k,
                     const struct comm_backend *b,
                     void *self,
                     const void *in,
                     void *out)
{
    switch (k->what) {
    case COMM_ALLREDUCE:
        return b->allreduce (self, in, out, k->n, k->type, k->op, k->err);
    case COMM_REDUCE:
        return b->reduce (self, in, out, k->n, k->type, k->op, k->root, k->err);
    case COMM_REDUCE_SCATTER:
        return b->reduce_scatter (
            self, in, out, k->counts, k->type, k->op, k->err);
    case COMM_ALLGATHER:
        return b->allgather (self, in, out, k->counts, k->err);
    case COMM_BROADCAST:
        return b->broadcast (self, out, k->bytes_out, k->root, k->err);
    case COMM_ALLTOALL:
        return b->alltoall (self, in, k->counts, out, k->from, k->err);
    case COMM_BARRIER:
        return b->barrier (self, k->err);
    case COMM_OTHER:
        break;
    }
    return -1;
}

static int on_host (const struct call *k, const void *in, void *out)
{
    return dispatch (k, k->c->host, k->c->host_self, in, out);
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

/* Device memory goes through the host where no back end takes it. */
static int through_host (const struct call *k, const struct memory_ops *ops)
{
    struct staged s = { ops, NULL, NULL, ops->alloc_pinned != NULL };
    bool both = k->what == COMM_BROADCAST;
    int rv = -1;

    s.in = stage_new (&s, k->bytes_in);
    s.out = stage_new (&s, k->bytes_out);
    if ((k->bytes_in && !s.in) || (k->bytes_out && !s.out))
        errorf (k->err, "out of memory: %zu bytes", k->bytes_in + k->bytes_out);
    else if ((k->bytes_in && ops->to_host (s.in, k->in, k->bytes_in) < 0)
             || (both && ops->to_host (s.out, k->out, k->bytes_out) < 0))
        errorf (k->err, "the device's memory cannot be read");
    else if (on_host (k, s.in, s.out) == 0)
        rv = k->bytes_out ? ops->to_device (k->out, s.out, k->bytes_out) : 0;
    stage_free (&s, s.in);
    stage_free (&s, s.out);
    return rv;
}

static const struct memory_ops *memory_of (const struct call *k)
{
    const void *p = k->bytes_out && k->out ? k->out : k->in;

    return p ? memory_ops_of (p) : NULL;
}

/* One rank: what it has is the result. */
static int alone (const struct call *k)
{
    const struct memory_ops *ops = memory_of (k);
    size_t n = k->bytes_in < k->bytes_out ? k->bytes_in : k->bytes_out;
    void *copy;
    int rv;

    if (n == 0 || k->in == k->out)
        return 0;
    if (!ops) {
        memmove (k->out, k->in, n);
        return 0;
    }
    if (!(copy = malloc (n)))
        return errorf (k->err, "out of memory: %zu bytes", n);
    rv = ops->to_host (copy, k->in, n);
    if (rv == 0)
        rv = ops->to_device (k->out, copy, n);
    free (copy);
    return rv;
}

/* On all ranks alike. */
static bool is_empty (const struct call *k)
{
    return k->what <= COMM_REDUCE_SCATTER ? k->n == 0
           : k->what == COMM_ALLGATHER || k->what == COMM_BROADCAST
               ? k->bytes_out == 0
               : false;
}

static bool device_takes (const struct call *k)
{
    const struct comm_backend *b = k->c->device;

    return b
           && (k->what > COMM_REDUCE_SCATTER || !b->takes
               || b->takes (k->type, k->op));
}

static bool host_takes_device (const struct call *k)
{
    const struct comm_backend *b = k->c->host;

    return b->device
           || (b->takes_device && b->takes_device (k->c->host_self, k->what));
}

/* A library that is not told of streams: what the default one has to do. */
static int settle (const struct call *k, const struct memory_ops *ops)
{
    struct timespec nap = { 0, 20000 };
    struct memory_mark *m;
    int passed;

    if (!ops->mark)
        return 0;
    if (!(m = ops->mark (k->bytes_out ? k->out : k->in, NULL)))
        return errorf (k->err, "the device's stream cannot be asked");
    while ((passed = ops->passed (m)) == 0)
        nanosleep (&nap, NULL);
    ops->unmark (m);
    return passed > 0 ? 0 : errorf (k->err, "the device's stream has failed");
}

static int perform (const struct call *k)
{
    struct slurmdl_comm *c = k->c;
    const struct memory_ops *ops;
    int rv;

    if (is_empty (k))
        return 0;
    if (mesh_size (c->mesh) == 1)
        return alone (k);
    ops = memory_of (k);
    if (ops && comm_find_device (c, NULL, k->err) < 0)
        return comm_break (c, k->err);
    mesh_tag (c->mesh, tag_of (k->what, k->type, k->op, k->root, ++c->calls));
    if (ops && device_takes (k))
        rv = dispatch (k, c->device, c->device_self, k->in, k->out);
    else if (ops && !host_takes_device (k))
        rv = through_host (k, ops);
    else if (ops && settle (k, ops) < 0)
        rv = -1;
    else
        rv = on_host (k, k->in, k->out);
    return rv < 0 ? comm_break (c, k->err) : 0;
}

/* Agree on whether all ranks can use what this one can. */
static int all_can (struct slurmdl_comm *c, int can, struct slurmdl_error *err)
{
    int32_t mine = can;
    int32_t all = 0;

    mesh_tag (c->mesh, tag_of (COMM_OTHER, 0, 0, 0, ++c->calls));
    return c->host->allreduce (
               c->host_self, &mine, &all, 1, SLURMDL_I32, SLURMDL_MIN, err)
                   < 0
               ? -1
               : all;
}

int comm_find_device (struct slurmdl_comm *c,
                      const void *p,
                      struct slurmdl_error *err)
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

static int begin (struct call *k)
{
    struct slurmdl_error spare;

    /* the reason is kept even where the caller does not want it */
    if (k->err)
        return check (k) < 0 ? -1 : perform (k);
    spare = (struct slurmdl_error){ "" };
    k->err = &spare;
    return check (k) < 0 ? -1 : perform (k);
}

static size_t bytes_of (size_t n, enum slurmdl_type type)
{
    return n * slurmdl_type_size (type);
}

int slurmdl_allreduce (struct slurmdl_comm *c,
                       const void *in,
                       void *out,
                       size_t n,
                       enum slurmdl_type type,
                       enum slurmdl_op op,
                       struct slurmdl_error *err)
{
    struct call k = { .c = c,
                      .what = COMM_ALLREDUCE,
                      .type = type,
                      .op = op,
                      .n = n,
                      .in = in,
                      .out = out,
                      .bytes_in = bytes_of (n, type),
                      .bytes_out = bytes_of (n, type),
                      .err = err };

    return begin (&k);
}

int slurmdl_reduce (struct slurmdl_comm *c,
                    const void *in,
                    void *out,
                    size_t n,
                    enum slurmdl_type type,
                    enum slurmdl_op op,
                    long root,
                    struct slurmdl_error *err)
{
    bool is_root = mesh_rank (c->mesh) == root;
    struct call k = { .c = c,
                      .what = COMM_REDUCE,
                      .type = type,
                      .op = op,
                      .root = root,
                      .n = n,
                      .in = in,
                      .out = is_root ? out : NULL,
                      .bytes_in = bytes_of (n, type),
                      .bytes_out = is_root ? bytes_of (n, type) : 0,
                      .err = err };

    return begin (&k);
}

static size_t total (const size_t *counts, long n)
{
    size_t sum = 0;

    for (long i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

/* n / size, and one more for the first ones; or 'same' for each. */
static size_t *counts_of (long size, size_t n, bool same)
{
    size_t *counts = malloc ((size_t)size * sizeof (*counts));

    for (size_t r = 0; counts && r < (size_t)size; r++)
        counts[r] = same ? n : n / (size_t)size + (r < n % (size_t)size);
    return counts;
}

int slurmdl_reduce_scatter (struct slurmdl_comm *c,
                            const void *in,
                            void *out,
                            size_t n,
                            const size_t *counts,
                            enum slurmdl_type type,
                            enum slurmdl_op op,
                            struct slurmdl_error *err)
{
    long size = mesh_size (c->mesh);
    size_t *own = counts ? NULL : counts_of (size, n, false);
    const size_t *parts = counts ? counts : own;
    struct call k = { .c = c,
                      .what = COMM_REDUCE_SCATTER,
                      .type = type,
                      .op = op,
                      .n = n,
                      .in = in,
                      .out = out,
                      .counts = parts,
                      .bytes_in = bytes_of (n, type),
                      .err = err };
    int rv = -1;

    if (err)
        *err->text = '\0';
    if (!parts)
        errorf (err, "out of memory");
    else if (total (parts, size) != n)
        refuse (err, "the parts of all ranks together are not n elements");
    else {
        k.bytes_out = bytes_of (parts[mesh_rank (c->mesh)], type);
        rv = begin (&k);
    }
    free (own);
    return rv;
}

int slurmdl_allgather (struct slurmdl_comm *c,
                       const void *in,
                       size_t own,
                       void *out,
                       const size_t *bytes,
                       struct slurmdl_error *err)
{
    long size = mesh_size (c->mesh);
    size_t *even = bytes ? NULL : counts_of (size, own, true);
    struct call k = { .c = c,
                      .what = COMM_ALLGATHER,
                      .in = in,
                      .out = out,
                      .counts = bytes ? bytes : even,
                      .bytes_in = own,
                      .err = err };
    int rv = -1;

    if (err)
        *err->text = '\0';
    if (!k.counts)
        errorf (err, "out of memory");
    else if (k.counts[mesh_rank (c->mesh)] != own)
        refuse (err, "bytes[] of this rank is not what it gives");
    else {
        k.bytes_out = total (k.counts, size);
        rv = begin (&k);
    }
    free (even);
    return rv;
}

int slurmdl_broadcast (struct slurmdl_comm *c,
                       void *data,
                       size_t bytes,
                       long root,
                       struct slurmdl_error *err)
{
    struct call k = { .c = c,
                      .what = COMM_BROADCAST,
                      .root = root,
                      .out = data,
                      .bytes_out = bytes,
                      .err = err };

    return begin (&k);
}

int slurmdl_alltoall (struct slurmdl_comm *c,
                      const void *in,
                      const size_t *to,
                      void *out,
                      const size_t *from,
                      struct slurmdl_error *err)
{
    long size = mesh_size (c->mesh);
    struct call k = { .c = c,
                      .what = COMM_ALLTOALL,
                      .in = in,
                      .out = out,
                      .counts = to,
                      .from = from,
                      .err = err };

    if (!to || !from) {
        if (err)
            *err->text = '\0';
        return refuse (err, "the sizes are NULL");
    }
    k.bytes_in = total (to, size);
    k.bytes_out = total (from, size);
    return begin (&k);
}

int slurmdl_barrier (struct slurmdl_comm *c, struct slurmdl_error *err)
{
    struct call k = { .c = c, .what = COMM_BARRIER, .err = err };

    return begin (&k);
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
