/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections between ranks: made within a time, and watched. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/comm/mesh/peer_info.h"

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
