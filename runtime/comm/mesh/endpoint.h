/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoint of a rank: its listener, and the addresses of its peers. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/error.h"
#include "runtime/base/process_id.h"
#include "runtime/comm/mesh/mesh.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/interface.h"
#include "runtime/comm/net/listener.h"

/* ---- TCP connections between ranks, with deadlines and keep-alive (dial.c) ---- */

enum { PEER_ADDRESSES = 8 };

struct mesh_peer_info {
    char host[64];
    char word[32];  /* DL_COMM_NODE */
    uint64_t shm;   /* device number of /dev/shm; 0: none */
    uint64_t netns; /* the network namespace */
    unsigned char token[HANDSHAKE_TOKEN];
    struct process_id member;
    uint64_t cores_hash; /* of the cores that it may use */
    int32_t cores;
    uint16_t port;
    struct interface_address at[PEER_ADDRESSES]; /* ended by family 0 */
};

/* Describe this process, except for its port.  The addresses are those of the interfaces in the
 * list DL_COMM_INTERFACE ("ib0,eth1"), or of all that are up, without loopback, with those of
 * containers and virtual machines last.
 */
void peer_info_fill (struct mesh_peer_info *c);
int peer_info_addresses (const struct mesh_peer_info *c); /* their number */

/* Terminate the strings in the description of another rank. */
void peer_info_end (struct mesh_peer_info *c);

bool peer_info_same_node (const struct mesh_peer_info *a, const struct mesh_peer_info *b);

/* The purpose of a connection, which the other rank confirms (handshake.h) without help from its
 * program.
 */
enum dial_kind {
    DIAL_LINK = 1, /* carries messages from the rank that connects */
    DIAL_SOCKET,   /* mesh_socket() */
    DIAL_ABORT,    /* announces a failure */
    DIAL_QUERY,    /* answered by a struct mesh_report */
};

enum { DIAL_VERSION = 1, DIAL_TEXT = 256 };

/* The body of the handshake. */
struct mesh_hello {
    uint32_t kind;
    int32_t code;     /* errno of DIAL_ABORT */
    int64_t from, to; /* ranks of the world */
    uint64_t channel;
    int64_t unreachable;  /* the rank whose host is gone, if that is the reason; or -1 */
    char text[DIAL_TEXT]; /* reason of DIAL_ABORT */
};

/* The rank that connects. */
struct dial_caller {
    const struct mesh_peer_info *self;
    const unsigned char *key; /* shared by all ranks */
    bool plain;
    double timeout; /* of collectives */
};

/* Connect to a rank, send 'hello' and receive the answer, until 'deadline' (monotonic()); calls
 * dial_watch().
 *
 * Returns a non-blocking socket and its seal, or -1 with ECONNREFUSED (nobody listens there any
 * more), ETIMEDOUT, EHOSTUNREACH (the host is gone, as defined below) or EACCES (another program
 * listens).
 */
int dial_rank (const struct dial_caller *caller, const struct mesh_peer_info *to,
               const struct mesh_hello *hello, double deadline, struct net_seal **seal);

/* The parameters of the handshake with the listener of a rank. */
struct handshake dial_handshake (const struct mesh_peer_info *to, const unsigned char *key,
                                 bool plain);

/* A host is gone if nothing arrives from it for 10 s, not even an acknowledgement or the answer to
 * a probe, and if then no connection to it can be made for 4 s.  If the timeout of collectives is
 * less than 10 s, these times are the timeout and 0.4 of it.  The kernel of the host answers, so
 * that a process that is stopped or does not read never counts as gone.
 *
 * dial_watch() lets the kernel send probes; dial_is_silent() is the first condition, dial_reaches()
 * the opposite of the second.
 */
void dial_watch (int fd, double timeout);
bool dial_is_silent (int fd, double timeout);
bool dial_reaches (const struct dial_caller *caller, const struct mesh_peer_info *to);

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
