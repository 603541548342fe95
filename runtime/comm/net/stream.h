/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a socket, as they come. */
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
    char begin[sizeof (struct net_stream_head) + SEAL_TAG]; /* as it comes */
    bool begun;                                             /* the head has come */
    size_t got; /* of the head, then of the body, with its tag */
    char *body; /* of the message that has come, ended by '\0' */
    size_t room;
};

void net_stream_init (struct net_stream *w, int fd, struct net_seal *seal);
void net_stream_close (struct net_stream *w); /* also one that is closed */

/* STREAM_WHOLE: a message is in w->head and w->body until net_stream_next().
 * STREAM_FAILED sets errno: ECONNRESET, the other side has closed; EBADMSG, what
 * came was changed on its way; EPROTO, it is no message of ours, or is longer
 * than 'most' bytes.
 */
enum stream_read { STREAM_FAILED = -1, STREAM_PARTIAL, STREAM_WHOLE };

/* Read what has arrived, without waiting. */
enum stream_read net_stream_read (struct net_stream *w, size_t most);
void net_stream_next (struct net_stream *w);

/* Wait for a whole message until the deadline (monotonic()): never
 * STREAM_PARTIAL; ETIMEDOUT as well.
 */
enum stream_read net_stream_wait (struct net_stream *w, size_t most, double deadline);

int net_stream_send (struct net_stream *w, uint32_t kind, const void *body, size_t n,
                     double deadline);
