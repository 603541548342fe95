/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the mesh share: its links. */
#pragma once

#include "runtime/comm/mesh/endpoint.h"

/* Two connections, each carries messages from the one that made it: no two
 * ranks ever have to agree on who connects.
 */
struct mesh_link {
    atomic_int in, out;                  /* -1: none yet */
    struct net_seal *in_seal, *out_seal; /* set before them */
    atomic_long asked;                   /* s: when its host, silent, last was asked */
};

struct mesh {
    struct mesh *next; /* of the endpoint */
    struct mesh *root; /* of which it does a part of the work, or itself */
    struct endpoint *endpoint;
    uint64_t channel;
    long rank, size;
    long *world; /* the ranks' numbers in the world */
    long *node;  /* of each rank */
    long nodes;
    struct mesh_link *links;
    struct mesh_pending *sockets; /* of mesh_socket(); the endpoint's mutex */
    int event;                    /* the listener has delivered something */
    _Atomic uint32_t tag;         /* the root's */
    double timeout;
    char *buffer;        /* for mesh_reduce_f; NULL until it is needed */
    char *record;        /* likewise, for one that is in two pieces */
    bool may_spin;       /* there are cores for all ranks */
    unsigned missed;     /* times in a row that it was of no use */
    atomic_long waits;   /* for this rank of the world; -1: none; the root's */
    atomic_ulong calls;  /* the root's */
    long suspect;        /* whose process has ended; -1: nobody's */
    atomic_bool aborted; /* 'why' and 'code' are set */
    long culprit;        /* a rank of the world that is not told; -1 */
    atomic_bool told;    /* and the others were told; the root's */
    char why[DIAL_TEXT];
    int code;
};

/* Before each message. */
struct mesh_head {
    uint32_t magic;       /* HEAD_MESSAGE or HEAD_BYE */
    _Atomic uint32_t tag; /* the root's */
    uint64_t size;
};

enum { HEAD_MESSAGE = 0x4d4c4453, HEAD_BYE = 0x424c4453 };

/* Head and data are records with tags; of data those of so many bytes, and the
 * rest.  It is a multiple of each element's size.
 */
enum { MESH_RECORD = 64 * 1024 };

/* The connection to that rank, made if there is none; -1 after mesh_fail(). */
int mesh_dial (struct mesh *m, long peer, struct slurmdl_error *err);

/* Whether a rank that has not connected to us is alive.  PEER_ENDED: it is not,
 * but may have connected before, and sent all that we wait for.  PEER_FAILED:
 * after mesh_fail().
 */
enum mesh_presence { PEER_FAILED = -1, PEER_ALIVE, PEER_ENDED };
enum mesh_presence mesh_probe_peer (struct mesh *m, long peer, struct slurmdl_error *err);

/* The mesh can no longer be used: 'code' becomes errno, the first reason is
 * kept and told to the others.  Returns -1 with 'err' filled.
 */
__attribute__ ((format (printf, 4, 5))) int
mesh_fail (struct mesh *m, int code, struct slurmdl_error *err, const char *fmt, ...);

/* The first reason is kept, for all parts of the root. */
void mesh_reason (struct mesh *m, int code, const char *why);

/* The host of that rank of the world has gone. */
void mesh_found_unreachable (struct mesh *m, long rank);

/* Say hello to a rank; a socket and its seal, or -1 (dial.h). */
int mesh_call (const struct mesh *m, long peer, enum dial_kind kind, double seconds,
               struct net_seal **seal);

/* What that rank sent has a wrong tag. */
int mesh_altered (struct mesh *m, long peer, struct slurmdl_error *err);

/* The rank's number in the root. */
long mesh_root_rank (const struct mesh *m, long peer);

/* Ask a rank that does not come whether it has called something else: then -1
 * after mesh_fail(). */
int mesh_check_call (struct mesh *m, long peer, struct slurmdl_error *err);

/* That one calls 'tag', and we do not. */
int mesh_clash (struct mesh *m, long peer, uint32_t tag, struct slurmdl_error *err);

/* So long a listener may take to answer: that of a process that computes does
 * at once, but for a busy machine.
 */
double mesh_answer_seconds (const struct mesh *m);

/* Ask the listener of that rank what it waits for; -1: it does not answer. */
int mesh_query (const struct mesh *m, long peer, struct mesh_report *r);

/* What a rank said of itself, and this one. */
const struct mesh_peer_info *mesh_peer (const struct mesh *m, long peer);
const struct mesh_peer_info *mesh_self (const struct mesh *m);

/* The rank in 'm' of a rank of all; -1: it is not in it. */
long mesh_rank_of (const struct mesh *m, int64_t world);

void mesh_close_links (struct mesh *m);
