/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of elastic training. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "runtime/base/process_id.h"
#include "runtime/comm/api/comm.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/listen.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/slab.h"

/* ---- the members of each generation: files in a folder (membership.c) ---- */

/* The files; each is complete once it has its name:
 *   world.G          the members of generation G; created once
 *   member.G.NONCE   a process that wants to be in generation G
 *   ask.NONCE        a process that waits to join
 *   bye.NONCE        a rank that has completed the training
 *   ended.UNIT       from dl elastic: the process that it started as this unit has ended
 *   target           from dl elastic and dl scale: the wanted number of ranks
 */

/* What became of a generation that was agreed on. */
enum elastic_outcome {
    OUTCOME_GOOD,  /* its ranks have met */
    OUTCOME_TOLD,  /* some did not come: rank 0 said so, or this is rank 0 */
    OUTCOME_ALONE, /* rank 0 did not answer this rank */
};

/* A process that is, or wants to be, in a generation. */
struct elastic_member {
    struct process_id self;
    uint64_t netns;
    uint64_t was; /* number of the generation that it comes from; 0: none */
    int64_t was_rank;
    int64_t request; /* number of ranks that it asks for (membership_request()); 0: as wanted */
    int32_t port;    /* where it listens if it becomes rank 0 */
    int32_t local;
    int32_t outcome;  /* enum elastic_outcome of that generation */
    uint64_t silent;  /* nonce of a member whose host does not answer; 0: none */
    int32_t isolated; /* none of the hosts that it tried answers */
    char host[64];
    char unit[32]; /* DL_ELASTIC_UNIT, or "" */
};

struct generation {
    uint64_t number;
    unsigned char key[HANDSHAKE_KEY]; /* of its connections */
    int64_t size, wanted;
    int64_t kept, lost, left;
    struct elastic_member members[];
};

struct membership {
    char dir[PATH_MAX - 128]; /* its name, for messages */
    struct own_folder folder;
    bool by_hand;  /* there is no folder: the ranks meet like those of any communicator */
    long min, max; /* max 0: no limit */
    double settle, timeout;
    double wait; /* timeout of its communicators */
    struct elastic_member self;
    struct listen_sockets listener;
    long start;                    /* number of ranks in the first generation */
    struct generation *generation; /* ours, or NULL */
    long rank;                     /* in it */
    bool joining;                  /* we were not in the previous generation */
    double since;                  /* when we began to form it */
    double hold, penalty;          /* until when, and for how long, it does not ask */
    double looked;                 /* membership_request() */
    long asked;
};

int membership_open (struct membership *g, const struct slurmdl_elastic_options *o,
                     struct slurmdl_error *err);
void membership_close (struct membership *g);

/* Join a new generation: sets g->generation, g->rank, g->joining. */
int membership_form (struct membership *g, struct slurmdl_error *err);
/* The same for ranks started by hand, which are connected already. */
int membership_of_comm (struct membership *g, const struct slurmdl_comm *c,
                        struct slurmdl_error *err);
/* The address at which its rank 0 listens. */
void membership_boot_place (const struct membership *g, struct boot_place *p);
/* Rank 0: remove what only past generations needed. */
void membership_clean (const struct membership *g);
/* Number of ranks that the generation should have; 0: no change; REQUEST_OVER:
 * the generation was given up, and others formed another one.  Usually costs a
 * look at the clock; reads the folder twice a second.
 */
#define REQUEST_OVER LONG_MAX
long membership_request (struct membership *g);
/* This rank has completed the training. */
void membership_leave (const struct membership *g);

/* Whether none of some other hosts of the generation answers; false if there
 * are no other hosts.  Takes at most a quarter of the settling time.
 */
bool membership_is_isolated (const struct membership *g);

/* For dl elastic: whether a rank of that unit has completed the training. */
bool membership_has_done (const char *dir, const char *unit);
int membership_put_ended (const char *dir, const char *unit);
int membership_put_target (const char *dir, long ranks);
long membership_target (const char *dir); /* 0: none */

/* ---- what was committed (state.c) ---- */

enum piece_kind { PIECE_WHOLE, PIECE_STATE, PIECE_SHARD };

/* A box of a tensor, a whole tensor, or bytes. */
struct elastic_piece {
    char name[SLURMDL_NAME_SIZE];
    uint32_t kind, type;
    struct slab box;
    uint64_t dims[DIMS_MAX];
    uint64_t bytes;
    void *data; /* the program's memory, or ours */
};

struct pieces {
    struct elastic_piece *list;
    size_t n;
};

/* Two slots are kept.  Each has the slabs that a rank holds, then copies of the
 * previous rank's in the ring.
 */
struct slot {
    uint64_t id; /* generation number << 32 | a count; 0: nothing */
    int64_t step;
    struct pieces own, copies;
};

struct slurmdl_elastic {
    struct membership membership;
    struct slurmdl_comm *comm;
    bool broken;         /* a new generation must be formed next */
    bool ended;          /* the last commit was complete: training may end here */
    uint32_t commits;    /* begun in this generation; the same number on all ranks */
    struct pieces wants; /* what the program protects */
    struct slot slots[2];
    int newest;        /* index of the newest slot that is complete on all ranks */
    long next, before; /* in the ring of copies */
    double seconds;
    struct slurmdl_elastic_world report;
};

struct elastic_piece *pieces_find (const struct pieces *p, const char *name);
void pieces_free (struct pieces *p);
void slot_clear (struct slot *s);
bool piece_is_same (const struct elastic_piece *a, const struct elastic_piece *b);
int box_compare (const struct slab *a, const struct slab *b);

/* Copy to the program's memory, on the host or a device. */
int piece_store (const struct elastic_piece *program, const void *ours);

/* Arrange the ring in which each rank keeps a copy of the previous rank's
 * slabs: ranks with the same number on their nodes follow each other, so that
 * nodes alternate.
 */
void ring_find (struct slurmdl_elastic *e);

/* Copy the state.  '*request' is rank 0's result of membership_request(), which
 * all ranks have afterwards.  If the next generation is smaller, the ranks that
 * will leave pass their slabs to others.
 */
int state_commit (struct slurmdl_elastic *e, int64_t step, long *request,
                  struct slurmdl_error *err);
