/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections between ranks: made within a time, and watched. */
#ifndef RUNTIME_COMM_MESH_DIAL_H
#define RUNTIME_COMM_MESH_DIAL_H

#include "runtime/comm/mesh/peer_info.h"
#include "runtime/slurmdl.h"

/* What the rank that connects says first; the other answers with the first
 * one's token (16 bytes) as soon as it has believed it, without its program's
 * help.  A connection that is to be kept (dial_needs_go()) is one only when the
 * first has answered that by a byte: it may have given this one up, and tried
 * again, before it was accepted.
 */
enum dial_kind {
    DIAL_LINK = 1, /* carries messages from the one that connects */
    DIAL_SOCKET,   /* mesh_socket() */
    DIAL_ABORT,    /* its text follows */
    DIAL_QUERY,    /* answered by a struct mesh_report */
};

struct hello {
    uint32_t magic, kind;
    uint64_t token[2]; /* of the one that is called */
    int64_t from, to;  /* ranks of the world */
    uint64_t channel;
    uint32_t text;       /* bytes that follow */
    int32_t code;        /* errno of DIAL_ABORT */
    int64_t unreachable; /* the rank whose host has gone, that is why; or -1 */
};

enum { DIAL_MAGIC = 0x44444c53, DIAL_TEXT = 256 };

static inline bool dial_needs_go (const struct hello *h)
{
    return h->kind == DIAL_LINK || h->kind == DIAL_SOCKET;
}

/* A socket that listens on all addresses, at a port of the range
 * DL_COMM_PORTS ("FIRST-LAST") if that is set, else at any; '*port' is it.
 */
int dial_listen (int *port, struct slurmdl_error *err);

/* Connect to the rank with that card, say hello (and 'text'), and get its
 * answer, until 'deadline' (monotonic()); dial_watch() is called. ECONNREFUSED:
 * nobody listens there any more; ETIMEDOUT; EHOSTUNREACH: the host has gone, as
 * below; EPROTO: that is another program.
 *
 * Returns a non-blocking socket, or -1.
 */
int dial_rank (const struct peer_info *self,
               const struct peer_info *to,
               struct hello *hello,
               const char *text,
               double deadline,
               double timeout);

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
bool dial_reaches (const struct peer_info *self,
                   const struct peer_info *to,
                   double timeout);

#endif
