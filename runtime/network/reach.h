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

/* What a resolver says of a name. */
enum reach_name {
    REACH_UNKNOWN,  /* it has no such name */
    REACH_LOOPBACK, /* loopback addresses only */
    REACH_FOUND     /* another one, which is the first of these */
};

enum reach_name reach_resolve (const char *name, struct reach_address *to);

/* Our address on the way there, by the routing table: nothing is sent.  Returns
 * -1 if there is no way.
 */
int reach_source (const struct reach_address *to, struct reach_address *own);

/* The interface that has the address, into 'buf'.  Returns -1 if none of this
 * machine has it.
 */
int reach_interface (const struct reach_address *own, char *buf, size_t size);

/* The address in figures; "" if it has none. */
void reach_figures (const struct reach_address *a, char *buf, size_t size);

/* What is wrong with an interface for talking to other machines; NULL: nothing
 * that can be seen here.  'wanted' is the one that reaches them, or "".
 */
const char *reach_useless (const char *name, const char *wanted);

/* Whether both name one host, as DNS compares names: no case, no dot at the
 * end; a name without a dot is the same as one with a domain.
 */
bool reach_same_name (const char *a, const char *b);
