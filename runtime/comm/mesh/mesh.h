/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between any two ranks, over shared memory or TCP. */
#pragma once

#include <stdbool.h>
#include <sys/uio.h>

#include "runtime/comm/bootstrap/bootstrap.h"
#include "runtime/comm/net/seal.h"

/* Connections are made when they are first used.  A mesh belongs to one
 * thread at a time; mesh_channel() makes another one of the same ranks.
 *
 * Every call ends within the time-out.  It fails with ECONNRESET as soon as
 * the peer's process or host is known to have gone (closed connections,
 * keep-alive, a process of this node that has ended), with the peer's reason
 * where it gave one.
 */
struct mesh;

struct mesh *mesh_open (struct boot *b, struct slurmdl_error *err);
void mesh_close (struct mesh *m); /* NULL is accepted */

/* The same ranks, for another thread: all ranks give the same number, which is
 * not 0 and not used before; nothing is exchanged.
 */
struct mesh *mesh_channel (struct mesh *m, unsigned channel, struct slurmdl_error *err);

/* Those of the ranks in 'ranks' (ours is one of them), renumbered in this
 * order; 'channel' as above, the same on all of them.
 */
struct mesh *mesh_subset (struct mesh *m, const long *ranks, long n, unsigned channel,
                          struct slurmdl_error *err);

/* Tell all peers that this rank gives up, and why. */
void mesh_abort (struct mesh *m, const char *why);

long mesh_rank (const struct mesh *m);
long mesh_size (const struct mesh *m);
double mesh_timeout (const struct mesh *m);
/* Also of those that are made of it later. */
void mesh_set_timeout (struct mesh *m, double seconds);
const char *mesh_host (const struct mesh *m, long rank);
/* The number by which messages name it: a user knows no other. */
long mesh_world_rank (const struct mesh *m, long rank);

/* Nodes are counted from 0 in the order of their first ranks; ranks share a
 * node if they can share memory, and DL_COMM_NODE, a word for tests and for
 * containers that cannot, is the same.
 */
long mesh_node_of (const struct mesh *m, long rank);
long mesh_nodes (const struct mesh *m);
long mesh_local_rank (const struct mesh *m, long rank);
long mesh_local_size (const struct mesh *m, long node);

/* What the messages from now on belong to: one that has another tag is EPROTO,
 * since the ranks call different collectives.
 */
void mesh_tag (struct mesh *m, uint32_t tag);
uint32_t mesh_called (const struct mesh *m);
/* That rank has such a tag: -1 if that is of another collective. */
int mesh_compare (struct mesh *m, long peer, uint32_t tag, struct slurmdl_error *err);

/* -1 if it was aborted, or is the parent process's. */
int mesh_usable (struct mesh *m, struct slurmdl_error *err);

/* Parts of a mesh that do a part of its collectives have channels from here
 * on: what fails on one of them has failed on all.
 */
enum { MESH_HELPER = 0x40000000 };

/* This rank waits for that one (-1: no more), so that others who wait for us
 * can say who it is that does not come.
 */
void mesh_set_waits (struct mesh *m, long peer);

/* That rank has gone, or did not come within the time-out: the mesh can no
 * longer be used, and the others are told.  Return -1.
 */
int mesh_lost (struct mesh *m, long peer, struct slurmdl_error *err);
int mesh_timed_out (struct mesh *m, long peer, struct slurmdl_error *err);

/* Whether that rank's host has gone (dial.h); 'fd' is a connection to it.  For
 * who waits for it, about once a second; may be called by any thread.
 */
bool mesh_is_unreachable (struct mesh *m, long peer, int fd);
/* The first of which that was found; -1: none. */
long mesh_unreachable (const struct mesh *m);

/* For a rank that waits for others of its node elsewhere, in shared memory: 0,
 * or -1 where this mesh was aborted or the process of one of them has ended.
 * It is called while what is awaited has not come, several times a second: an
 * end is believed when it is seen twice, so that what the other had done
 * before is seen first.
 */
int mesh_check (struct mesh *m, struct slurmdl_error *err);

/* A stream socket to that rank, non-blocking, close-on-exec and the caller's to
 * close(2), and its seal, likewise; both sides call it, in the same order where
 * they want several.
 */
int mesh_socket (struct mesh *m, long peer, struct net_seal **seal, struct slurmdl_error *err);

/* The same without waiting, for a rank greater than ours: EAGAIN if it has not
 * called yet.  mesh_event() is readable when somebody may have. */
int mesh_socket_now (struct mesh *m, long peer, struct net_seal **seal, struct slurmdl_error *err);
int mesh_event (const struct mesh *m);

/* Messages from one rank to another come in order; both sides give the same
 * size (else EPROTO).  What is sent to the rank itself is received by the same
 * call of mesh_exchange().
 */
int mesh_send (struct mesh *m, long to, const void *data, size_t n, struct slurmdl_error *err);
int mesh_recv (struct mesh *m, long from, void *data, size_t n, struct slurmdl_error *err);

/* Both at once; 'to' and 'from' may be the same rank; -1: nobody. */
int mesh_exchange (struct mesh *m, long to, const void *out, size_t nout, long from, void *in,
                   size_t nin, struct slurmdl_error *err);

/* The same where the data are in two pieces (of which one may be empty), or
 * what comes is not stored but given to 'reduce', piece by piece from a small
 * buffer, so that what is done with it overlaps with the rest: 'offset' and 'n'
 * in bytes, multiples of 16, but for the last.
 */
typedef void (*mesh_reduce_f) (void *arg, size_t offset, const void *data, size_t n);
struct mesh_sendrecv {
    long to, from;
    struct iovec out[2], in[2];
    mesh_reduce_f reduce; /* or NULL */
    void *arg;
    size_t reduce_n; /* bytes, if there is 'reduce' */
};
int mesh_sendrecv (struct mesh *m, const struct mesh_sendrecv *t, struct slurmdl_error *err);
