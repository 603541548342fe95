/* SPDX-License-Identifier: Apache-2.0 */
/* Listen for the ranks of a step. */
#ifndef LAUNCHER_NODECHECK_OPEN_H
#define LAUNCHER_NODECHECK_OPEN_H

#include <stdbool.h>

#include "launcher/nodecheck/level.h"
#include "runtime/slurmdl.h"

enum { GATHER_TOKEN = 32 }; /* characters of a token */

struct gather {
    enum check_level level;
    bool table; /* print the node and the GPUs of each rank */
    char token[GATHER_TOKEN + 1];
    int listener; /* fd */
    int port;
    int parent;        /* fd whose end ends the collector; -1: none */
    const char *notes; /* file for the names of bad nodes, or NULL */
};

/* Listen on 'port', or on any in 'range' ("60001-60100"), or where the kernel
 * chooses; make a token unless there is one.  Returns 0, or -1.
 */
int gather_open (struct gather *g,
                 int port,
                 const char *range,
                 struct slurmdl_error *err);

/* A socket that listens on 'port' (0: the kernel chooses) of all addresses,
 * IPv6 and IPv4; it does not block.  'reuse': although connections of an
 * earlier one linger.  Returns -1 with errno.
 */
int gather_listen (int port, bool reuse);
int gather_port (int fd);

#endif
