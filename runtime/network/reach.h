/* SPDX-License-Identifier: Apache-2.0 */
/* Names, addresses and interfaces by which nodes of a step reach each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct reach_address {
    struct sockaddr_storage a;
    socklen_t len; /* 0: none */
};

/* The result of resolving a name. */
enum reach_name {
    REACH_UNKNOWN,  /* the name does not exist */
    REACH_LOOPBACK, /* loopback addresses only */
    REACH_FOUND     /* another address; the first one is returned */
};

enum reach_name reach_resolve (const char *name, struct reach_address *to);

/* The local address from which the routing table would reach 'to'; nothing is sent.  Returns -1 if
 * there is no route.
 */
int reach_source (const struct reach_address *to, struct reach_address *own);

/* Write the name of the interface that has the address to 'buf'.  Returns -1 if no interface of
 * this machine has it.
 */
int reach_interface (const struct reach_address *own, char *buf, size_t size);

/* Write the numeric address; "" if there is none. */
void reach_figures (const struct reach_address *a, char *buf, size_t size);

/* Why an interface cannot reach other machines; NULL if no reason is visible here.  'wanted' is the
 * interface that reaches them, or "".
 */
const char *reach_useless (const char *name, const char *wanted);

/* Whether both names belong to one host by the rules of DNS, which ignores case and a final dot; a
 * name without a dot matches the same name with a domain.
 */
bool reach_same_name (const char *a, const char *b);
