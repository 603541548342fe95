/* SPDX-License-Identifier: Apache-2.0 */
/* Receive complete messages from a socket without waiting. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/comm/net/seal.h"

/* A message is a head and 'length' bytes, in this machine's byte order, each a
 * record with its tag.
 */
struct net_stream_head {
    uint32_t magic, kind;
    uint64_t length;
};

struct net_stream {
    int fd;                /* -1: none */
    struct net_seal *seal; /* the stream's */
    struct net_stream_head head;
    char begin[sizeof (struct net_stream_head) + SEAL_TAG]; /* head and tag as received so far */
    bool begun;                                             /* the head is complete */
    size_t got; /* bytes received of the head, then of the body, with tags */
    char *body; /* of the received message, ended by '\0' */
    size_t room;
};

void net_stream_init (struct net_stream *w, int fd, struct net_seal *seal);
void net_stream_close (struct net_stream *w); /* may be closed already */

/* STREAM_WHOLE: a message is in w->head and w->body until net_stream_next().  STREAM_FAILED sets
 * errno: ECONNRESET, the peer has closed the connection; EBADMSG, data were altered on the way;
 * EPROTO, the message is invalid or longer than 'most' bytes.
 */
enum stream_read { STREAM_FAILED = -1, STREAM_PARTIAL, STREAM_WHOLE };

/* Read what has arrived, without waiting. */
enum stream_read net_stream_read (struct net_stream *w, size_t most);
void net_stream_next (struct net_stream *w);

/* Wait for a complete message until the deadline (monotonic()); may also fail with ETIMEDOUT, and
 * never returns STREAM_PARTIAL.
 */
enum stream_read net_stream_wait (struct net_stream *w, size_t most, double deadline);

int net_stream_send (struct net_stream *w, uint32_t kind, const void *body, size_t n,
                     double deadline);
