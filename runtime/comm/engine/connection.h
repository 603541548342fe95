/* SPDX-License-Identifier: Apache-2.0 */
/* Packets over a stream socket, without waiting. */
#pragma once

#include "runtime/comm/engine/packet.h"
#include "runtime/comm/net/seal.h"

/* All zero but 'fd': new. */
struct connection {
    int fd;                /* -1: closed, or not there yet; the connection's */
    struct net_seal *seal; /* likewise */
    bool expected;         /* it is not there yet: what is sent is kept */
    bool begun;            /* the length of the next packet is known to be right */
    uint32_t length;       /* of it */
    bool altered;          /* what came was changed on its way: no more is taken */
    struct packet early;   /* what is kept */
    struct packet in;      /* what has come, from 'in.at' on not taken */
    struct packet out;     /* what could not be sent yet, likewise */
};

/* Makes it non-blocking. */
int connection_open (struct connection *w, int fd, struct net_seal *seal);
void connection_expect (struct connection *w); /* connection_open() follows */
void connection_close (struct connection *w);

/* Send, or keep for connection_flush() what the socket does not take now.  -1:
 * the peer has gone. */
int connection_send (struct connection *w, const struct packet *p);
int connection_flush (struct connection *w);
bool connection_waits (const struct connection *w); /* there is something to flush */

/* Take in what has come.  0: nothing more now; -1: the peer has gone, or sends
 * what makes no sense. */
int connection_read (struct connection *w);

/* The next whole packet, which lives until connection_read(); false: there is
 * none now, or w->altered.
 */
bool connection_take (struct connection *w, struct packet *p);
