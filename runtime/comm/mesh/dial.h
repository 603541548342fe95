/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections between ranks, with deadlines and keep-alive. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/base/process_id.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/interface.h"

enum { PEER_ADDRESSES = 8 };

struct mesh_peer_info {
    char host[64];
    char word[32];  /* DL_COMM_NODE */
    uint64_t shm;   /* device number of /dev/shm; 0: none */
    uint64_t netns; /* the network namespace */
    unsigned char token[HANDSHAKE_TOKEN];
    struct process_id member;
    uint64_t cores_hash; /* of the cores that it may use */
    int32_t cores;
    uint16_t port;
    struct interface_address at[PEER_ADDRESSES]; /* ended by family 0 */
};

/* Describe this process, except for its port.  The addresses are those of the interfaces in the
 * list DL_COMM_INTERFACE ("ib0,eth1"), or of all that are up, without loopback, with those of
 * containers and virtual machines last.
 */
void peer_info_fill (struct mesh_peer_info *c);
int peer_info_addresses (const struct mesh_peer_info *c); /* their number */

/* Terminate the strings in the description of another rank. */
void peer_info_end (struct mesh_peer_info *c);

bool peer_info_same_node (const struct mesh_peer_info *a, const struct mesh_peer_info *b);

/* The purpose of a connection, which the other rank confirms (handshake.h) without help from its
 * program.
 */
enum dial_kind {
    DIAL_LINK = 1, /* carries messages from the rank that connects */
    DIAL_SOCKET,   /* mesh_socket() */
    DIAL_ABORT,    /* announces a failure */
    DIAL_QUERY,    /* answered by a struct mesh_report */
};

enum { DIAL_VERSION = 1, DIAL_TEXT = 256 };

/* The body of the handshake. */
struct mesh_hello {
    uint32_t kind;
    int32_t code;     /* errno of DIAL_ABORT */
    int64_t from, to; /* ranks of the world */
    uint64_t channel;
    int64_t unreachable;  /* the rank whose host is gone, if that is the reason; or -1 */
    char text[DIAL_TEXT]; /* reason of DIAL_ABORT */
};

/* The rank that connects. */
struct dial_caller {
    const struct mesh_peer_info *self;
    const unsigned char *key; /* shared by all ranks */
    bool plain;
    double timeout; /* of collectives */
};

/* Connect to a rank, send 'hello' and receive the answer, until 'deadline' (monotonic()); calls
 * dial_watch().
 *
 * Returns a non-blocking socket and its seal, or -1 with ECONNREFUSED (nobody listens there any
 * more), ETIMEDOUT, EHOSTUNREACH (the host is gone, as defined below) or EACCES (another program
 * listens).
 */
int dial_rank (const struct dial_caller *caller, const struct mesh_peer_info *to,
               const struct mesh_hello *hello, double deadline, struct net_seal **seal);

/* The parameters of the handshake with the listener of a rank. */
struct handshake dial_handshake (const struct mesh_peer_info *to, const unsigned char *key,
                                 bool plain);

/* A host is gone if nothing arrives from it for 10 s, not even an acknowledgement or the answer to
 * a probe, and if then no connection to it can be made for 4 s.  If the timeout of collectives is
 * less than 10 s, these times are the timeout and 0.4 of it.  The kernel of the host answers, so
 * that a process that is stopped or does not read never counts as gone.
 *
 * dial_watch() lets the kernel send probes; dial_is_silent() is the first condition, dial_reaches()
 * the opposite of the second.
 */
void dial_watch (int fd, double timeout);
bool dial_is_silent (int fd, double timeout);
bool dial_reaches (const struct dial_caller *caller, const struct mesh_peer_info *to);
