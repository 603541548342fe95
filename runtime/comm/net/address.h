/* SPDX-License-Identifier: Apache-2.0 */
/* Names and addresses of hosts. */
#pragma once

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

/* Split "HOST:PORT" or "[v6]:PORT".  Returns -1 with EINVAL. */
int address_split (const char *address, char *host, size_t size, int *port);

/* Resolve 'host' for TCP; 'flags' are those of getaddrinfo(), such as AI_NUMERICHOST.  The caller
 * frees the result with freeaddrinfo().  Returns NULL with EHOSTUNREACH.
 */
struct addrinfo *address_look_up (const char *host, int port, int flags);

/* Replace "localhost" by 127.0.0.1, so that both sides use the same address whatever the resolver
 * returns.
 */
const char *address_name (const char *host);

bool address_is_loopback (const struct sockaddr *a);

/* Write "HOST[,HOST...]", under which other machines may reach this one: its name, if it resolves,
 * and the addresses of its interfaces; "" if there are none.
 */
void address_own (const char *name, char *buf, size_t size);

/* Write a word that identifies this machine and its network namespace: processes with the same word
 * share the loopback interface; "" if unknown.
 */
void address_machine (char *buf, size_t size);

/* Write the address of the peer of 'fd', without the port, for messages. */
void address_of_peer (int fd, char *buf, size_t size);
