/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the communicator share. */
#ifndef RUNTIME_COMM_COMM_H
#define RUNTIME_COMM_COMM_H

#include "runtime/comm/backend.h"

struct engine;

struct slurmdl_comm {
    struct boot *boot; /* NULL: of a part, or a channel */
    struct mesh *mesh;
    const struct comm_backend *host; /* native or mpi */
    void *host_self;
    const struct comm_backend *device; /* nccl, or NULL */
    void *device_self;
    struct engine *engine; /* of named tensors; NULL until the first */
    unsigned next_channel;
    bool broken;
    struct slurmdl_error why;
};

/* A communicator of the same ranks that another thread may use at the same
 * time.  All ranks call it with the same number, which was not used before;
 * nothing is exchanged before its first collective.  slurmdl_comm_close().
 */
struct slurmdl_comm *comm_channel (struct slurmdl_comm *c,
                                   unsigned channel,
                                   struct slurmdl_error *err);

/* Channels that have a use; those of parts come after them. */
enum {
    COMM_CHANNEL_ENGINE = 1,
    COMM_CHANNEL_ELASTIC = 2,
    COMM_CHANNEL_PARTS = 16
};

/* Complete what was submitted, and end the engine; NULL is accepted. */
int engine_close (struct engine *e);

#endif
