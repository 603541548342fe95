/* SPDX-License-Identifier: Apache-2.0 */
/* How `dl log` in a script reaches the worker, the one writer of metrics. */
#pragma once

#include "launcher/sys/temporary_folder.h"
#include "launcher/trainer/trainer.h"

/* The worker's side. */
struct log_socket {
    int fd; /* -1: none */
    struct scratch folder;
    char path[80];
};

/* Make the socket; if that is not possible 'path' is "" and a line says so, and
 * all but `dl log` works.  log_socket_close() in any case.
 */
void log_socket_open (struct log_socket *s);
void log_socket_close (struct log_socket *s);

/* Answer one message that waits on s->fd. */
void log_socket_serve (struct log_socket *s, struct trainer *t);

/* The other side: send 'text' to the worker at 'path', wait for its answer. */
int log_socket_send (const char *path, const char *text, struct slurmdl_error *err);
