/* SPDX-License-Identifier: Apache-2.0 */
/* The socket by which `dl log` in a script reaches the worker, the only writer of metrics. */
#pragma once

#include "launcher/sys/temporary_folder.h"
#include "launcher/trainer/trainer.h"

/* The worker's side. */
struct log_socket {
    int fd; /* -1: none */
    struct scratch folder;
    char path[80];
};

/* Create the socket.  On failure, complain and set 'path' to ""; everything but `dl log` still
 * works.  Call log_socket_close() in any case.
 */
void log_socket_open (struct log_socket *s);
void log_socket_close (struct log_socket *s);

/* Answer one message that is waiting on s->fd. */
void log_socket_serve (struct log_socket *s, struct trainer *t);

/* The client's side: send 'text' to the worker at 'path' and wait for its answer.  Returns -1 with
 * 'err' on failure.
 */
int log_socket_send (const char *path, const char *text, struct slurmdl_error *err);
