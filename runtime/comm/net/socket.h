/* SPDX-License-Identifier: Apache-2.0 */
/* TCP sockets with deadlines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/base/error.h"

/* Sockets are non-blocking and close-on-exec, with the congestion control of
 * socket_congestion(); deadlines are on the clock of monotonic().  Functions
 * return -1 with errno set, ETIMEDOUT at the deadline.
 */

int socket_new (int family);
int socket_keep (int fd, int rv); /* 'fd' if 'rv' is 0; else it is closed */
void socket_no_delay (int fd);    /* and idle connections are probed */

/* One attempt at each address of "HOST[,HOST...]"; EHOSTUNREACH if there is
 * none.  (To look a name up takes as long as the resolver takes.)
 */
int socket_connect (const char *hosts, int port, double deadline);

/* Use the congestion control DL_COMM_CONGESTION, else cubic or reno where the
 * system's is bbr; what is accepted has its listener's.  All sockets above do,
 * if they can; this tells why not: there is no such, or it is not allowed here
 * (sysctl net.ipv4.tcp_allowed_congestion_control).
 */
int socket_congestion (int fd, struct slurmdl_error *err);

/* Nothing is held back to be sent with more; after 'idle' seconds of silence
 * the kernel asks the other side every 'interval' seconds, 'probes' times.
 */
void socket_tune (int fd, int idle, int interval, int probes);

/* Wait until 'fd' is ready for 'events' (poll(2)). */
int socket_wait (int fd, short events, double deadline);

/* All 'n' bytes; ECONNRESET if the other side has closed. */
int socket_send (int fd, const void *data, size_t n, double deadline);
int socket_recv (int fd, void *data, size_t n, double deadline);

/* Several pieces in one go; 'v' is changed. */
int socket_sendv (int fd, struct iovec *v, int n, double deadline);

/* Milliseconds for poll(2) until the deadline, at least 0, at most 1,000,000.
 */
int socket_left (double deadline);
