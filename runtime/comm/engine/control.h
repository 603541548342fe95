/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: the state of the control thread. */
#pragma once

#include "runtime/comm/engine/coordinator.h"
#include "runtime/comm/engine/engine.h"
#include "runtime/comm/engine/packet.h"
#include "runtime/comm/net/seal.h"

/* ---- rank 0 finds out which ranks hold up a tensor (stall.c) ---- */

/* A rank reports that one of its tensors has waited for too long.  Rank 0 asks all ranks whether
 * they have submitted it, and names those that answer no or do not answer within a second.
 */
struct stall;

struct stall *stall_create (long size, host_f host, const void *arg);
void stall_destroy (struct stall *s); /* NULL is accepted */

/* Process UP_STALL: write DOWN_WHO for names that were not asked for yet. */
void stall_report (struct stall *s, const char *name, double age, uint64_t others, double now,
                   struct packet *down);

/* Write "\"w\" and 2 more have waited 12 s for "; 'size' > 0.  Returns its length. */
size_t stall_waits (const char *name, double age, uint64_t others, char *text, size_t size);

/* Process UP_HERE. */
void stall_answer (struct stall *s, long rank, const char *name, bool here);

/* Seconds until stall_text() has something to report, -1: never. */
double stall_wait_seconds (const struct stall *s, double now);

/* Write a report, if there is one; sets '*age' to that of the oldest tensor in seconds. */
bool stall_text (struct stall *s, double now, char *text, size_t size, double *age);

/* ---- count which parts of the ranks are ready for a tensor (readiness.c) ---- */

/* The ranks form a tree whose root, rank 0, decides.  The units of a rank are its children and
 * itself.  A rank passes on that a numbered tensor is ready once, when all its units are.  For a
 * step that was seen before, rank 0 therefore receives one short message from each of its children,
 * however many ranks there are.
 */
struct readiness;

/* 'ranks': the number of ranks in each unit; the first unit is the rank itself. */
struct readiness *readiness_create (size_t units, const long *ranks);
void readiness_destroy (struct readiness *r); /* NULL is accepted */

int readiness_assign (struct readiness *r, uint32_t id); /* begin to count it */
void readiness_drop (struct readiness *r, uint32_t id);

/* All ranks of a unit that have not joined are ready; unknown ids are ignored, because a message
 * about a dropped one may be late.
 */
int readiness_ready (struct readiness *r, uint32_t id);

/* One rank of the unit has joined: it counts as ready for everything until readiness_rejoin(). */
int readiness_join (struct readiness *r, size_t unit);
void readiness_rejoin (struct readiness *r);

/* The '*n' ids for which all units have become ready since the last call; valid until the next
 * call. */
uint32_t *readiness_full (struct readiness *r, size_t *n);

/* The place of a rank in the tree: */
struct engine_tree {
    long parent;    /* -1: rank 0 */
    long *children; /* 'n' of them */
    long *below;    /* number of ranks in the subtree of each child */
    size_t n;
};

/* each rank is below the first rank of its node, and these form a tree with 'fan' children each.
 * node[rank] counts from 0 in the order of the first ranks.
 */
int engine_tree_make (struct engine_tree *t, long rank, long size, const long *node, long fan);
void engine_tree_free (struct engine_tree *t);

/* ---- packets over a stream socket, without waiting (connection.c) ---- */

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

/* ---- control.c ---- */

struct control {
    struct engine *e;
    struct engine_tree tree;
    struct connection parent, *children; /* the parent's fd is -1 on rank 0 */
    struct readiness *readiness;
    struct map ids;     /* names by their numbers */
    struct packet up;   /* to the parent; not on rank 0 */
    struct packet down; /* from the coordinator, to all */
    double stalled;     /* when this rank last reported a stall */
    double looked;      /* when it last checked whether hosts are alive */
    double begun;       /* when this thread began */
    size_t absent;      /* children that have not begun to use named tensors */
    bool heard;         /* the parent has begun */
    bool ended;         /* everything was sent */
    bool told;          /* this rank has announced that it leaves */

    /* only on rank 0 */
    struct coordinator *root;
    struct stall *stall;
};

/* Process one packet from below or from this rank; 'unit' is the sender in k->readiness. */
int control_up (struct control *k, size_t unit, struct packet *p);

/* Process one packet from above. */
int control_down (struct control *k, struct packet *p);
