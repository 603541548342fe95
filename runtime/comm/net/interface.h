/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of this machine's network interfaces. */
#pragma once

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* 'family' 0: none. */
struct interface_address {
    uint8_t family; /* 4 or 6 */
    uint8_t prefix; /* bits of its network */
    uint8_t bytes[16];
};

/* Write at most 'room' addresses of the interfaces that are up, without loopback and link-local
 * ones; those of containers and virtual machines come last.  'wanted' selects interfaces
 * ("ib0,eth1"); NULL or "": all.  Returns their number.
 */
int interface_addresses (const char *wanted, struct interface_address *to, int room);

union interface_socket {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Convert for connect(2) and bind(2).  Returns the size. */
socklen_t interface_socket (const struct interface_address *a, int port,
                            union interface_socket *to);
