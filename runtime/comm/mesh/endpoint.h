/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint of a rank: its listener, and the addresses of its peers. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/comm/mesh/dial.h"
#include "runtime/comm/mesh/mesh.h"
#include "runtime/comm/net/listener.h"

/* A connection, or a peer's reason to give up, that arrived before this rank opened the channel. */
struct mesh_pending {
    struct mesh_pending *next;
    struct mesh_hello hello;
    int fd; /* -1: none */
    struct net_seal *seal;
};

/* A thread accepts connections, so that other ranks need not wait for a rank that computes.  In a
 * child of fork(2), everything is closed.
 */
struct endpoint {
    struct endpoint *next; /* in the list for fork(2) */
    unsigned uses;
    pid_t pid;
    long rank, size;
    double timeout;
    unsigned char key[HANDSHAKE_KEY]; /* shared by all ranks */
    bool plain;
    struct mesh_peer_info *peers;
    struct listener listener; /* used by the thread */
    int wake;                 /* an eventfd that ends the thread */
    pthread_t thread;
    bool threaded;
    atomic_long unreachable; /* a rank whose host does not answer, or -1 */
    pthread_mutex_t mutex;   /* protects the members below */
    struct mesh *meshes;
    struct mesh_pending *pending;
};

struct endpoint *endpoint_open (struct boot *b, struct slurmdl_error *err);

/* Count users; the last endpoint_close() frees it. */
void endpoint_use (struct endpoint *h);
void endpoint_close (struct endpoint *h);

/* Whether this process is a child, by fork(2), of the one that opened it. */
bool endpoint_is_foreign (const struct endpoint *h);

/* Register a mesh for connections; pending ones are delivered. */
void endpoint_enter (struct endpoint *h, struct mesh *m);
void endpoint_leave (struct endpoint *h, struct mesh *m);

/* Append a connection to a list of pending ones, which takes ownership of 'fd' and 'seal'; if out
 * of memory, they are closed.
 */
void mesh_pending_add (struct mesh_pending **end, const struct mesh_hello *w, int fd,
                       struct net_seal *seal);

/* mesh.c: called with the mutex held by the thread of the listener or by endpoint_enter(); the mesh
 * takes ownership of 'fd' and 'seal'.
 */
void mesh_deliver (struct mesh *m, const struct mesh_hello *hello, int fd, struct net_seal *seal);

/* The answer of a rank that is asked what it waits for. */
struct mesh_report {
    int64_t waits;  /* rank of the world that it waits for, -1: none */
    uint32_t calls; /* number of collectives begun */
    uint32_t tag;   /* of the last one */
};

void mesh_state (struct mesh *m, struct mesh_report *s);
void mesh_forked (struct mesh *m); /* close all sockets, in a child */
