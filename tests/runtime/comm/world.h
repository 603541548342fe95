/* SPDX-License-Identifier: Apache-2.0 */
/* Several ranks of a communicator, as processes of this machine. */
#pragma once

#include "runtime/slurmdl_comm.h"

/* What a rank does; returns the process's exit status, 0 for success. */
typedef int (*world_f) (struct slurmdl_comm *world, void *arg);

/* Run 'f' in 'size' new processes that have met on a free port of loopback; a
 * rank that cannot open its communicator ends with 99.  All are killed after
 * 'seconds'.  With 'node_size' > 0 so many ranks make a node (DL_COMM_NODE is
 * set, see mesh.h): the others are reached over TCP.
 *
 * Returns the number of ranks that did not end with 0; their ends are in
 * 'status' (of waitpid(2), 'size' numbers, or NULL).
 */
int world_run (int size, int node_size, world_f f, void *arg, int seconds, int *status);

/* A port of loopback that nobody else gets while the returned socket is open:
 * it is bound and does not listen, so that a listener with SO_REUSEADDR still
 * may.
 */
int world_hold_port (int *port);
