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
int socket_keep (int fd, int rv); /* returns 'fd' if 'rv' is 0; otherwise closes it */
void socket_no_delay (int fd);    /* also enables keep-alive */

/* Try each address of "HOST[,HOST...]" once; EHOSTUNREACH if there is none.  The deadline does not
 * limit the resolver.
 */
int socket_connect (const char *hosts, int port, double deadline);

/* Use the congestion control DL_COMM_CONGESTION, or else cubic or reno if the system's is bbr;
 * accepted sockets inherit it from the listener.  All sockets above use it if possible.  This
 * function reports why it is not: it does not exist, or is not allowed (sysctl
 * net.ipv4.tcp_allowed_congestion_control).
 */
int socket_congestion (int fd, struct slurmdl_error *err);

/* Send data at once (TCP_NODELAY); after 'idle' seconds of silence, let the kernel send 'probes'
 * keep-alive probes, one every 'interval' seconds.
 */
void socket_tune (int fd, int idle, int interval, int probes);

/* Wait until 'fd' is ready for 'events' (poll(2)). */
int socket_wait (int fd, short events, double deadline);

/* Send or receive all 'n' bytes; ECONNRESET if the peer has closed the connection. */
int socket_send (int fd, const void *data, size_t n, double deadline);
int socket_recv (int fd, void *data, size_t n, double deadline);

/* Send several pieces at once; changes 'v'. */
int socket_sendv (int fd, struct iovec *v, int n, double deadline);

/* Milliseconds for poll(2) until the deadline, at least 0, at most 1,000,000.
 */
int socket_left (double deadline);
