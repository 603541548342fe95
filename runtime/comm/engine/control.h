/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: what the control thread has. */
#pragma once

#include "runtime/comm/engine/connection.h"
#include "runtime/comm/engine/coordinator.h"
#include "runtime/comm/engine/engine.h"
#include "runtime/comm/engine/readiness.h"
#include "runtime/comm/engine/stall.h"

struct control {
    struct engine *e;
    struct engine_tree tree;
    struct connection parent, *children; /* of the parent: fd -1 on rank 0 */
    struct readiness *readiness;
    struct map ids;     /* names by their numbers */
    struct packet up;   /* to the parent; not on rank 0 */
    struct packet down; /* of the coordinator, to all */
    double stalled;     /* when this rank has told so the last time */
    double looked;      /* when it last looked whether hosts are there */
    double begun;       /* when this thread has */
    size_t absent;      /* children that have not begun, with named tensors */
    bool heard;         /* the parent has begun */
    bool ended;         /* all has been said */
    bool told;          /* that this rank leaves */

    /* only rank 0 has these */
    struct coordinator *root;
    struct stall *stall;
};

/* One packet from below, or from this rank: 'unit' of its readiness says whose.
 */
int control_up (struct control *k, size_t unit, struct packet *p);

/* One packet from above. */
int control_down (struct control *k, struct packet *p);
