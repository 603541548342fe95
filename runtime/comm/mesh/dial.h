/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections between ranks: made within a time, and watched. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/base/process_id.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/interface.h"

enum { PEER_ADDRESSES = 8 };

struct mesh_peer_info {
    char host[64];
    char word[32];  /* DL_COMM_NODE */
    uint64_t shm;   /* the device that is mounted at /dev/shm; 0: none */
    uint64_t netns; /* the network namespace */
    unsigned char token[HANDSHAKE_TOKEN];
    struct process_id member;
    uint64_t cores_hash; /* of which it may run on */
    int32_t cores;
    uint16_t port;
    struct interface_address at[PEER_ADDRESSES]; /* ended by family 0 */
};

/* This process, without its port.  Interfaces: those that are up and
 * not loopback; DL_COMM_INTERFACE is a list of them, "ib0,eth1", else those
 * of containers and virtual machines come last.
 */
void peer_info_fill (struct mesh_peer_info *c);
int peer_info_addresses (const struct mesh_peer_info *c); /* how many */

/* End the texts of what another rank has said. */
void peer_info_end (struct mesh_peer_info *c);

bool peer_info_same_node (const struct mesh_peer_info *a, const struct mesh_peer_info *b);

/* What a rank wants of another one, which confirms it (handshake.h) without its
 * program's help.
 */
enum dial_kind {
    DIAL_LINK = 1, /* carries messages from the one that connects */
    DIAL_SOCKET,   /* mesh_socket() */
    DIAL_ABORT,    /* its text follows */
    DIAL_QUERY,    /* answered by a struct mesh_report */
};

enum { DIAL_VERSION = 3, DIAL_TEXT = 256 };

/* The body of the handshake. */
struct mesh_hello {
    uint32_t kind;
    int32_t code;     /* errno of DIAL_ABORT */
    int64_t from, to; /* ranks of all */
    uint64_t channel;
    int64_t unreachable;  /* the rank whose host has gone, that is why; or -1 */
    char text[DIAL_TEXT]; /* why, of DIAL_ABORT */
};

/* Who calls. */
struct dial_caller {
    const struct mesh_peer_info *self;
    const unsigned char *key; /* of all ranks */
    bool plain;
    double timeout; /* of collectives */
};

/* Connect to that rank, say 'hello', and get its answer, until 'deadline'
 * (monotonic()); dial_watch() is called. ECONNREFUSED:
 * nobody listens there any more; ETIMEDOUT; EHOSTUNREACH: the host has gone, as
 * below; EACCES: that is another program.
 *
 * Returns a non-blocking socket and its seal, or -1.
 */
int dial_rank (const struct dial_caller *caller, const struct mesh_peer_info *to,
               const struct mesh_hello *hello, double deadline, struct net_seal **seal);

/* What the ranks know of that one's listener. */
struct handshake dial_handshake (const struct mesh_peer_info *to, const unsigned char *key,
                                 bool plain);

/* A host has gone if nothing has come from it for 10 s, not even that it has
 * got what was sent or that it is there, and then for 4 s no connection to it
 * can be made; for the time-out of collectives and 0.4 of it, where that is
 * less than 10 s.  It is its kernel that answers: a process that is stopped or
 * does not read is no such case, however long that is.
 *
 * dial_watch() makes the kernel ask; dial_is_silent() is the first condition,
 * dial_reaches() the opposite of the second.
 */
void dial_watch (int fd, double timeout);
bool dial_is_silent (int fd, double timeout);
bool dial_reaches (const struct dial_caller *caller, const struct mesh_peer_info *to);
