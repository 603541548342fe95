/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a socket, as they come. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A message is a head and 'length' bytes, in this machine's byte order. */
struct net_stream_head {
    uint32_t magic, kind;
    uint64_t length;
};

struct net_stream {
    int fd; /* -1: none */
    struct net_stream_head head;
    size_t got;
    char *body; /* of the message that has come, ended by '\0' */
    size_t room;
};

void net_stream_init (struct net_stream *w, int fd);
void net_stream_close (struct net_stream *w); /* also one that is closed */

/* Take what has come, without waiting.  Returns 1: a message is whole, in
 * w->head and w->body until net_stream_next(); 0: not yet; -1: ECONNRESET, the
 * other side has closed; EPROTO, this is no message of ours, or longer than
 * 'most'.
 */
int net_stream_read (struct net_stream *w, size_t most);
void net_stream_next (struct net_stream *w);

/* The same, but wait for it until the deadline (monotonic()). */
int net_stream_wait (struct net_stream *w, size_t most, double deadline);

int net_stream_send (struct net_stream *w,
                     uint32_t kind,
                     const void *body,
                     size_t n,
                     double deadline);
