/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint of a rank: its listener, and the addresses of its peers. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/comm/mesh/dial.h"
#include "runtime/comm/mesh/mesh.h"
#include "runtime/comm/net/listener.h"

/* A connection, or a peer's reason to give up, that came before this rank had
 * the channel. */
struct mesh_pending {
    struct mesh_pending *next;
    struct mesh_hello hello;
    int fd; /* -1: none */
    struct net_seal *seal;
};

/* A thread accepts connections, so that a rank that computes keeps none of
 * the others waiting.  Of a child that was made by fork(2) all of it is
 * closed.
 */
struct endpoint {
    struct endpoint *next; /* in the list for fork(2) */
    unsigned uses;
    pid_t pid;
    long rank, size;
    double timeout;
    unsigned char key[HANDSHAKE_KEY]; /* of all ranks */
    bool plain;
    struct mesh_peer_info *peers;
    struct listener listener; /* the thread's */
    int wake;                 /* an eventfd that ends the thread */
    pthread_t thread;
    bool threaded;
    atomic_long unreachable; /* a rank whose host does not answer; -1 */
    pthread_mutex_t mutex;   /* of what follows */
    struct mesh *meshes;
    struct mesh_pending *pending;
};

struct endpoint *endpoint_open (struct boot *b, struct slurmdl_error *err);

/* The last user ends it. */
void endpoint_use (struct endpoint *h);
void endpoint_close (struct endpoint *h);

/* Whether this process was made by fork(2) since. */
bool endpoint_is_foreign (const struct endpoint *h);

/* Take part in what comes in; what is pending for it is delivered. */
void endpoint_enter (struct endpoint *h, struct mesh *m);
void endpoint_leave (struct endpoint *h, struct mesh *m);

/* Append a connection to a list of pending ones, which owns 'fd' and 'seal'
 * then; without memory it is closed.
 */
void mesh_pending_add (struct mesh_pending **end, const struct mesh_hello *w, int fd,
                       struct net_seal *seal);

/* mesh.c, from the listener's thread or endpoint_enter(), the mutex held: 'fd'
 * and 'seal' are the mesh's from now on. */
void mesh_deliver (struct mesh *m, const struct mesh_hello *hello, int fd, struct net_seal *seal);

/* What a rank waits for, as it tells those that ask. */
struct mesh_report {
    int64_t waits;  /* for this rank of the world, -1: for none */
    uint32_t calls; /* collectives begun */
    uint32_t tag;   /* of the last one */
};

void mesh_state (struct mesh *m, struct mesh_report *s);
void mesh_forked (struct mesh *m); /* close all sockets, in a child */
