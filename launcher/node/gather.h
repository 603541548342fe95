/* SPDX-License-Identifier: Apache-2.0 */
/* The collector: it judges what the ranks of a step report. */
#pragma once

#include <stdbool.h>

#include "launcher/node/checks.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/listen.h"
#include "runtime/slurmdl.h"

struct gather {
    enum check_level level;
    bool table;                       /* print the node and the GPUs of each rank */
    bool json;                        /* print JSON, on standard output */
    unsigned char key[HANDSHAKE_KEY]; /* of the ranks of this step */
    struct listen_sockets listener;
    int parent;        /* fd whose end ends the collector; -1: none */
    const char *notes; /* file for the names of bad nodes, or NULL */
};

/* Listen on 'port', or on any in 'range' ("60001-60100"), or where the kernel
 * chooses.
 */
int gather_open (struct gather *g, int port, const char *range, struct slurmdl_error *err);

/* What the ranks and the collector know of each other. */
struct handshake gather_handshake (const unsigned char *key);

/* Collect, print to standard error, answer.  Returns an enum gather_status: of
 * the step.
 */
int gather_serve (struct gather *g);
