/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a communicator, each a process on this machine. */
#pragma once

#include "runtime/slurmdl_comm.h"

/* What a rank runs; returns its exit status, 0 for success. */
typedef int (*world_f) (struct slurmdl_comm *world, void *arg);

/* Run 'f' in 'size' new processes, which meet on a free port of loopback.  A
 * rank that cannot open its communicator exits with 99.  After 'seconds' all
 * are killed.  If 'node_size' is > 0, so many ranks count as a node
 * (DL_COMM_NODE, see mesh.h), and reach ranks of other nodes over TCP.
 *
 * Returns how many ranks did not exit with 0.  'status' gets 'size' statuses as
 * of waitpid(2), unless it is NULL.
 */
int world_run (int size, int node_size, world_f f, void *arg, int seconds, int *status);

/* Define a case in which all ranks of a world exit with 0. */
#define WORLD_CASE(name, size, node_size, f)                                                       \
    CASE (name)                                                                                    \
    {                                                                                              \
        assert_int_equal (world_run (size, node_size, f, NULL, 300, NULL), 0);                     \
    }

/* Reserve a port of loopback while the returned socket is open.  The socket is
 * bound but does not listen, so a listener with SO_REUSEADDR can still use the
 * port.
 */
int world_hold_port (int *port);
