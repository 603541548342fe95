/* SPDX-License-Identifier: Apache-2.0 */
/* Packets over a stream socket, without waiting. */
#pragma once

#include "runtime/comm/engine/packet.h"
#include "runtime/comm/net/seal.h"

/* A new one is all zero except for 'fd'. */
struct connection {
    int fd;                /* owned; -1: closed, or not connected yet */
    struct net_seal *seal; /* owned */
    bool expected;         /* not connected yet: packets to send are kept */
    bool begun;            /* the length of the next packet was verified */
    uint32_t length;       /* of the next packet */
    bool altered;          /* received data were altered on the way: accept no more */
    struct packet early;   /* packets kept */
    struct packet in;      /* received data; those from 'in.at' on were not taken yet */
    struct packet out;     /* data to send; those from 'out.at' on were not sent yet */
};

/* Use this socket, which becomes non-blocking. */
int connection_open (struct connection *w, int fd, struct net_seal *seal);
void connection_expect (struct connection *w); /* connection_open() follows */
void connection_close (struct connection *w);

/* Send a packet; what the socket does not accept now is kept for connection_flush().  Returns -1 if
 * the peer is gone.
 */
int connection_send (struct connection *w, const struct packet *p);
int connection_flush (struct connection *w);
bool connection_waits (const struct connection *w); /* there is something to flush */

/* Read what has arrived.  Returns 0 if nothing more is available now, -1 if the peer is gone or
 * sends invalid data.
 */
int connection_read (struct connection *w);

/* Take the next complete packet, which is valid until connection_read().  Returns false if there is
 * none now, or if w->altered.
 */
bool connection_take (struct connection *w, struct packet *p);
