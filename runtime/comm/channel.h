/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the mesh share: its links. */
#ifndef RUNTIME_COMM_CHANNEL_H
#define RUNTIME_COMM_CHANNEL_H

#include "runtime/comm/home.h"

/* Two connections, each carries messages from the one that made it: no two
 * ranks ever have to agree on who connects.
 */
struct link {
    atomic_int in; /* -1: none yet */
    int out;
};

struct mesh {
    struct mesh *next; /* of home */
    struct home *home;
    uint64_t channel;
    long rank, size;
    long *world; /* the ranks' numbers in the world */
    long *node;  /* of each rank */
    long nodes;
    struct link *links;
    struct parked *sockets; /* of mesh_socket(); home's mutex */
    int event;              /* the listener has delivered something */
    uint32_t tag;
    double timeout;
    char *buffer;      /* for mesh_fold_f; NULL until it is needed */
    bool may_spin;     /* there are cores for all ranks */
    unsigned missed;   /* times in a row that it was of no use */
    atomic_long waits; /* for this rank; -1: none */
    atomic_ulong calls;
    _Atomic double since;
    long suspect;        /* whose process has ended; -1: nobody's */
    atomic_bool aborted; /* 'why' and 'code' are set */
    bool failed;         /* and the others were told */
    char why[DIAL_TEXT];
    int code;
};

/* Before each message. */
struct head {
    uint32_t magic; /* HEAD_MESSAGE or HEAD_BYE */
    uint32_t tag;
    uint64_t size;
};

enum { HEAD_MESSAGE = 0x4d4c4453, HEAD_BYE = 0x424c4453 };

/* The connection to that rank, made if there is none; -1 after mesh_fail(). */
int mesh_dial (struct mesh *m, long peer, struct slurmdl_error *err);

/* The mesh can no longer be used: 'code' becomes errno, the first reason is
 * kept and told to the others.  Returns -1 with 'err' filled.
 */
__attribute__ ((format (printf, 4, 5))) int mesh_fail (
    struct mesh *m, int code, struct slurmdl_error *err, const char *fmt, ...);

/* That rank has gone: wait a moment for a better reason from another. */
int mesh_lost (struct mesh *m, long peer, struct slurmdl_error *err);

/* It did not come within the time. */
int mesh_late (struct mesh *m, long peer, struct slurmdl_error *err);

#endif
