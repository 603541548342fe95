/* SPDX-License-Identifier: Apache-2.0 */
/* Who a server or worker of a group is, and where. */
#pragma once

#include "runtime/base/process_id.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/slurmdl_ps.h"

/* Each server and each worker has a row of numbered files in the group's
 * folder, server-I.N and worker-I.N, put if absent and never changed; the
 * newest says who holds the place.  A process takes a place by putting the
 * next number, and with it fences off who held it before: that one's next
 * number is taken.  Servers put a new one at each save too.
 */
enum ps_state {
    PS_SERVING = 1,
    PS_RESTORING, /* has not chosen yet what of 'saved' it goes on from */
    PS_LOST,      /* given up by another process */
    PS_LEFT,
};

enum { PS_ADDRESSES = 8, PS_SAVES = 8, PS_TOKEN = HANDSHAKE_KEY };

struct ps_saved {
    int64_t clock;  /* iterations that all workers had ended */
    uint64_t claim; /* of the process that has saved it */
    int64_t servers;
};

struct ps_entry {
    uint32_t version, state;
    uint64_t claim; /* the number with which its process took the place */
    int64_t servers, workers;
    struct process_id member;
    unsigned char token[PS_TOKEN];
    char host[64];
    char address[PS_ADDRESSES][48]; /* numbers; ended by an empty one */
    uint32_t port, nsaved;
    struct ps_saved saved[PS_SAVES]; /* oldest first */
};

/* The newest entry of a place.  Returns 1, 0 if there is none, or -1. */
int psregistration_newest (const char *dir,
                           const char *role,
                           long index,
                           uint64_t *number,
                           struct ps_entry *e);

/* Put 'e' under this number.  Returns 0; 1 if the number is taken, or a higher
 * one is; or -1.
 */
int psregistration_put (const char *dir,
                        const char *role,
                        long index,
                        uint64_t number,
                        const struct ps_entry *e);

/* The place is given up as lost, if 'e' still holds it as 'number'. */
void psregistration_lose (const char *dir,
                          const char *role,
                          long index,
                          uint64_t number,
                          const struct ps_entry *e);

/* NULL: it has no save of this iteration by so many servers. */
const struct ps_saved *
psregistration_saved (const struct ps_entry *e, int64_t clock, int64_t servers);

/* The newest save that all of 'servers' have, as many as there were then, as
 * their newest entries say; -1: none.  With 'serving' one that is restoring
 * has none.
 */
int64_t psregistration_common (const char *dir, bool serving, int64_t *servers);

/* A number drawn by lot, host name, process. */
void psregistration_describe (struct ps_entry *e);

/* Path of a save; returns 'path'. */
char *psregistration_save_path (char *path,
                                size_t size,
                                const char *dir,
                                long server,
                                const struct ps_saved *s);
