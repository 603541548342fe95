/* SPDX-License-Identifier: Apache-2.0 */
/* Accept connections, and find out who calls; strangers are bounded. */
#pragma once

#include <poll.h>

#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/listen.h"

/* Whether a process of this user's is on the other side, if it is of AF_UNIX.
 */
bool listener_is_mine (int fd);

/* A stranger: a connection that has not proven that it has the key; or, later,
 * one that has not confirmed.
 */
struct listener_pending {
    int fd;
    double since;
    size_t got;
    struct handshake_hello hello;
    struct handshake_challenge challenge;
    struct handshake_proof proof;
    char *body;            /* ended by '\0'; NULL: the proof has not come */
    struct net_seal *seal; /* once it is proven */
    bool challenged, proven, whole;
    unsigned char go[SEAL_TAG];
};

/* At a time more strangers than these, and 'expected', are not kept; the oldest
 * of those that have said nothing goes, else the oldest.  They have 10 s to say
 * all, 2 s where there are many.
 */
enum { LISTENER_STRANGERS = 256 };

/* All zero but these: new. */
struct listener {
    struct listen_sockets at; /* closed by listener_close() */
    struct handshake handshake;
    size_t most;     /* bytes of a body */
    size_t expected; /* that may come at once */
    /* Of services that confirm: whether who has proven that it has the key is
     * welcome; NULL: yes. */
    bool (*is_welcome) (void *arg, const void *body, size_t n);
    void *arg;
    double timeout; /* to confirm: a process may be stopped so long */
    struct listener_pending *pending;
    size_t n, strangers, room;
    struct handshake_pair pair; /* drawn for the first caller */
    bool has_pair;
    int spare; /* a file that gives way when no more may be open; 0: none */
    struct pollfd *poll;
    size_t poll_room;
};

/* How many entries for poll(2) are the listener's now. */
size_t listener_fds (const struct listener *l);

/* For poll(2): the first listener_fds() are the listener's, 'more' follow,
 * which the caller fills.  To be called before each listener_serve(), at least
 * once a second while l->n is not 0.  NULL: out of memory.
 */
struct pollfd *listener_poll (struct listener *l, size_t more);

/* After poll(2): take who comes and what they say, and drop who is late. */
void listener_serve (struct listener *l);

/* One who has said all; the socket, its seal and the body, of 'length' bytes
 * and '\0', are the caller's.  False: there is none now.
 */
struct listener_arrival {
    int fd;
    struct net_seal *seal;
    bool agrees;      /* it is plain as we are; else it gets no other answer */
    unsigned version; /* of the service's protocol, that it speaks */
    size_t length;
    char *body;
};
bool listener_take (struct listener *l, struct listener_arrival *a);

/* All that is open is closed, and the memory given back. */
void listener_close (struct listener *l);
