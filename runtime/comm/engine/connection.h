/* SPDX-License-Identifier: Apache-2.0 */
/* Packets over a stream socket, without waiting. */
#ifndef RUNTIME_COMM_ENGINE_CONNECTION_H
#define RUNTIME_COMM_ENGINE_CONNECTION_H

#include "runtime/comm/engine/packet.h"

/* All zero but 'fd': new. */
struct talk {
    int fd;            /* -1: closed, or not there yet; the talk's */
    bool expected;     /* it is not there yet: what is sent is kept */
    struct packet in;  /* what has come, from 'in.at' on not taken */
    struct packet out; /* what could not be sent yet, likewise */
};

int talk_open (struct talk *w, int fd); /* makes it non-blocking */
void talk_expect (struct talk *w);      /* talk_open() follows */
void talk_close (struct talk *w);

/* Send, or keep for talk_flush() what the socket does not take now.  -1: the
 * peer has gone. */
int talk_send (struct talk *w, const struct packet *p);
int talk_flush (struct talk *w);
bool talk_waits (const struct talk *w); /* there is something to flush */

/* Take in what has come.  0: nothing more now; -1: the peer has gone, or sends
 * what makes no sense. */
int talk_read (struct talk *w);

/* The next whole packet, which lives until talk_read(). */
bool talk_take (struct talk *w, struct packet *p);

#endif
