/* SPDX-License-Identifier: Apache-2.0 */
/* Names and numbers of hosts. */
#pragma once

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

/* "HOST:PORT", "[v6]:PORT"; -1 with EINVAL. */
int address_split (const char *address, char *host, size_t size, int *port);

/* Addresses of 'host' with that port, for streams, which freeaddrinfo() frees;
 * 'flags' as AI_NUMERICHOST.  NULL: EHOSTUNREACH.
 */
struct addrinfo *address_look_up (const char *host, int port, int flags);

/* "localhost" is 127.0.0.1 for who listens and who calls, whatever else the
 * resolver has of that name.
 */
const char *address_name (const char *host);

bool address_is_loopback (const struct sockaddr *a);

/* "HOST[,HOST...]" where other machines may reach this one: its name, if it has
 * an address, and those of its interfaces; "": there are none.
 */
void address_own (const char *name, char *buf, size_t size);

/* A word for this machine, and its network namespace: who has the same sees the
 * same loopback; "": not known.
 */
void address_machine (char *buf, size_t size);

/* Address of the other side of 'fd' without the port, for messages. */
void address_of_peer (int fd, char *buf, size_t size);
