/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections between ranks: made within a time, and watched. */
#ifndef RUNTIME_COMM_MESH_DIAL_H
#define RUNTIME_COMM_MESH_DIAL_H

#include "runtime/comm/mesh/card.h"
#include "runtime/slurmdl.h"

/* What the rank that connects says first; the other answers with the first
 * one's token (16 bytes) as soon as it has believed it, without its program's
 * help.
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
    uint32_t text; /* bytes that follow */
    int32_t code;  /* errno of DIAL_ABORT */
};

enum { DIAL_MAGIC = 0x43444c53, DIAL_TEXT = 256 };

/* A socket that listens on all addresses, at a port of the range
 * DL_COMM_PORTS ("FIRST-LAST") if that is set, else at any; '*port' is it.
 */
int dial_listen (int *port, struct slurmdl_error *err);

/* Connect to the rank with that card, say hello (and 'text'), and get its
 * answer, until 'deadline' (monotonic()); dial_watch() is called. ECONNREFUSED:
 * nobody listens there any more; ETIMEDOUT; EPROTO: that is another program.
 *
 * Returns a non-blocking socket, or -1.
 */
int dial_rank (const struct card *self,
               const struct card *to,
               struct hello *hello,
               const char *text,
               double deadline,
               double timeout);

/* Find out that the peer's host has gone, within dial_patience(): 30 s, less
 * where the time-out of collectives is shorter. */
void dial_watch (int fd, double timeout);
double dial_patience (double timeout);

#endif
