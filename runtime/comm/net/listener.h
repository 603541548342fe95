/* SPDX-License-Identifier: Apache-2.0 */
/* Accept connections and authenticate the callers; the number of unauthenticated
 * connections is limited.
 */
#pragma once

#include <poll.h>

#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/listen.h"

/* Whether the peer of an AF_UNIX socket is a process of this user. */
bool listener_is_mine (int fd);

/* A connection in the handshake.  It is unauthenticated until the caller has proven that it has the
 * key.
 */
struct listener_pending {
    int fd;
    double since;
    size_t got;
    struct handshake_hello hello;
    struct handshake_challenge challenge;
    struct handshake_proof proof;
    char *body;            /* ended by '\0'; NULL: the proof has not arrived */
    struct net_seal *seal; /* once the caller is authenticated */
    bool challenged, proven, whole;
    unsigned char go[SEAL_TAG];
};

/* The listener keeps at most this number of unauthenticated connections, plus 'expected'.  If there
 * are more, it drops the oldest that has sent nothing, or else the oldest.  They must complete the
 * handshake within 10 s, or 2 s if there are many.
 */
enum { LISTENER_UNAUTHENTICATED = 256 };

/* A new one is all zero except for the members up to 'timeout'. */
struct listener {
    struct listen_sockets at; /* closed by listener_close() */
    struct handshake handshake;
    size_t most;     /* maximum size of a body */
    size_t expected; /* how many may come at once */
    /* For services that confirm: whether an authenticated caller is welcome; NULL: always. */
    bool (*is_welcome) (void *arg, const void *body, size_t n);
    void *arg;
    double timeout; /* to confirm: a process may be stopped for this long */
    struct listener_pending *pending;
    size_t n, unauthenticated, room;
    struct handshake_pair pair; /* drawn for the first caller */
    bool has_pair;
    int spare; /* a descriptor to close when no more files can be opened; 0: none */
    struct pollfd *poll;
    size_t poll_room;
};

/* Number of entries for poll(2) that the listener needs now. */
size_t listener_fds (const struct listener *l);

/* The entries for poll(2): listener_fds() of the listener, followed by 'more' that the caller fills
 * in. Call this before each listener_serve(), at least once a second while l->n is not 0.  Returns
 * NULL if out of memory.
 */
struct pollfd *listener_poll (struct listener *l, size_t more);

/* After poll(2): accept connections, read from them, and drop those that are late. */
void listener_serve (struct listener *l);

/* Take a connection that has completed the handshake; the caller of this function then owns the
 * socket, its seal and the body, 'length' bytes and '\0'.  Returns false if there is none now.
 */
struct listener_arrival {
    int fd;
    struct net_seal *seal;
    bool agrees;      /* both sides are plain, or neither is; otherwise it got no other answer */
    unsigned version; /* its version of the protocol */
    size_t length;
    char *body;
};
bool listener_take (struct listener *l, struct listener_arrival *a);

/* Close everything and free the memory. */
void listener_close (struct listener *l);
