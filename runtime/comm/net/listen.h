/* SPDX-License-Identifier: Apache-2.0 */
/* Listen on a port of this machine's own addresses. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/comm/net/interface.h"

enum { LISTEN_ADDRESSES = 16, LISTEN_SOCKETS = LISTEN_ADDRESSES + 2 };

/* A socket for each address, all at one port. */
struct listen_sockets {
    int port;
    int n; /* 0: not listening */
    int fd[LISTEN_SOCKETS];
};

/* Listen at 'port' (0: any free one) on loopback and on the interfaces of this machine; only on
 * loopback if 'host', which may be NULL, is a loopback address.  Does not use a resolver.  Returns
 * -1 with errno.
 */
int listen_open (struct listen_sockets *s, const char *host, int port);

/* Listen at a port in the range DL_COMM_PORTS ("FIRST-LAST") if that is set, or else at any, on 'n'
 * addresses, or on loopback and all interfaces if 'list' is NULL.  Fails with EINVAL if
 * DL_COMM_PORTS or DL_COMM_CONGESTION is invalid.
 */
int listen_open_range (struct listen_sockets *s, const struct interface_address *list, int n,
                       struct slurmdl_error *err);

void listen_close (struct listen_sockets *s); /* keeps errno */
