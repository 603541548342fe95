/* SPDX-License-Identifier: Apache-2.0 */
/* What all meshes of a communicator's ranks share: cards, and a listener. */
#ifndef RUNTIME_COMM_MESH_ENDPOINT_H
#define RUNTIME_COMM_MESH_ENDPOINT_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/comm/mesh/dial.h"
#include "runtime/comm/mesh/mesh.h"

/* A connection, or a peer's reason to give up, that came before this rank had
 * the channel. */
struct parked {
    struct parked *next;
    struct hello hello;
    int fd; /* -1: none */
    char text[DIAL_TEXT];
};

/* A thread accepts connections, so that a rank that computes keeps none of
 * the others waiting.  Of a child that was made by fork(2) all of it is
 * closed.
 */
struct home {
    struct home *next; /* in the list for fork(2) */
    unsigned uses;
    pid_t pid;
    long rank, size;
    double timeout;
    struct card *cards;
    int listener, wake; /* a socket, an eventfd that ends the thread */
    pthread_t thread;
    bool threaded;
    atomic_long silent;    /* a rank whose host does not answer; -1 */
    pthread_mutex_t mutex; /* of what follows */
    struct mesh *meshes;
    struct parked *parked;
};

struct home *home_open (struct boot *b, struct slurmdl_error *err);

/* The last user ends it. */
void home_use (struct home *h);
void home_close (struct home *h);

/* Whether this process was made by fork(2) since. */
bool home_is_foreign (const struct home *h);

/* Take part in what comes in; what was parked for it is delivered. */
void home_enter (struct home *h, struct mesh *m);
void home_leave (struct home *h, struct mesh *m);

/* mesh.c, from the listener's thread or home_enter(), the mutex held: 'fd' is
 * the mesh's from now on. */
void mesh_deliver (struct mesh *m,
                   const struct hello *hello,
                   int fd,
                   const char *text);

/* What a rank waits for, as it tells those that ask. */
struct mesh_report {
    int64_t waits;  /* for this rank of the world, -1: for none */
    uint32_t calls; /* collectives begun */
    uint32_t tag;   /* of the last one */
};

struct mesh *home_find (struct home *h, uint64_t channel);
void mesh_state (struct mesh *m, struct mesh_report *s);
void mesh_forked (struct mesh *m); /* close all sockets, in a child */

#endif
