/* SPDX-License-Identifier: Apache-2.0 */
/* Listen, accept, and find out who calls; strangers are bounded. */
#ifndef RUNTIME_COMM_NET_LISTENER_H
#define RUNTIME_COMM_NET_LISTENER_H

#include <poll.h>

#include "runtime/base/error.h"
#include "runtime/comm/net/handshake.h"

/* Listen at 'port' (0: any) of all addresses of this machine, IPv6 and IPv4;
 * of loopback only where 'host', which may be NULL, is a loopback address.  No
 * resolver is asked.  A socket, or -1.
 */
int listener_bind (const char *host, int port);

/* At a port of the range DL_COMM_PORTS ("FIRST-LAST") if that is set, else at
 * any; EINVAL where it or DL_COMM_CONGESTION makes no sense.
 */
int listener_bind_range (struct slurmdl_error *err);

int listener_port (int fd); /* on which it listens; -1 */

/* Whether a process of this user's is on the other side, if it is of AF_UNIX.
 */
bool listener_is_mine (int fd);

/* A connection that has not said all of its handshake. */
struct listener_pending {
    int fd;
    double until;
    size_t got;
    struct handshake head;
    char *body;     /* ended by '\0'; NULL: the head has not come */
    bool confirmed; /* the answer was sent */
    bool whole;
    char go;
};

/* All zero but these: new. */
struct listener {
    int fd; /* -1: none; closed by listener_close() */
    enum handshake_service service;
    unsigned char token[HANDSHAKE_TOKEN];
    size_t most;      /* bytes of a body */
    size_t strangers; /* that have not said a head; then the oldest goes */
    long refused;     /* so many have said a wrong head */
    /* What the caller gets as an answer, HANDSHAKE_TOKEN bytes, and then
     * confirms within 'timeout' seconds; NULL: it is not welcome.  No answer
     * is sent where there is no such function.
     */
    const unsigned char *(*answer) (void *arg, const void *body, size_t n);
    void *arg;
    double timeout;
    struct listener_pending *pending;
    size_t n, room;
    struct pollfd *poll;
    size_t poll_room;
};

/* For poll(2): the first 1 + l->n are the listener's, 'more' follow, which the
 * caller fills.  To be called before each listener_serve(), at least once
 * a second while l->n is not 0.  NULL: out of memory.
 */
struct pollfd *listener_poll (struct listener *l, size_t more);

/* After poll(2): take who comes and what they say, and drop who is late. */
void listener_serve (struct listener *l);

/* One who has said all; the socket and the body, of head.length bytes and '\0',
 * are the caller's.  False: there is none now.
 */
struct listener_arrival {
    int fd;
    struct handshake head;
    char *body;
};
bool listener_take (struct listener *l, struct listener_arrival *a);

/* All that is open is closed, and the memory given back. */
void listener_close (struct listener *l);

#endif
