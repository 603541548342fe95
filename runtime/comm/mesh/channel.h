/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the mesh: its links. */
#pragma once

#include "runtime/comm/mesh/endpoint.h"

/* Two connections.  Each carries messages from the rank that made it, so that two ranks never have
 * to agree on who connects.
 */
struct mesh_link {
    atomic_int in, out;                  /* -1: none yet */
    struct net_seal *in_seal, *out_seal; /* set before 'in' and 'out' */
    atomic_long asked;                   /* when its silent host was last probed (s) */
};

struct mesh {
    struct mesh *next; /* in the list of the endpoint */
    struct mesh *root; /* the mesh for which it does a part of the work, or itself */
    struct endpoint *endpoint;
    uint64_t channel;
    long rank, size;
    long *world; /* the ranks' numbers in the world */
    long *node;  /* of each rank */
    long nodes;
    struct mesh_link *links;
    struct mesh_pending *sockets; /* for mesh_socket(); under the endpoint's mutex */
    int event;                    /* eventfd(2): the listener has delivered a connection */
    _Atomic uint32_t tag;         /* the root's */
    double timeout;
    char *buffer;        /* for mesh_reduce_f; NULL until needed */
    char *record;        /* the same, for a record in two pieces */
    bool may_spin;       /* there are enough cores for all ranks */
    unsigned missed;     /* how often in a row spinning was useless */
    atomic_long waits;   /* rank of the world that we wait for, -1: none; the root's */
    atomic_ulong calls;  /* the root's */
    long suspect;        /* rank whose process seems to have ended; -1: none */
    atomic_bool aborted; /* 'why' and 'code' are set */
    long failed;         /* rank of the world that the error names: do not notify it; or -1 */
    atomic_bool told;    /* the other ranks were told; the root's */
    char why[DIAL_TEXT];
    int code;
};

/* The head of each message. */
struct mesh_head {
    uint32_t magic;       /* HEAD_MESSAGE or HEAD_BYE */
    _Atomic uint32_t tag; /* the root's */
    uint64_t size;
};

enum { HEAD_MESSAGE = 0x4d4c4453, HEAD_BYE = 0x424c4453 };

/* The head is a record with a tag, and so is each part of the data of this size, and the rest.  The
 * size is a multiple of every element size.
 */
enum { MESH_RECORD = 64 * 1024 };

/* The connection to a rank, made if there is none.  Returns -1 after mesh_fail(). */
int mesh_dial (struct mesh *m, long peer, struct slurmdl_error *err);

/* Whether a rank that has not connected to us is alive.  PEER_ENDED: it is not, but it may have
 * connected before and sent everything that we wait for.  PEER_FAILED is returned after
 * mesh_fail().
 */
enum mesh_presence { PEER_FAILED = -1, PEER_ALIVE, PEER_ENDED };
enum mesh_presence mesh_probe_peer (struct mesh *m, long peer, struct slurmdl_error *err);

/* Break the mesh: 'code' becomes errno, and the first reason is kept and sent to the others.
 * Returns -1 with 'err' filled in.
 */
__attribute__ ((format (printf, 4, 5))) int
mesh_fail (struct mesh *m, int code, struct slurmdl_error *err, const char *fmt, ...);

/* Set the reason for all parts of the root, unless they have one. */
void mesh_reason (struct mesh *m, int code, const char *why);

/* Record that the host of this rank of the world is gone. */
void mesh_found_unreachable (struct mesh *m, long rank);

/* Connect to a rank (endpoint.h).  Returns a socket and its seal, or -1. */
int mesh_call (const struct mesh *m, long peer, enum dial_kind kind, double seconds,
               struct net_seal **seal);

/* Fail: data from this rank have a wrong tag. */
int mesh_altered (struct mesh *m, long peer, struct slurmdl_error *err);

/* The number of a rank in the root. */
long mesh_root_rank (const struct mesh *m, long peer);

/* Ask a rank that does not come whether it has called another collective.  If so, returns -1 after
 * mesh_fail().
 */
int mesh_check_call (struct mesh *m, long peer, struct slurmdl_error *err);

/* Fail: this rank has called 'tag', which differs from ours. */
int mesh_clash (struct mesh *m, long peer, uint32_t tag, struct slurmdl_error *err);

/* How long a listener may take to answer.  Even while its process computes, it answers at once,
 * unless the machine is busy.
 */
double mesh_answer_seconds (const struct mesh *m);

/* Ask the listener of a rank what the rank waits for.  Returns -1 if it does not answer. */
int mesh_query (const struct mesh *m, long peer, struct mesh_report *r);

/* The description of a rank, and of this one. */
const struct mesh_peer_info *mesh_peer (const struct mesh *m, long peer);
const struct mesh_peer_info *mesh_self (const struct mesh *m);

/* The number in 'm' of a rank of the world; -1 if it is not a member. */
long mesh_rank_of (const struct mesh *m, int64_t world);

void mesh_close_links (struct mesh *m);
