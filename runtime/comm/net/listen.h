/* SPDX-License-Identifier: Apache-2.0 */
/* Listen on a port of this machine's own addresses. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/comm/net/interface.h"

enum { LISTEN_ADDRESSES = 16, LISTEN_SOCKETS = LISTEN_ADDRESSES + 2 };

/* A socket for each address, all of one port. */
struct listen_sockets {
    int port;
    int n; /* 0: it does not listen */
    int fd[LISTEN_SOCKETS];
};

/* At 'port' (0: any that is free) of loopback and of this machine's interfaces;
 * of loopback only where 'host', which may be NULL, is a loopback address.  No
 * resolver is asked.  -1 with errno.
 */
int listen_open (struct listen_sockets *s, const char *host, int port);

/* At a port of the range DL_COMM_PORTS ("FIRST-LAST") if that is set, else at
 * any; EINVAL where it or DL_COMM_CONGESTION makes no sense.  'n' addresses;
 * 'list' NULL: loopback and all of this machine's interfaces.
 */
int listen_open_range (struct listen_sockets *s, const struct interface_address *list, int n,
                       struct slurmdl_error *err);

void listen_close (struct listen_sockets *s); /* errno is kept */
