/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a socket, as they come. */
#ifndef RUNTIME_COMM_MESH_WIRE_H
#define RUNTIME_COMM_MESH_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* A message is a head and 'length' bytes, in this machine's byte order. */
struct wire_head {
    uint32_t magic, kind;
    uint64_t length;
};

struct wire {
    int fd; /* -1: none */
    struct wire_head head;
    size_t got;
    char *body; /* of the message that has come, ended by '\0' */
    size_t room;
};

void wire_init (struct wire *w, int fd);
void wire_close (struct wire *w); /* also one that is closed */

/* Take what has come, without waiting.  Returns 1: a message is whole, in
 * w->head and w->body until wire_next(); 0: not yet; -1: ECONNRESET, the other
 * side has closed; EPROTO, this is no message of ours, or longer than 'most'.
 */
int wire_read (struct wire *w, size_t most);
void wire_next (struct wire *w);

/* The same, but wait for it until the deadline (monotonic()). */
int wire_wait (struct wire *w, size_t most, double deadline);

int wire_send (
    struct wire *w, uint32_t kind, const void *body, size_t n, double deadline);

#endif
