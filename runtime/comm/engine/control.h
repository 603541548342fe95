/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: the state of the control thread. */
#pragma once

#include "runtime/comm/engine/connection.h"
#include "runtime/comm/engine/coordinator.h"
#include "runtime/comm/engine/engine.h"
#include "runtime/comm/engine/readiness.h"
#include "runtime/comm/engine/stall.h"

struct control {
    struct engine *e;
    struct engine_tree tree;
    struct connection parent, *children; /* the parent's fd is -1 on rank 0 */
    struct readiness *readiness;
    struct map ids;     /* names by their numbers */
    struct packet up;   /* to the parent; not on rank 0 */
    struct packet down; /* from the coordinator, to all */
    double stalled;     /* when this rank last reported a stall */
    double looked;      /* when it last checked whether hosts are alive */
    double begun;       /* when this thread began */
    size_t absent;      /* children that have not begun to use named tensors */
    bool heard;         /* the parent has begun */
    bool ended;         /* everything was sent */
    bool told;          /* this rank has announced that it leaves */

    /* only on rank 0 */
    struct coordinator *root;
    struct stall *stall;
};

/* Process one packet from below or from this rank; 'unit' is the sender in k->readiness. */
int control_up (struct control *k, size_t unit, struct packet *p);

/* Process one packet from above. */
int control_down (struct control *k, struct packet *p);
