/* SPDX-License-Identifier: Apache-2.0 */
/* The part of one rank: facts, checks, and the answer of the collector. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "launcher/node/depth.h"
#include "runtime/comm/net/handshake.h"

struct gather_client {
    enum check_level level;
    bool table;
    bool quiet;                 /* print no finding */
    bool waits;                 /* the collector may be about to listen */
    const char *address, *port; /* NULL: there is no collector */
    unsigned char key[HANDSHAKE_KEY];
};

/* Gather the facts and findings of this rank.  With a collector send them and
 * wait for its answer, without one decide by them alone.  Prints at most a
 * line, and '*all' (if not NULL) gets what the rank knows, which the caller
 * owns.  Returns an enum gather_status.
 */
int gather_rank (const struct gather_client *c, json_t **all);
