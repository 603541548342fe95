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

/* startup.c: children come one by one; -1: one has gone, or takes too long. */
int control_meet (struct control *k, double now);
/* Seconds until it has something to do but for those that come; -1: never. */
double control_meeting (const struct control *k);

/* requests.c: what this rank has to say. */

/* Ask for what is fresh, if it is time to. */
int control_ask (struct control *k);
/* Ask again for a tensor whose number means nothing any more. */
int control_ask_again (struct control *k, struct engine_task *t);
/* Seconds until control_ask() has something to do; -1: never. */
double control_wait_seconds (const struct control *k);
/* Whether this rank waits for others; then control_wait_seconds() is 2 s at
 * most, to see whether their hosts are there.
 */
bool control_waits (const struct control *k);
/* What has been ready for too long. */
void control_report_stall (struct control *k, double now);
/* Those below are told who keeps a tensor waiting: as an error after the time
 * of DL_STALL_ABORT.
 */
void control_report_late (struct control *k, double age, const char *text);

/* One packet from below, or from this rank: 'unit' of its readiness says whose.
 */
int control_up (struct control *k, size_t unit, struct packet *p);

/* responses.c: one packet from above. */
int control_down (struct control *k, struct packet *p);
