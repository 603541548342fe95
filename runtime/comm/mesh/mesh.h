/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between any two ranks, over shared memory or TCP. */
#pragma once

#include <stdbool.h>
#include <sys/uio.h>

#include "runtime/comm/bootstrap/bootstrap.h"
#include "runtime/comm/net/seal.h"

/* Connections are made on first use.  A mesh belongs to one thread at a time;
 * mesh_channel() makes another one of the same ranks.
 *
 * Every call ends within the timeout.  It fails with ECONNRESET as soon as the
 * peer's process or host is known to be gone (closed connections, keep-alive, a
 * process of this node that has ended), and reports the peer's reason if it
 * gave one.
 */
struct mesh;

struct mesh *mesh_open (struct boot *b, struct slurmdl_error *err);
void mesh_close (struct mesh *m); /* NULL is accepted */

/* The same ranks, for another thread: all ranks pass the same number, which is
 * not 0 and was not used before; nothing is exchanged.
 */
struct mesh *mesh_channel (struct mesh *m, unsigned channel, struct slurmdl_error *err);

/* The ranks in 'ranks' (which include ours), renumbered in this order;
 * 'channel' as above, the same on all of them.
 */
struct mesh *mesh_subset (struct mesh *m, const long *ranks, long n, unsigned channel,
                          struct slurmdl_error *err);

/* Tell all peers that this rank gives up, and why. */
void mesh_abort (struct mesh *m, const char *why);

long mesh_rank (const struct mesh *m);
long mesh_size (const struct mesh *m);
double mesh_timeout (const struct mesh *m);
/* Also for meshes made from it later. */
void mesh_set_timeout (struct mesh *m, double seconds);
const char *mesh_host (const struct mesh *m, long rank);
/* The number by which messages name the rank: users know no other. */
long mesh_world_rank (const struct mesh *m, long rank);

/* Nodes are counted from 0 in the order of their first ranks.  Ranks share a
 * node if they can share memory and have the same DL_COMM_NODE, a word for
 * tests and for containers that cannot.
 */
long mesh_node_of (const struct mesh *m, long rank);
long mesh_nodes (const struct mesh *m);
long mesh_local_rank (const struct mesh *m, long rank);
long mesh_local_size (const struct mesh *m, long node);

/* Tag of all following messages: a message with another tag is EPROTO, because
 * the ranks call different collectives.
 */
void mesh_tag (struct mesh *m, uint32_t tag);
uint32_t mesh_called (const struct mesh *m);
/* Compare a rank's tag with ours; -1 if it belongs to another collective. */
int mesh_compare (struct mesh *m, long peer, uint32_t tag, struct slurmdl_error *err);

/* Returns -1 if the mesh was aborted, or belongs to the parent process. */
int mesh_usable (struct mesh *m, struct slurmdl_error *err);

/* Parts of a mesh that do a part of its collectives have channels from this
 * number on: what fails on one of them fails on all.
 */
enum { MESH_HELPER = 0x40000000 };

/* Record that this rank waits for 'peer' (-1: no longer), so that ranks that
 * wait for us can report which rank is missing.
 */
void mesh_set_waits (struct mesh *m, long peer);

/* That rank is gone, or did not answer within the timeout: break the mesh and
 * tell the others.  Returns -1.
 */
int mesh_lost (struct mesh *m, long peer, struct slurmdl_error *err);
int mesh_timed_out (struct mesh *m, long peer, struct slurmdl_error *err);

/* Whether that rank's host is gone (endpoint.h); 'fd' is a connection to it.  For a
 * rank that waits for it, about once a second; any thread may call it.
 */
bool mesh_is_unreachable (struct mesh *m, long peer, int fd);
/* The first rank found by that; -1 if there is none. */
long mesh_unreachable (const struct mesh *m);

/* For a rank that waits for others of its node elsewhere, in shared memory: 0,
 * or -1 if this mesh was aborted or the process of one of them has ended.  Call
 * it several times a second while waiting: an end counts only when seen twice,
 * so that everything the process did before is seen first.
 */
int mesh_check (struct mesh *m, struct slurmdl_error *err);

/* A stream socket to that rank, non-blocking and close-on-exec, and its seal;
 * the caller closes and frees them.  Both sides call it, in the same order if
 * they need several.
 */
int mesh_socket (struct mesh *m, long peer, struct net_seal **seal, struct slurmdl_error *err);

/* The same without waiting, for a rank greater than ours: EAGAIN if it has not
 * connected yet. mesh_event() becomes readable when some rank may have.
 */
int mesh_socket_now (struct mesh *m, long peer, struct net_seal **seal, struct slurmdl_error *err);
int mesh_event (const struct mesh *m);

/* Messages from one rank to another arrive in order; both sides pass the same
 * size (else EPROTO).  Messages of a rank to itself are received by the same
 * call of mesh_exchange().
 */
int mesh_send (struct mesh *m, long to, const void *data, size_t n, struct slurmdl_error *err);
int mesh_recv (struct mesh *m, long from, void *data, size_t n, struct slurmdl_error *err);

/* Both at once; 'to' and 'from' may be the same rank; -1: none. */
int mesh_exchange (struct mesh *m, long to, const void *out, size_t nout, long from, void *in,
                   size_t nin, struct slurmdl_error *err);

/* The same with data in two pieces (one may be empty), or with received data
 * passed to 'reduce' instead of stored, piece by piece from a small buffer, so
 * that the reduction overlaps with the transfer: 'offset' and 'n' are in bytes,
 * multiples of 16 except for the last.
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
