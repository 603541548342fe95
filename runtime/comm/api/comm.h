/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the communicator. */
#pragma once

#include <stdatomic.h>

#include "runtime/comm/api/backend.h"

struct engine;

/* How a communicator controls the engine of its named tensors. */
struct comm_engine {
    /* complete submitted tensors, and end */
    int (*close) (struct engine *e, struct slurmdl_error *err);
    /* all tickets in flight fail with 'why'; does not wait */
    void (*abort) (struct engine *e, const char *why);
};

struct slurmdl_comm {
    struct boot *boot; /* NULL for a part or a channel */
    struct mesh *mesh;
    const struct comm_backend *host; /* native or mpi */
    void *host_self;
    const struct comm_backend *device; /* nccl, or NULL */
    _Atomic (void *) device_self;      /* set after 'device' */
    struct engine *engine;             /* of named tensors; NULL until the first */
    const struct comm_engine *engine_calls;
    unsigned next_channel;
    bool device_tried;  /* a back end for device memory was looked for */
    const char *wanted; /* "mpi", "nccl"; NULL: any */
    uint32_t calls;
    bool broken;
    struct slurmdl_error why;
};

/* slurmdl_comm_open() for ranks that are connected already; takes ownership of
 * 'b', even on failure.
 */
struct slurmdl_comm *comm_open_boot (struct boot *b, const struct slurmdl_comm_options *o,
                                     struct slurmdl_error *err);

/* A communicator over this mesh alone: opens the back end for host memory. */
struct slurmdl_comm *comm_of_mesh (struct mesh *m, const struct slurmdl_comm *parent,
                                   struct slurmdl_error *err);

/* Open the back end for host memory. */
int comm_open_host (struct slurmdl_comm *c, struct slurmdl_error *err);

/* Find a back end for device memory, once; collective.  It uses the device of
 * the memory 'p', or the current one for NULL.
 */
int comm_find_device (struct slurmdl_comm *c, const void *p, struct slurmdl_error *err);

/* A back end has failed: break the communicator.  Returns -1. */
int comm_break (struct slurmdl_comm *c, struct slurmdl_error *err);

/* Make a communicator of the same ranks for use by another thread at the same
 * time.  All ranks pass the same number, which was not used before; nothing is
 * exchanged before its first collective.  Close it with slurmdl_comm_close().
 */
struct slurmdl_comm *comm_channel (struct slurmdl_comm *c, unsigned channel,
                                   struct slurmdl_error *err);

/* Channels in use; those of parts follow. */
enum { COMM_CHANNEL_ENGINE = 1, COMM_CHANNEL_ELASTIC = 2, COMM_CHANNEL_PARTS = 16 };
