/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in back end: host memory, shared or over the mesh. */
#include <errno.h>

#include "runtime/comm/api/backend.h"
#include "runtime/comm/native/native.h"

static int native_probe (struct slurmdl_error *err)
{
    (void)err;
    return 0;
}

static int native_open (struct mesh *m, void **self, struct slurmdl_error *err)
{
    *self = hierarchy_open (m, err);
    return *self ? 0 : -1;
}

static void native_close (void *self)
{
    hierarchy_close (self);
}

static void native_abort (void *self)
{
    struct hierarchy *h = self;

    mesh_abort (h->mesh, "aborted");
    hierarchy_abort (h, "aborted");
}

/* Tell ranks that wait for us elsewhere why we do not come. */
static int native_end (struct hierarchy *h, int rv, const struct slurmdl_error *err)
{
    int number = errno;

    if (rv < 0)
        hierarchy_abort (h, err && *err->text ? err->text : "it met an error");
    errno = number;
    return rv;
}

/* Even on a single node, the hierarchy lays out parts of given sizes. */
static bool is_for_node (const struct hierarchy *h, enum collective_kind what)
{
    return h->shape == HIERARCHY_NODE && what != COMM_REDUCE_SCATTER && what != COMM_ALLGATHER;
}

static int native_run (void *self, const struct collective *c, struct slurmdl_error *err)
{
    struct hierarchy *h = self;
    int rv = hierarchy_prepare (h, err);

    if (rv == 0 && h->shape == HIERARCHY_FLAT)
        rv = flat_run (h->mesh, c, err);
    else if (rv == 0 && is_for_node (h, c->what))
        rv = node_run (h->node, c, err);
    else if (rv == 0)
        rv = hierarchy_run (h, c, err);
    return native_end (h, rv, err);
}

const struct comm_backend comm_backend_native = {
    .name = "native",
    .probe = native_probe,
    .open = native_open,
    .close = native_close,
    .abort = native_abort,
    .run = native_run,
};
