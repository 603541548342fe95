/* SPDX-License-Identifier: Apache-2.0 */
/* Listen for the ranks of a step. */
#ifndef LAUNCHER_NODECHECK_OPEN_H
#define LAUNCHER_NODECHECK_OPEN_H

#include <stdbool.h>

#include "launcher/nodecheck/level.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/slurmdl.h"

struct gather {
    enum check_level level;
    bool table; /* print the node and the GPUs of each rank */
    unsigned char token[HANDSHAKE_TOKEN];
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

/* The token as DL_GATHER has it, in hexadecimal digits; what has none is a
 * token that no collector takes.
 */
enum { GATHER_TOKEN_TEXT = 2 * HANDSHAKE_TOKEN + 1 };
void gather_token_print (const unsigned char *token, char *text);
void gather_token_read (const char *text, unsigned char *token);

#endif
